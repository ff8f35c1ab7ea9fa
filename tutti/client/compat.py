"""`OptimizedKokoroHandler`: the name and the methods that earlier code was written to, over `Client`."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import asdict
from typing import Self, Unpack

from tutti.client.async_client import DEFAULT_URL
from tutti.client.audio import Audio
from tutti.client.client import Client
from tutti.client.options import Choices
from tutti.client.request import Wishes
from tutti.errors import TuttiError


class OptimizedKokoroHandler:
    """A thin adapter: new code does better with `Client`, which is `handler.client` here."""

    def __init__(self, base_url: str = DEFAULT_URL, **choices: Unpack[Choices]) -> None:
        self.client = Client(base_url, **choices)

    def synthesize_sync(self, text: str, *, stream: bool | None = None, **wishes: Unpack[Wishes]) -> bytes:
        """The bytes of the sound, WAV unless a format is named."""
        return self.client.speak(text, stream=stream, **wishes).data

    def synthesize_async(
        self, text: str, on_audio_ready: Callable[[bytes], object] | None = None, **wishes: Unpack[Wishes]
    ) -> Future[Audio]:
        """Speaks in the background; the callback gets the bytes."""
        return self.client.speak_async(text, on_audio_ready and (lambda audio: on_audio_ready(audio.data)), **wishes)

    def synthesize_batch(self, texts: Iterable[str], **wishes: Unpack[Wishes]) -> list[bytes | TuttiError]:
        """For each text, in order, its bytes or its error."""
        heard = self.client.speak_many(texts, **wishes)
        return [audio.data if isinstance(audio, Audio) else audio for audio in heard]

    def get_performance_stats(self) -> dict[str, float]:
        """Flat, in milliseconds: `first_byte_ms_p95`, `total_ms_avg`, `count`, `connection_reuse_rate`."""
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
