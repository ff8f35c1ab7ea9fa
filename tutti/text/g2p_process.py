"""One process that reads texts, and the thread that owns it."""

import asyncio
import itertools
import multiprocessing
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from tutti import text as front
from tutti.errors import G2PUnavailable, TuttiError
from tutti.text.chunk import Chunk
from tutti.text.user_lexicon import UserLexicon

NICE = 5
GRACE_S = 5.0
PATIENCE_S = 60.0  # for one answer: a long novel takes a second to clean
_SPAWN = multiprocessing.get_context("spawn")
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class Pull:
    """The next chunks of a stream; `opens` says what is read and how many chunks to pass over, when it is new."""

    stream: int
    n_chunks: int
    opens: "Opens | None"


@dataclass(frozen=True, slots=True)
class Opens:
    text: str
    code: str
    own: UserLexicon | None = None
    patient: bool = False
    n_done: int = 0


@dataclass(frozen=True, slots=True)
class Leave:
    stream: int


class Lost(Exception):
    """The stream is not there any more: its process died, `by_this` very request or by another."""

    def __init__(self, cause: str, *, by_this: bool) -> None:
        super().__init__(cause)
        self.by_this = by_this


Answer = list[Chunk] | TuttiError | None  # None: no such stream
Waiting = asyncio.Future[list[Chunk]]


class Clerk:
    """Texts in, chunks out, one request at a time, small ones first: they are of texts that hardly sound yet.

    A process that died is started again by the next request.
    """

    def __init__(self, pronounce: front.Pronounce, warm: tuple[str, ...]) -> None:
        self.n_streams = 0
        self._pronounce = pronounce
        self._warm = warm
        self._requests: queue.PriorityQueue[tuple[int, int, tuple[Pull, Waiting] | Leave | None]]
        self._requests = queue.PriorityQueue()  # what is first, its number, and what it is
        self._serial = itertools.count()
        self._thread = threading.Thread(target=self._run, name="g2p-clerk", daemon=True)
        self._ended = asyncio.Event()
        self._process: BaseProcess | None = None
        self._closing = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process else None

    async def start(self) -> None:
        """Returns when the languages are loaded; raises what keeps them from being so."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        try:
            await self.ask(Pull(-1, 0, Opens("", "en-us")))
        except Lost as lost:
            raise G2PUnavailable(f"the G2P process does not start: {lost}") from None

    async def ask(self, pull: Pull) -> list[Chunk]:
        """Raises Lost when the stream must be opened again."""
        if self._closing:
            raise G2PUnavailable("the G2P processes are closed")
        answer: Waiting = self._loop.create_future()
        self._requests.put((pull.n_chunks, next(self._serial), (pull, answer)))
        return await answer

    def leave(self, stream: int) -> None:
        self._requests.put((0, next(self._serial), Leave(stream)))

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
        if process := self._process:
            process.kill()

    # From here on: the thread.

    def _run(self) -> None:
        while self._do_next():
            pass
        self._bury()
        self._soon(self._ended.set)

    def _do_next(self) -> bool:
        _, _, request = self._requests.get()
        match request:
            case None:
                return False
            case Leave() as leave:
                if self._process:
                    with suppress(OSError):  # dead, and the stream with it
                        self._line.send(leave)
            case (pull, answer) if not answer.cancelled():
                outcome = self._outcome(pull)
                self._soon(lambda: _settle(answer, outcome))
        return True

    def _outcome(self, pull: Pull) -> list[Chunk] | Exception:
        try:
            if self._process is None:
                self._spawn()
            self._line.send(pull)
            answer = self._hear()
        except (EOFError, OSError) as exc:
            self._bury()
            return Lost(str(exc) or "it died", by_this=True)
        except TuttiError as exc:
            self._bury()
            return exc
        return Lost("its process died", by_this=False) if answer is None else answer

    def _hear(self) -> Answer:
        if not self._line.poll(PATIENCE_S):
            raise TimeoutError(f"no answer in {PATIENCE_S:g} s")
        answer: Answer = self._line.recv()
        return answer

    def _spawn(self) -> None:
        self._line, there = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_inside, args=(there, self._pronounce, self._warm), name="tutti-g2p")
        resource_tracker.ensure_running()  # unblocks signals, so it comes first
        # Until the child can ignore Ctrl-C and SIGTERM, they wait at its door: it inherits the mask.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
            self._process = process
        finally:
            there.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if isinstance(error := self._hear(), TuttiError):
            raise error

    def _bury(self) -> None:
        """Hangs up, then makes sure."""
        process, self._process = self._process, None
        if process:
            self._line.close()
            process.join(GRACE_S if self._closing else 0.0)
            process.kill()
            process.join()
            process.close()

    def _soon(self, act: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(act)


def _settle(answer: Waiting, outcome: list[Chunk] | Exception) -> None:
    if answer.done():
        return  # whoever asked has left
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


# The process:


def _inside(line: Connection, pronounce: front.Pronounce, warm: tuple[str, ...]) -> None:
    """Answers requests until the line ends."""
    for ignored in _SIGNALS:  # the parent's to answer
        signal.signal(ignored, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.nice(NICE)
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    streams: dict[int, Iterator[Chunk]] = {}
    with suppress(EOFError, ConnectionError):  # the parent has hung up
        line.send(_warmed(pronounce, warm))
        while True:
            request = line.recv()
            if isinstance(request, Leave):
                streams.pop(request.stream, None)
            else:
                line.send(_pulled(request, streams, pronounce))


def _pulled(pull: Pull, streams: dict[int, Iterator[Chunk]], pronounce: front.Pronounce) -> Answer:
    try:
        if opens := pull.opens:
            made = front.chunks(opens.text, opens.code, pronounce, opens.own, whole_text=opens.patient)
            streams[pull.stream] = itertools.islice(made, opens.n_done, None)
        if pull.stream not in streams:
            return None
        return list(itertools.islice(streams[pull.stream], pull.n_chunks))
    except Exception as exc:  # noqa: BLE001 - raised by the parent
        return _typed(exc)


def _warmed(pronounce: front.Pronounce, warm: tuple[str, ...]) -> Answer:
    try:
        for code in warm:
            list(front.chunks("1", code, pronounce))
    except Exception as exc:  # noqa: BLE001 - raised by the parent
        return _typed(exc)
    return None


def _typed(exc: Exception) -> TuttiError:
    if isinstance(exc, TuttiError):
        return exc
    error = TuttiError(f"the text front end broke: {type(exc).__name__}: {exc}")
    error.add_note("".join(traceback.format_exception(exc)))
    return error


def _die_with_the_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)
