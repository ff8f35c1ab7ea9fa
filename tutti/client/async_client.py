"""The client: every call is written here, once; `Client` waits for what `AsyncClient` awaits."""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Self, TypeVar, Unpack

import httpx2

from tutti.client.audio import Audio, Piece, Word, described, rate_of
from tutti.client.cache import Cache, FileCache, MemoryCache, user_folder
from tutti.client.call_stats import Call, Ledger, Stats, Watch
from tutti.client.decoders import Cutter, Events, Reader
from tutti.client.errors import ClientClosed
from tutti.client.live import AsyncLive
from tutti.client.options import Choices, Options, server_of
from tutti.client.request import STREAMED_FROM, Wish, Wishes, wish
from tutti.client.retries import Retries
from tutti.client.stream import AsyncStream
from tutti.client.transport import Ask, Timeouts, Wire, cut_short
from tutti.errors import InvalidInput, TuttiError

DEFAULT_URL = "http://127.0.0.1:8880"
T = TypeVar("T")
log = logging.getLogger("tutti.client")


class AsyncClient:
    """Speech from a tutti server, or any with OpenAI's speech route: `async with AsyncClient(url) as client`."""

    def __init__(self, url: str = DEFAULT_URL, **choices: Unpack[Choices]) -> None:
        options = Options(**choices)
        self.url = server_of(url)
        self._options = options
        self._timeouts = Timeouts(
            *(options.connect_timeout_s, options.health_timeout_s),
            *(options.synthesis_timeout_s, options.streaming_timeout_s),
        )
        self._wire = Wire(
            self.url,
            api_key=options.api_key,
            headers=options.headers,
            pool_size=options.pool_size,
            http2=bool(find_spec("h2")) and self.url.startswith("https") if options.http2 is None else options.http2,
            verify=options.verify,
            timeouts=self._timeouts,
            retries=Retries(options.retries),
            sleep=asyncio.sleep,
        )
        folder = options.cache_folder or user_folder()
        files = FileCache(folder, options.file_cache_bytes) if options.file_cache_bytes else None
        self._cache = Cache(MemoryCache(options.memory_cache_bytes), files)
        self._ledger = Ledger()
        self._behind: set[asyncio.Task[Any]] = set()  # what runs in the background
        self._closed = False

    # Speaking

    async def speak(
        self, text: str, *, stream: bool | None = None, deadline_s: float | None = None, **wishes: Unpack[Wishes]
    ) -> Audio:
        """The whole sound. Long texts are fetched as a stream unless told, so that no text is too long for its time."""
        asked = wish(text, wishes, format="wav", voice=self._options.voice)
        watch = self._watch("speak")
        if kept := await self._cache.get(asked.key(self.url)):
            return self._from_cache(kept, watch)
        streamed = len(text) > STREAMED_FROM if stream is None else stream
        try:
            headers, data = await self._wire.whole(self._ask(asked, streamed, deadline_s), watch)
        except BaseException as error:
            self._failed(watch, error)
            raise
        call = watch.call()
        self._told(call)
        audio = described(data, asked.format, headers.get("content-type", ""), headers.get("x-audio-duration"))
        await self._cache.put(asked.key(self.url), audio)
        return replace(audio, call=call)

    def stream(
        self, text: str, *, words: bool = True, deadline_s: float | None = None, **wishes: Unpack[Wishes]
    ) -> AsyncStream:
        """Pieces of PCM, or of the format asked for, while they are made, with the times of the words."""
        asked = wish(text, wishes, format="pcm", voice=self._options.voice, events=words)
        return AsyncStream(lambda watch: self._pieces(asked, watch, deadline_s), self._watch("stream"))

    async def speak_many(
        self, texts: Iterable[str], *, max_concurrency: int | None = None, **wishes: Unpack[Wishes]
    ) -> list[Audio | TuttiError]:
        """For each text, in order, its sound or what went wrong with it."""
        turn = asyncio.Semaphore(max_concurrency or self._options.max_workers)

        async def one(text: str) -> Audio | TuttiError:
            async with turn:
                try:
                    return await self.speak(text, **wishes)
                except TuttiError as error:
                    return error

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(text)) for text in texts]
        return [task.result() for task in tasks]

    def speak_async(
        self, text: str, on_audio_ready: Callable[[Audio], Awaitable[None] | None], **wishes: Unpack[Wishes]
    ) -> asyncio.Task[Audio]:
        """Speaks in the background and hands over the sound; the task has it too, and the error if there was one."""

        async def spoken() -> Audio:
            audio = await self.speak(text, **wishes)
            done = on_audio_ready(audio)
            if inspect.isawaitable(done):
                await done
            return audio

        return self._in_background(spoken())

    async def prefetch(self, texts: Iterable[str], **wishes: Unpack[Wishes]) -> int:
        """Fetches what will be said soon into the cache; how many of the texts are there now."""
        heard = await self.speak_many(texts, **wishes)
        return sum(isinstance(audio, Audio) for audio in heard)

    def live(self, **wishes: Unpack[Wishes]) -> AsyncLive:
        """Text in as it is written, audio out as it is spoken: `async with client.live() as live`."""
        self._check_open()
        told = {"voice": self._options.voice, **wishes}
        return AsyncLive(self._wire, told, self._options.chunk_bytes, lambda: self._watch("live"), self._told)

    # The server

    async def voices(self) -> list[dict[str, Any]]:
        """Every voice with what is known about it."""
        listed = await self._get("/v1/audio/voices")
        return [voice if isinstance(voice, dict) else {"id": voice} for voice in listed.get("voices", [])]

    async def health(self) -> dict[str, Any]:
        return await self._get("/health")

    async def workers(self) -> dict[str, Any]:
        """totalWorkers, readyWorkers, busyWorkers, queueSize, batchingEnabled."""
        return await self._get("/health/workers")

    async def warm(self) -> bool:
        """Opens a connection, so that the first call finds one; whether a server was there."""
        try:
            await self._get("/health")
        except TuttiError as error:
            log.debug("not warm: %s", error.message)  # the first call will say it to someone who can act
            return False
        return True

    # Numbers

    def stats(self) -> Stats:
        return self._ledger.stats()

    def reset_stats(self) -> None:
        self._ledger.reset()

    # Life

    async def __aenter__(self) -> Self:
        if self._options.prewarm:
            self._in_background(self.warm())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends what runs in the background and closes every connection."""
        self._closed = True
        for task in self._behind:
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)
        await self._wire.aclose()

    # Behind the scenes

    async def _pieces(self, asked: Wish, watch: Watch, deadline_s: float | None) -> AsyncGenerator[list[Piece]]:
        if kept := await self._cache.get(asked.key(self.url)):
            self._from_cache(kept, watch)
            yield [
                *self._cutter(asked, kept.sample_rate).feed(kept.data),
                *([Piece(b"", kept.words)] if kept.words else []),
            ]
            return
        opened = None
        said, words = bytearray(), list[Word]()
        try:
            opened = await self._wire.open(self._ask(asked, True, deadline_s), watch)
            kind = opened.headers.get("content-type", "")
            in_events = kind.startswith("text/event-stream")
            rate = next((int(str(v)) for name, v in asked.wishes if name == "sample_rate"), rate_of(kind))
            cutter = self._cutter(asked, rate)
            reader: Reader = Events(cutter) if in_events else cutter
            try:
                async for chunk in opened.chunks():
                    pieces = reader.feed(chunk)
                    for piece in pieces:
                        watch.n_bytes += len(piece.audio)
                        said += piece.audio if watch.n_bytes <= self._cache.max_bytes else b""
                        words += piece.words
                    if pieces:
                        yield pieces
            except (httpx2.TransportError, httpx2.StreamError, TimeoutError) as error:
                raise cut_short(error, watch.n_bytes) from error
            if pieces := reader.end():
                yield pieces
        except GeneratorExit:
            self._told(watch.call())  # who has heard enough may leave
            raise
        except BaseException as error:
            self._failed(watch, error)
            raise
        finally:
            if opened:
                await opened.aclose()
        self._told(watch.call())
        if len(said) == watch.n_bytes:
            whole = Audio(bytes(said), asked.format, rate, None, tuple(words))
            await self._cache.put(asked.key(self.url), whole)

    def _cutter(self, asked: Wish, sample_rate: int) -> Cutter:
        return Cutter(self._options.chunk_bytes, sample_rate if asked.format == "pcm" else None)

    def _ask(self, asked: Wish, streamed: bool, deadline_s: float | None) -> Ask:
        """A whole answer has its time; a stream may take any, as long as it does not fall silent."""
        if not streamed and deadline_s is None:
            deadline_s = self._timeouts.synthesis_s
        until = None if deadline_s is None else asyncio.get_running_loop().time() + deadline_s
        gap_s = self._timeouts.streaming_s if streamed else max(self._timeouts.synthesis_s, deadline_s or 0)
        return Ask(asked.body(whole=not streamed), gap_s, until)

    def _from_cache(self, kept: Audio, watch: Watch) -> Audio:
        watch.n_bytes = len(kept.data)
        call = watch.call(cached=True)
        self._told(call)
        return replace(kept, call=call)

    def _watch(self, kind: str) -> Watch:
        self._check_open()
        return Watch(kind, self._options.clock)

    def _failed(self, watch: Watch, error: BaseException) -> None:
        self._told(watch.call(error.code if isinstance(error, TuttiError) else "cancelled"))

    def _told(self, call: Call) -> None:
        self._ledger.add(call)
        if self._options.on_call:
            self._options.on_call(call)

    async def _get(self, path: str) -> dict[str, Any]:
        self._check_open()
        answer = await self._wire.get(path, self._timeouts.health_s)
        if not isinstance(answer, dict):
            raise InvalidInput(f"{self.url}{path} is not what a speech server answers", param="url")
        return answer

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("this client is closed")

    def _in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        return task
