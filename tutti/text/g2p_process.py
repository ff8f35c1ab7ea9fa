"""A process that turns texts into chunks, and the thread that owns it."""

import asyncio
import itertools
import logging
import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

from tutti import text as front
from tutti.child_process import ChildProcess
from tutti.errors import G2PUnavailable, InvalidInput, TuttiError
from tutti.text.chunk import DEFAULT_PACE, Chunk, ChunkPace
from tutti.text.chunker import ChunkSizes
from tutti.text.options import DEFAULT_OPTIONS, TextOptions
from tutti.text.user_lexicon import UserLexicon

NICE = 5  # added to the niceness of the process; larger yields more to the process that speaks
GRACE_S = 5.0  # for the process to end by itself when it is closed; then it is killed
SOON_S = 0.5  # in which nearly every answer comes; the time of one that takes longer is counted from then on
STALLED_S = 3.0  # without an answer, after which the process counts as not ready
# A process that takes longer for an answer hangs. Less would kill one that loads a language on a busy machine.
HANG_S = 10.0
HANG_CHARACTERS_PER_S = 50_000  # and the time to open a text: its marks are checked, SSML is parsed as a whole
HANG_CHUNKS_PER_S = 20  # and to open it again: the chunks that are done are made again
START_S = 60.0  # for a new process to load its languages
MAX_PULL_S = 0.02  # of computing in one answer; the rest of the chunks comes with the next one, after other texts
log = logging.getLogger(__name__)


class NextChunks(NamedTuple):
    """Request for the next chunks of a stream; `open` is set when the process does not know the stream yet."""

    stream: int
    n_chunks: int
    open: "OpenText | None"


class OpenText(NamedTuple):
    """The text of a stream, and how many of its chunks to skip."""

    text: str
    code: str
    user_lexicon: UserLexicon | None = None
    whole_text: bool = False
    n_done: int = 0
    pace: ChunkPace = DEFAULT_PACE
    options: TextOptions = DEFAULT_OPTIONS


class ChunkBatch(NamedTuple):
    """The next chunks of a stream, fewer than requested if they take long; `ended` if there are no more."""

    chunks: list[Chunk]
    ended: bool


class CloseStream(NamedTuple):
    stream: int


class StreamLost(Exception):
    """The process that held the stream died, either while it worked on this request or before."""

    def __init__(self, cause: str, *, during_request: bool) -> None:
        super().__init__(cause)
        self.during_request = during_request


Answer = ChunkBatch | TuttiError | None  # None: no such stream
ChunksFuture = asyncio.Future[ChunkBatch]


class G2PProcess:
    """Answers one request at a time, the smallest first: small requests come from streams that have just begun.

    After a crash the next request starts the process again.
    """

    def __init__(self, pronounce: front.Pronounce, warm: tuple[str, ...], sizes: ChunkSizes | None = None) -> None:
        self.n_streams = 0
        self._sizes = sizes
        self._pronounce = pronounce
        self._warm = warm
        self._requests: queue.PriorityQueue[tuple[int, int, tuple[NextChunks, ChunksFuture] | CloseStream | None]]
        self._requests = queue.PriorityQueue()  # rank, serial number, request
        self._serial = itertools.count()
        self._thread = threading.Thread(target=self._run, name="g2p-owner", daemon=True)
        self._ended = asyncio.Event()
        self._child: ChildProcess | None = None
        self._connection: Connection
        self._closing = False
        self._asked_s: float | None = None  # when the request was sent that has no answer yet

    @property
    def pid(self) -> int | None:
        child = self._child
        return child.pid if child else None

    @property
    def stalled(self) -> bool:
        """Whether an answer is overdue: the process hangs, or a new one is being started."""
        asked_s = self._asked_s
        return asked_s is not None and time.monotonic() > asked_s + STALLED_S

    async def start(self) -> None:
        """Return when the languages are loaded; raise what prevents it."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        try:
            await self.next_chunks(NextChunks(-1, 0, OpenText("", "en-us")))
        except StreamLost as lost:
            raise G2PUnavailable(f"the G2P process does not start: {lost}") from None

    async def next_chunks(self, request: NextChunks) -> ChunkBatch:
        """Raise StreamLost when the stream must be opened again."""
        if self._closing:
            raise G2PUnavailable("the G2P processes are closed")
        future: ChunksFuture = self._loop.create_future()
        self._requests.put((request.n_chunks, next(self._serial), (request, future)))
        return await future

    def close_stream(self, stream: int) -> None:
        self._requests.put((0, next(self._serial), CloseStream(stream)))

    async def close(self) -> None:
        self._closing = True
        self._requests.put((sys.maxsize, next(self._serial), None))
        if self._thread.is_alive():
            try:
                async with asyncio.timeout(GRACE_S):
                    await self._ended.wait()
            except TimeoutError:
                self.kill()
                await self._ended.wait()

    def kill(self) -> None:
        if child := self._child:
            child.kill()

    # In the thread that owns the process:

    def _run(self) -> None:
        while self._handle_next():
            pass
        self._stop_process()
        self._call_in_loop(self._ended.set)

    def _handle_next(self) -> bool:
        _, _, request = self._requests.get()
        match request:
            case None:
                return False
            case CloseStream():
                if self._child:
                    with suppress(OSError):  # dead, and the stream with it
                        self._connection.send(request)
            case (next_chunks, future) if not future.cancelled():
                result = self._handle(next_chunks)
                self._call_in_loop(lambda: _resolve(future, result))
        return True

    def _handle(self, request: NextChunks) -> ChunkBatch | Exception:
        self._asked_s = time.monotonic()
        try:
            if self._child is None:
                self._start_process()
            self._connection.send(request)
            answer = self._receive(hang_s(request))
        except TuttiError as exc:
            self._stop_process()
            return exc
        except (EOFError, OSError) as exc:
            cause = self._cause(exc)
            self._stop_process()
            return StreamLost(cause, during_request=True)
        finally:
            self._asked_s = None
        return StreamLost("it died before", during_request=False) if answer is None else answer

    def _receive(self, timeout_s: float) -> Answer:
        if not self._connection.poll(SOON_S):
            self._await_answer(timeout_s)
        answer: Answer = self._connection.recv()
        return answer

    def _await_answer(self, timeout_s: float) -> None:
        """Wait so long for an answer that is not there soon; raise if none comes."""
        assert self._child is not None
        cpu_s = self._child.cpu_s()
        if self._connection.poll(timeout_s):
            return
        log.error("the G2P process does not answer; it is replaced")
        if self._child.cpu_s() - cpu_s > timeout_s / 2:  # not stopped, but computing: another would do the same
            raise InvalidInput(f"reading this text takes more than {timeout_s:.0f} s; send less of it at once",
                               param="input")  # fmt: skip
        raise TimeoutError(f"no answer in {timeout_s:g} s")

    def _start_process(self) -> None:
        self._child = ChildProcess("tutti-g2p", _child_main, self._pronounce, self._warm, self._sizes)
        self._connection = Connection(self._child.socket.detach())
        if isinstance(error := self._receive(START_S), TuttiError):
            raise error

    def _cause(self, exc: Exception) -> str:
        if self._child is None or isinstance(exc, TimeoutError):
            return str(exc)
        return f"it {self._child.exit_cause()}"

    def _stop_process(self) -> None:
        child, self._child = self._child, None
        if child:
            self._connection.close()
            child.stop(GRACE_S if self._closing else 0.0)

    def _call_in_loop(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits any more
            self._loop.call_soon_threadsafe(callback)


def hang_s(request: NextChunks) -> float:
    """Return after how many seconds without an answer the process is taken to hang."""
    if request.open is None:
        return HANG_S
    return HANG_S + len(request.open.text) / HANG_CHARACTERS_PER_S + request.open.n_done / HANG_CHUNKS_PER_S


def _resolve(future: ChunksFuture, result: ChunkBatch | Exception) -> None:
    if future.done():
        return  # cancelled by its caller
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


# In the process:


def _child_main(
    end: socket.socket, pronounce: front.Pronounce, warm: tuple[str, ...], sizes: ChunkSizes | None
) -> None:
    """Answer requests until the parent closes the connection."""
    connection = Connection(end.detach())
    os.nice(NICE)
    streams: dict[int, Iterator[Chunk]] = {}
    with suppress(EOFError, ConnectionError):
        connection.send(_warm_up(pronounce, warm))
        while True:
            request = connection.recv()
            if isinstance(request, CloseStream):
                streams.pop(request.stream, None)
            else:
                connection.send(_next_chunks(request, streams, pronounce, sizes))


def _next_chunks(
    request: NextChunks, streams: dict[int, Iterator[Chunk]], pronounce: front.Pronounce, sizes: ChunkSizes | None
) -> Answer:
    try:
        if new := request.open:
            chunks = front.chunks(
                new.text,
                new.code,
                pronounce,
                new.user_lexicon,
                whole_text=new.whole_text,
                sizes=sizes,
                pace=new.pace,
                options=new.options,
            )
            streams[request.stream] = itertools.islice(chunks, new.n_done, None)
        if request.stream not in streams:
            return None
        batch = _take(streams[request.stream], request.n_chunks)
        if batch.ended:
            del streams[request.stream]
        return batch
    except Exception as exc:  # noqa: BLE001 - raised by the parent
        return _as_tutti_error(exc)


def _take(stream: Iterator[Chunk], n_chunks: int) -> ChunkBatch:
    """Take so many chunks, or as many as can be made in MAX_PULL_S."""
    chunks: list[Chunk] = []
    stop_s = time.monotonic() + MAX_PULL_S
    while len(chunks) < n_chunks:
        chunk = next(stream, None)
        if chunk is None:
            return ChunkBatch(chunks, ended=True)
        chunks.append(chunk)
        if time.monotonic() > stop_s:
            break
    return ChunkBatch(chunks, ended=False)


def _warm_up(pronounce: front.Pronounce, warm: tuple[str, ...]) -> Answer:
    try:
        for code in warm:
            list(front.chunks("1", code, pronounce))
    except Exception as exc:  # noqa: BLE001 - raised by the parent
        return _as_tutti_error(exc)
    return None


def _as_tutti_error(exc: Exception) -> TuttiError:
    if isinstance(exc, TuttiError):
        return exc
    error = TuttiError(f"the text front end failed: {type(exc).__name__}: {exc}")
    error.add_note("".join(traceback.format_exception(exc)))
    return error
