"""`OptimizedKokoroHandler`: an adapter with the interface of earlier code, over `Client`."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import asdict
from typing import Self, Unpack

from tutti.client.async_client import DEFAULT_URL
from tutti.client.audio import Audio
from tutti.client.client import Client
from tutti.client.options import ClientOptions
from tutti.client.request import SpeechOptions
from tutti.errors import TuttiError


class OptimizedKokoroHandler:
    """Thin adapter; new code should use `Client`, which is `handler.client` here."""

    def __init__(self, base_url: str = DEFAULT_URL, **options: Unpack[ClientOptions]) -> None:
        self.client = Client(base_url, **options)

    def synthesize_sync(self, text: str, *, stream: bool | None = None, **options: Unpack[SpeechOptions]) -> bytes:
        """Return the audio as bytes, WAV by default."""
        return self.client.speak(text, stream=stream, **options).data

    def synthesize_async(
        self, text: str, on_audio_ready: Callable[[bytes], object] | None = None, **options: Unpack[SpeechOptions]
    ) -> Future[Audio]:
        """Synthesise in the background; the callback receives the bytes."""
        return self.client.speak_async(text, on_audio_ready and (lambda audio: on_audio_ready(audio.data)), **options)

    def synthesize_batch(self, texts: Iterable[str], **options: Unpack[SpeechOptions]) -> list[bytes | TuttiError]:
        """Return for each text, in order, its bytes or its error."""
        results = self.client.speak_many(texts, **options)
        return [result.data if isinstance(result, Audio) else result for result in results]

    def get_performance_stats(self) -> dict[str, float]:
        """Return numbers in milliseconds: `first_byte_ms_p95`, `total_ms_avg`, `count`, `connection_reuse_rate`."""
        stats = self.client.stats()
        flat: dict[str, float] = {
            "count": stats.count,
            "errors": stats.errors,
            "cache_hits": stats.cached,
            "connection_reuse_rate": stats.reuse_rate,
        }
        for name in ("first_byte", "total", "synthesis", "network", "buffer"):
            seconds = asdict(getattr(stats, f"{name}_s"))
            del seconds["count"]
            flat |= {f"{name}_ms_{kind}": 1000 * value for kind, value in seconds.items()}
        return flat

    def reset_performance_stats(self) -> None:
        self.client.reset_stats()

    def close(self) -> None:
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
