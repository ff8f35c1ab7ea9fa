"""`OptimizedKokoroHandler`: an adapter with the interface of earlier code, over `Client`."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self, SupportsIndex, overload

from tutti.client.async_client import DEFAULT_URL
from tutti.client.audio import Audio
from tutti.client.call_stats import Call
from tutti.client.client import Client
from tutti.client.options import check_names
from tutti.client.request import SpeechOptions
from tutti.errors import TuttiError

log = logging.getLogger("tutti.client")
CALL_OPTIONS = ("use_streaming", "stream", "deadline_s")  # of `synthesize_sync`, beside SpeechOptions
STATS = {  # the documented names of the times, and those of earlier versions
    "first_byte_latency": "first_byte",
    "total_latency": "total",
    "synthesis_time": "synthesis",
    "network_time": "network",
    "buffer_time": "buffer",
}


@dataclass(frozen=True, slots=True)
class PerformanceMetrics:
    """The times of one call in seconds; 0 where the server does not tell."""

    first_byte_latency: float = 0.0
    total_latency: float = 0.0
    synthesis_time: float = 0.0
    network_time: float = 0.0
    buffer_time: float = 0.0
    timestamp: float = 0.0  # when the call began, in seconds since 1970

    @classmethod
    def of(cls, call: Call) -> Self:
        times = (call.first_byte_s, call.total_s, call.synthesis_s, call.network_s, call.buffer_s, call.timestamp)
        return cls(*(seconds or 0.0 for seconds in times))


class SynthesisResult(bytes):
    """The audio as bytes. It also offers details by name: `result["latency"]` is the total latency in seconds."""

    audio: Audio
    metrics: PerformanceMetrics

    @classmethod
    def of(cls, audio: Audio) -> Self:
        result = cls(audio.data)
        result.audio = audio
        result.metrics = PerformanceMetrics.of(audio.call or Call("speak"))
        return result

    @property
    def data(self) -> bytes:
        return self.audio.data

    def keys(self) -> tuple[str, ...]:
        """Return the names of the details; `dict(result)` has them all."""
        return ("audio", "latency", "format", "duration", "cached", *(field.name for field in fields(self.metrics)))

    def get(self, name: str, default: object = None) -> Any:
        return self[name] if name in self.keys() else default

    def save(self, path: str | Path) -> Path:
        """Write the audio to a file atomically."""
        return self.audio.save(path)

    def __contains__(self, key: object) -> bool:
        return key in self.keys() if isinstance(key, str) else super().__contains__(key)  # type: ignore[operator]

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> bytes: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        match key:
            case "audio":
                return self.audio.data
            case "latency":
                return self.metrics.total_latency
            case "format":
                return self.audio.format
            case "duration":
                return self.audio.duration_s
            case "cached":
                return self.audio.call is not None and self.audio.call.cached
            case str():
                return asdict(self.metrics)[key]
            case _:
                return super().__getitem__(key)


class OptimizedKokoroHandler:
    """Thin adapter; new code should use `Client`, which is `handler.client` here."""

    # An attribute of another name would have no effect, so setting it is an error.
    __slots__ = ("__weakref__", "_pool", "client", "on_audio_ready", "voice")

    def __init__(
        self,
        api_url: str = DEFAULT_URL,
        voice: str | None = None,
        max_workers: int = 4,
        connection_pool_size: int = 10,
        chunk_size: int = 512,
        pre_warm_models: bool = True,
        **options: Any,
    ) -> None:
        """Take the options of `Client`, too. `base_url` is another name of `api_url`."""
        url = options.pop("base_url", api_url)
        named = {"pool_size": connection_pool_size, "chunk_bytes": chunk_size, "prewarm": pre_warm_models}
        self.voice = voice
        self.on_audio_ready: Callable[[SynthesisResult], object] | None = None
        self.client = Client(url, voice=voice, max_workers=max_workers, **named | options)
        self._pool = ThreadPoolExecutor(max_workers, "kokoro-handler")

    def synthesize_sync(
        self,
        text: str,
        voice: str | None = None,
        use_gpu: bool = True,
        use_streaming: bool | None = None,
        optimize_for_latency: bool = True,
        **options: Any,
    ) -> SynthesisResult:
        """Return the audio, MP3 by default. `use_streaming`: default for texts of more than 50 characters."""
        stream = options.pop("stream", use_streaming)
        speech = {"format": "mp3", "use_gpu": use_gpu, "optimize_for_latency": optimize_for_latency, **options}
        if name := voice or self.voice:
            speech["voice"] = name
        return SynthesisResult.of(self.client.speak(text, stream=stream, **speech))

    def synthesize_async(
        self, text: str, on_audio_ready: Callable[[SynthesisResult], object] | None = None, **options: Any
    ) -> Future[SynthesisResult]:
        """Synthesise in a thread of the pool, then call `on_audio_ready`, or else `handler.on_audio_ready`.

        The options are those of `synthesize_sync`. The future has the result or the error; errors are logged, too.
        """
        check_names(options, (*SpeechOptions.__annotations__, *CALL_OPTIONS), ("on_audio_ready",))

        def run() -> SynthesisResult:
            try:
                result = self.synthesize_sync(text, **options)
            except Exception as error:
                log.warning("synthesis failed: %s", error)
                raise
            if callback := on_audio_ready or self.on_audio_ready:
                try:
                    callback(result)
                except Exception:
                    log.exception("on_audio_ready failed")
                    raise
            return result

        return self._pool.submit(run)

    def synthesize_batch(self, texts: Iterable[str], **options: Any) -> list[SynthesisResult | TuttiError]:
        """Return for each text, in order, its result or its error; the options are those of `synthesize_sync`."""

        def speak(text: str) -> SynthesisResult | TuttiError:
            try:
                return self.synthesize_sync(text, **options)
            except TuttiError as error:
                return error

        return list(self._pool.map(speak, texts))

    def get_performance_stats(self) -> dict[str, float]:
        """Return `avg_first_byte_latency` (also min, max, p95, p99) in seconds, `total_requests`, and more.

        The same for `total_latency`, `synthesis_time`, `network_time` and `buffer_time`; the numbers of earlier
        versions are in milliseconds: `first_byte_ms_p95`, `total_ms_avg`.
        """
        stats = self.client.stats()
        flat: dict[str, float] = {
            "total_requests": stats.count,
            "count": stats.count,
            "errors": stats.errors,
            "cache_hits": stats.cached,
            "connection_reuse_rate": stats.reuse_rate,
        }
        for name, earlier in STATS.items():
            seconds = asdict(getattr(stats, f"{earlier}_s"))
            del seconds["count"]
            flat |= {f"{kind}_{name}": value for kind, value in seconds.items()}
            flat |= {f"{earlier}_ms_{kind}": 1000 * value for kind, value in seconds.items()}
        return flat

    def reset_performance_stats(self) -> None:
        self.client.reset_stats()

    def close(self) -> None:
        """Cancel running calls and close every connection."""
        self.client.close()
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
