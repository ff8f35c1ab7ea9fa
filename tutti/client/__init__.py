"""Python client for tutti and servers with OpenAI's speech route. Its only dependency is httpx2."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.client.async_client import AsyncClient
    from tutti.client.audio import Audio, Piece, Sound, Word, wav
    from tutti.client.call_stats import Call, Stats, Summary
    from tutti.client.client import Client
    from tutti.client.compat import OptimizedKokoroHandler, PerformanceMetrics, SynthesisResult
    from tutti.client.errors import ClientClosed, CutShort, Refused, TimedOut, Unreachable
    from tutti.client.live import AsyncLive, Live
    from tutti.client.prometheus import prometheus_hook
    from tutti.client.request import SpeechOptions, Wishes
    from tutti.client.stream import AsyncStream, Stream

__all__ = [
    "AsyncClient",
    "AsyncLive",
    "AsyncStream",
    "Audio",
    "Call",
    "Client",
    "ClientClosed",
    "CutShort",
    "Live",
    "OptimizedKokoroHandler",
    "PerformanceMetrics",
    "Piece",
    "Refused",
    "Sound",
    "SpeechOptions",
    "Stats",
    "Stream",
    "Summary",
    "SynthesisResult",
    "TimedOut",
    "Unreachable",
    "Wishes",
    "Word",
    "prometheus_hook",
    "wav",
]

_HOME_OF = {
    "AsyncClient": "async_client",
    "Client": "client",
    "prometheus_hook": "prometheus",
    **dict.fromkeys(("AsyncLive", "Live"), "live"),
    **dict.fromkeys(("AsyncStream", "Stream"), "stream"),
    **dict.fromkeys(("OptimizedKokoroHandler", "PerformanceMetrics", "SynthesisResult"), "compat"),
    **dict.fromkeys(("SpeechOptions", "Wishes"), "request"),
    **dict.fromkeys(("Audio", "Piece", "Sound", "Word", "wav"), "audio"),
    **dict.fromkeys(("Call", "Stats", "Summary"), "call_stats"),
    **dict.fromkeys(("ClientClosed", "CutShort", "Refused", "TimedOut", "Unreachable"), "errors"),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `tutti --help` does not load an HTTP library."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tutti.client' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tutti.client.{_HOME_OF[name]}"), name)
