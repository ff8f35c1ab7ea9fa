"""The client for code that waits: the calls of `AsyncClient`, run in an event loop of its own thread."""

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
from tutti.client.options import Choices, Options
from tutti.client.request import Wishes
from tutti.client.stream import Stream
from tutti.client.sync_bridge import LoopThread
from tutti.errors import TuttiError


class Client:
    """Speech from a tutti server, or any with OpenAI's speech route. Threads may share one."""

    def __init__(self, url: str = DEFAULT_URL, **choices: Unpack[Choices]) -> None:
        self._max_workers = Options(**choices).max_workers
        self._loop = LoopThread()
        try:
            self._client = self._loop.run(_entered(url, choices))
        except BaseException:
            self._loop.close(asyncio.sleep(0))
            raise
        # Also at the interpreter's end, for clients that nobody closed.
        self._close = weakref.finalize(self, _closed, self._client, self._loop)
        self.url = self._client.url

    def speak(
        self, text: str, *, stream: bool | None = None, deadline_s: float | None = None, **wishes: Unpack[Wishes]
    ) -> Audio:
        """The whole sound. Long texts are fetched as a stream unless told, so that no text is too long for its time."""
        return self._loop.run(self._client.speak(text, stream=stream, deadline_s=deadline_s, **wishes))

    def stream(
        self, text: str, *, words: bool = True, deadline_s: float | None = None, **wishes: Unpack[Wishes]
    ) -> Stream:
        """Pieces of PCM, or of the format asked for, while they are made, with the times of the words."""
        return Stream(self._client.stream(text, words=words, deadline_s=deadline_s, **wishes), self._loop)

    def speak_many(
        self, texts: Iterable[str], *, max_concurrency: int | None = None, **wishes: Unpack[Wishes]
    ) -> list[Audio | TuttiError]:
        """For each text, in order, its sound or what went wrong with it."""
        return self._loop.run(self._client.speak_many(texts, max_concurrency=max_concurrency, **wishes))

    def speak_async(
        self, text: str, on_audio_ready: Callable[[Audio], object] | None = None, **wishes: Unpack[Wishes]
    ) -> Future[Audio]:
        """Speaks in the background and hands over the sound in a thread of the pool; the future has what went wrong."""

        def spoken() -> Audio:
            audio = self.speak(text, **wishes)
            if on_audio_ready:
                on_audio_ready(audio)
            return audio

        return self._pool.submit(spoken)

    def prefetch(self, texts: Iterable[str], **wishes: Unpack[Wishes]) -> Future[int]:
        """Fetches what will be said soon into the cache, in the background; how many are there when it is done."""
        return self._loop.submit(self._client.prefetch(list(texts), **wishes))

    def live(self, **wishes: Unpack[Wishes]) -> Live:
        """Text in as it is written, audio out as it is spoken: `with client.live() as live`."""
        return Live(self._client.live(**wishes), self._loop)

    def voices(self) -> list[dict[str, Any]]:
        """Every voice with what is known about it."""
        return self._loop.run(self._client.voices())

    def health(self) -> dict[str, Any]:
        return self._loop.run(self._client.health())

    def workers(self) -> dict[str, Any]:
        """totalWorkers, readyWorkers, busyWorkers, queueSize, batchingEnabled."""
        return self._loop.run(self._client.workers())

    def warm(self) -> bool:
        """Opens a connection, so that the first call finds one; whether a server was there."""
        return self._loop.run(self._client.warm())

    def stats(self) -> Stats:
        return self._client.stats()

    def reset_stats(self) -> None:
        self._client.reset_stats()

    def close(self) -> None:
        """Ends what runs and closes every connection. Calls that other threads wait for end with ClientClosed."""
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


async def _entered(url: str, choices: Choices) -> AsyncClient:
    return await AsyncClient(url, **choices).__aenter__()


def _closed(client: AsyncClient, loop: LoopThread) -> None:
    loop.close(client.aclose())
