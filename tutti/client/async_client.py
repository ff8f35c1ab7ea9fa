"""The client: every call is implemented here once; `Client` runs it for blocking code."""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, Self, TypeVar, Unpack

import httpx2

from tutti.client.audio import (
    Audio,
    Piece,
    facts_json,
    notices_of_headers,
    parse_audio,
    parse_facts,
    sample_rate_of,
    with_facts,
)
from tutti.client.cache import AudioCache, FileCache, MemoryCache, user_cache_folder
from tutti.client.call_stats import Call, CallLog, Stats, Stopwatch
from tutti.client.decoders import AudioSplitter, EventDecoder
from tutti.client.errors import ClientClosed
from tutti.client.live import AsyncLive
from tutti.client.options import ClientOptions, client_settings, server_of
from tutti.client.request import STREAM_ABOVE, ClientRequest, SpeechOptions, TimeKind, build_request, check_options
from tutti.client.stream import AsyncStream
from tutti.client.transport import TimedRequest, Transport, cut_short
from tutti.errors import InvalidInput, TuttiError

DEFAULT_URL = "http://127.0.0.1:8880"
LOAD_S = 120.0  # for a server to load its model; takes seconds, on a GPU with compiled shapes longer
T = TypeVar("T")
log = logging.getLogger("tutti.client")


class AsyncClient:
    """Speech from tutti, or any server with OpenAI's speech route: `async with AsyncClient(url) as client`."""

    def __init__(self, url: str = DEFAULT_URL, **options: Unpack[ClientOptions]) -> None:
        settings = client_settings(options)
        self.url = server_of(url)
        self._settings = settings
        self._transport = Transport(self.url, settings, asyncio.sleep)
        folder = settings.cache_folder or user_cache_folder()
        files = FileCache(folder, settings.file_cache_bytes) if settings.file_cache_bytes else None
        self._cache = AudioCache(MemoryCache(settings.memory_cache_bytes), files)
        self._calls = CallLog()
        self._background: set[asyncio.Task[Any]] = set()
        self._closed = False

    # Speaking

    async def speak(
        self,
        text: str,
        *,
        stream: bool | None = None,
        deadline_s: float | None = None,
        **options: Unpack[SpeechOptions],
    ) -> Audio:
        """Return the complete audio. Long texts are fetched as a stream by default, so that the timeout is per read."""
        request = build_request(text, options, format="wav", voice=self._settings.voice)
        watch = self._new_watch("speak")
        if cached := await self._cache.get(request.key(self.url)):
            return self._from_cache(cached, watch)
        stream = len(text) > STREAM_ABOVE if stream is None else stream
        try:
            headers, data = await self._transport.fetch(self._timed(request, stream, deadline_s), watch)
        except BaseException as error:
            self._record_failure(watch, error)
            raise
        call = watch.call()
        self._record(call)
        audio = parse_audio(data, request.format, headers.get("content-type", ""), headers.get("x-audio-duration"))
        audio = replace(audio, notices=notices_of_headers(headers))
        await self._cache.put(request.key(self.url), audio)
        return replace(audio, call=call)

    def stream(
        self,
        text: str,
        *,
        words: bool = True,
        timestamps: Iterable[TimeKind] = (),
        deadline_s: float | None = None,
        **options: Unpack[SpeechOptions],
    ) -> AsyncStream:
        """Return a stream of audio pieces, PCM by default, with word times, delivered while synthesis runs.

        `timestamps` asks for more times: "phoneme", "viseme".
        """
        times = frozenset([*timestamps, *(("word",) if words else ())])
        request = build_request(text, options, format="pcm", voice=self._settings.voice, times=times)
        return AsyncStream(lambda watch: self._pieces(request, watch, deadline_s), self._new_watch("stream"))

    async def speak_many(
        self, texts: Iterable[str], *, max_concurrency: int | None = None, **options: Unpack[SpeechOptions]
    ) -> list[Audio | TuttiError]:
        """Return for each text, in order, its audio or its error."""
        check_options(options, "max_concurrency")
        slots = asyncio.Semaphore(max_concurrency or self._settings.max_workers)

        async def speak_one(text: str) -> Audio | TuttiError:
            async with slots:
                try:
                    return await self.speak(text, **options)
                except TuttiError as error:
                    return error

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(speak_one(text)) for text in texts]
        return [task.result() for task in tasks]

    def speak_async(
        self, text: str, on_audio_ready: Callable[[Audio], Awaitable[None] | None], **options: Unpack[SpeechOptions]
    ) -> asyncio.Task[Audio]:
        """Speak in the background and call back with the audio; the task has the audio or the error too."""
        check_options(options, "on_audio_ready")

        async def run() -> Audio:
            audio = await self.speak(text, **options)
            result = on_audio_ready(audio)
            if inspect.isawaitable(result):
                await result
            return audio

        return self._in_background(run())

    async def prefetch(self, texts: Iterable[str], **options: Unpack[SpeechOptions]) -> int:
        """Fetch texts into the cache; return how many of them are cached now."""
        results = await self.speak_many(texts, **options)
        return sum(isinstance(result, Audio) for result in results)

    def live(self, *, timestamps: Iterable[TimeKind] = (), **options: Unpack[SpeechOptions]) -> AsyncLive:
        """Open a session for text that is still being written: `async with client.live() as live`.

        Word times are always sent; `timestamps` asks for more: "phoneme", "viseme".
        """
        self._check_open()
        check_options(options, "timestamps")
        merged = {"voice": self._settings.voice, **options}
        times = frozenset(("word", *timestamps))
        chunk_bytes = self._settings.chunk_bytes
        return AsyncLive(self._transport, merged, times, chunk_bytes, lambda: self._new_watch("live"), self._record)

    # The server

    async def voices(self) -> list[dict[str, Any]]:
        """List the voices with their properties."""
        response = await self._get("/v1/audio/voices")
        return [voice if isinstance(voice, dict) else {"id": voice} for voice in response.get("voices", [])]

    async def health(self) -> dict[str, Any]:
        return await self._get("/health")

    async def workers(self) -> dict[str, Any]:
        """Return totalWorkers, readyWorkers, busyWorkers, asleepWorkers, queueSize and batchingEnabled."""
        return await self._get("/health/workers")

    async def warm(self) -> bool:
        """Open a connection for the first call, and load a model that sleeps; return whether the server is warm."""
        try:
            if (await self._get("/health")).get("asleepWorkers"):  # tutti's; only a text wakes one
                request = build_request("Hello.", {}, format="pcm", voice=self._settings.voice)
                await self._transport.fetch(self._timed(request, True, LOAD_S), Stopwatch("warm", self._settings.clock))
        except TuttiError as error:
            log.debug("not warm: %s", error.message)  # the first call will raise it
            return False
        return True

    # Numbers

    def stats(self) -> Stats:
        return self._calls.stats()

    def reset_stats(self) -> None:
        self._calls.reset()

    # Opening and closing

    async def __aenter__(self) -> Self:
        if self._settings.prewarm:
            self._in_background(self.warm())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel background tasks and close every connection."""
        self._closed = True
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._transport.aclose()

    # Internals

    async def _pieces(
        self, request: ClientRequest, watch: Stopwatch, deadline_s: float | None
    ) -> AsyncGenerator[list[Piece]]:
        if cached := await self._cache.get(request.key(self.url)):
            self._from_cache(cached, watch)
            yield [
                *self._splitter(request, cached.sample_rate).feed(cached.data),
                *parse_facts(facts_json(cached)),
            ]
            return
        response = None
        received, facts = bytearray(), list[Piece]()
        try:
            response = await self._transport.open(self._timed(request, True, deadline_s), watch)
            kind = response.headers.get("content-type", "")
            rate = next((int(str(v)) for name, v in request.options if name == "sample_rate"), sample_rate_of(kind))
            splitter = self._splitter(request, rate)
            decoder = EventDecoder(splitter) if kind.startswith("text/event-stream") else splitter
            try:
                async for chunk in response.chunks():
                    pieces = decoder.feed(chunk)
                    for piece in pieces:
                        watch.n_bytes += len(piece.audio)
                        received += piece.audio if watch.n_bytes <= self._cache.max_bytes else b""
                        facts += [] if piece.audio else [piece]
                    if pieces:
                        yield pieces
            except (httpx2.TransportError, httpx2.StreamError, TimeoutError) as error:
                raise cut_short(error, watch.n_bytes) from error
            if pieces := decoder.end():
                yield pieces
        except GeneratorExit:
            self._record(watch.call())  # leaving a stream early is not a failure
            raise
        except BaseException as error:
            self._record_failure(watch, error)
            raise
        finally:
            if response:
                await response.aclose()
        self._record(watch.call())
        if len(received) == watch.n_bytes:
            audio = with_facts(Audio(bytes(received), request.format, rate), facts)
            await self._cache.put(request.key(self.url), audio)

    def _splitter(self, request: ClientRequest, sample_rate: int) -> AudioSplitter:
        return AudioSplitter(self._settings.chunk_bytes, sample_rate if request.format == "pcm" else None)

    def _timed(self, request: ClientRequest, stream: bool, deadline_s: float | None) -> TimedRequest:
        """Limit a complete response as a whole, and a stream only between two reads."""
        settings = self._settings
        if not stream and deadline_s is None:
            deadline_s = settings.synthesis_timeout_s
        deadline = None if deadline_s is None else asyncio.get_running_loop().time() + deadline_s
        whole_s = max(settings.synthesis_timeout_s, deadline_s or 0)
        return TimedRequest(request.body(stream=stream), settings.streaming_timeout_s if stream else whole_s, deadline)

    def _from_cache(self, audio: Audio, watch: Stopwatch) -> Audio:
        watch.n_bytes = len(audio.data)
        watch.mark_first_byte("")
        call = watch.call(cached=True)
        self._record(call)
        return replace(audio, call=call)

    def _new_watch(self, kind: str) -> Stopwatch:
        self._check_open()
        return Stopwatch(kind, self._settings.clock)

    def _record_failure(self, watch: Stopwatch, error: BaseException) -> None:
        self._record(watch.call(error.code if isinstance(error, TuttiError) else "cancelled"))

    def _record(self, call: Call) -> None:
        self._calls.add(call)
        if self._settings.on_call:
            self._settings.on_call(call)

    async def _get(self, path: str) -> dict[str, Any]:
        self._check_open()
        content = await self._transport.get_json(path, self._settings.health_timeout_s)
        if not isinstance(content, dict):
            raise InvalidInput(f"{self.url}{path} did not answer as a speech server does", param="url")
        return content

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("this client is closed")

    def _in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task
