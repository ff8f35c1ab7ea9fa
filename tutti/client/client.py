"""The client for blocking code: the calls of `AsyncClient`, run by an event loop in its own thread."""

import asyncio
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, Self, Unpack

from tutti.client.async_client import DEFAULT_URL, AsyncClient
from tutti.client.audio import Audio
from tutti.client.call_stats import Stats
from tutti.client.live import Live
from tutti.client.options import ClientOptions, client_settings
from tutti.client.request import SpeechOptions, TimeKind, check_options
from tutti.client.stream import Stream
from tutti.client.sync_bridge import LoopThread
from tutti.errors import TuttiError


class Client:
    """Speech from tutti, or any server with OpenAI's speech route. Thread-safe."""

    def __init__(self, url: str = DEFAULT_URL, **options: Unpack[ClientOptions]) -> None:
        self._max_workers = client_settings(options).max_workers
        self._loop = LoopThread()
        try:
            self._client = self._loop.run(_open(url, options))
        except BaseException:
            self._loop.close(asyncio.sleep(0))
            raise
        # Also when the interpreter exits, for clients that were not closed.
        self._close = weakref.finalize(self, _close, self._client, self._loop)
        self.url = self._client.url

    def speak(
        self,
        text: str,
        *,
        stream: bool | None = None,
        deadline_s: float | None = None,
        **options: Unpack[SpeechOptions],
    ) -> Audio:
        """Return the complete audio. Long texts are fetched as a stream by default, so that the timeout is per read."""
        return self._loop.run(self._client.speak(text, stream=stream, deadline_s=deadline_s, **options))

    def stream(
        self,
        text: str,
        *,
        words: bool = True,
        timestamps: Iterable[TimeKind] = (),
        deadline_s: float | None = None,
        **options: Unpack[SpeechOptions],
    ) -> Stream:
        """Return a stream of audio pieces, PCM by default, with word times, delivered while synthesis runs.

        `timestamps` asks for more times: "phoneme", "viseme".
        """
        stream = self._client.stream(text, words=words, timestamps=timestamps, deadline_s=deadline_s, **options)
        return Stream(stream, self._loop)

    def speak_many(
        self, texts: Iterable[str], *, max_concurrency: int | None = None, **options: Unpack[SpeechOptions]
    ) -> list[Audio | TuttiError]:
        """Return for each text, in order, its audio or its error."""
        return self._loop.run(self._client.speak_many(texts, max_concurrency=max_concurrency, **options))

    def speak_async(
        self, text: str, on_audio_ready: Callable[[Audio], object] | None = None, **options: Unpack[SpeechOptions]
    ) -> Future[Audio]:
        """Speak in the background and call back in a thread of the pool; the future has the audio or the error."""
        check_options(options, "on_audio_ready")

        def run() -> Audio:
            audio = self.speak(text, **options)
            if on_audio_ready:
                on_audio_ready(audio)
            return audio

        return self._pool.submit(run)

    def prefetch(self, texts: Iterable[str], **options: Unpack[SpeechOptions]) -> Future[int]:
        """Fetch texts into the cache in the background; the result is how many of them are cached."""
        check_options(options)
        return self._loop.submit(self._client.prefetch(list(texts), **options))

    def live(self, *, timestamps: Iterable[TimeKind] = (), **options: Unpack[SpeechOptions]) -> Live:
        """Open a session for text that is still being written: `with client.live() as live`.

        Word times are always sent; `timestamps` asks for more: "phoneme", "viseme".
        """
        return Live(self._client.live(timestamps=timestamps, **options), self._loop)

    def voices(self) -> list[dict[str, Any]]:
        """List the voices with their properties."""
        return self._loop.run(self._client.voices())

    def health(self) -> dict[str, Any]:
        return self._loop.run(self._client.health())

    def workers(self) -> dict[str, Any]:
        """Return totalWorkers, readyWorkers, busyWorkers, asleepWorkers, queueSize and batchingEnabled."""
        return self._loop.run(self._client.workers())

    def warm(self) -> bool:
        """Open a connection for the first call, and load a model that sleeps; return whether the server is warm."""
        return self._loop.run(self._client.warm())

    def stats(self) -> Stats:
        return self._client.stats()

    def reset_stats(self) -> None:
        self._client.reset_stats()

    def close(self) -> None:
        """Cancel running calls and close every connection. Calls of other threads raise ClientClosed."""
        self._close()
        if "_pool" in vars(self):
            self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._max_workers, "tutti-client")


async def _open(url: str, options: ClientOptions) -> AsyncClient:
    return await AsyncClient(url, **options).__aenter__()


def _close(client: AsyncClient, loop: LoopThread) -> None:
    loop.close(client.aclose())
