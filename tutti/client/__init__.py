"""The client: first byte early, connections reused, numbers shown. Needs httpx2 and nothing else of tutti's."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.client.aclient import AsyncClient
    from tutti.client.audio import Audio, Piece, Word, wav
    from tutti.client.calls import Call, Stats, Summary
    from tutti.client.client import Client
    from tutti.client.errors import ClientClosed, CutShort, Refused, TimedOut, Unreachable
    from tutti.client.handler import OptimizedKokoroHandler
    from tutti.client.hooks import prometheus_hook
    from tutti.client.live import AsyncLive, Live
    from tutti.client.stream import AsyncStream, Stream
    from tutti.client.wish import Wishes

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
    "Piece",
    "Refused",
    "Stats",
    "Stream",
    "Summary",
    "TimedOut",
    "Unreachable",
    "Wishes",
    "Word",
    "prometheus_hook",
    "wav",
]

_HOME_OF = {
    "AsyncClient": "aclient",
    "Client": "client",
    "OptimizedKokoroHandler": "handler",
    "Wishes": "wish",
    "prometheus_hook": "hooks",
    **dict.fromkeys(("AsyncLive", "Live"), "live"),
    **dict.fromkeys(("AsyncStream", "Stream"), "stream"),
    **dict.fromkeys(("Audio", "Piece", "Word", "wav"), "audio"),
    **dict.fromkeys(("Call", "Stats", "Summary"), "calls"),
    **dict.fromkeys(("ClientClosed", "CutShort", "Refused", "TimedOut", "Unreachable"), "errors"),
}


def __getattr__(name: str) -> object:
    """The public names, imported when first asked for, so that `tutti --help` need not load an HTTP library."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tutti.client' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tutti.client.{_HOME_OF[name]}"), name)
