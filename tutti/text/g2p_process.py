"""The process that turns texts into chunks, as the server sees it: started, watched and replaced by a task."""

import asyncio
import logging
import multiprocessing
import socket
import time
from collections import deque
from collections.abc import Callable
from ctypes import c_longlong
from dataclasses import dataclass, field
from typing import Any, cast

from tutti import text as front
from tutti.errors import G2PUnavailable, InvalidInput, NotReady, TuttiError
from tutti.process.child import ChildProcess
from tutti.process.messages import MessageReader, pack
from tutti.text import g2p_child
from tutti.text.chunker import ChunkSizes
from tutti.text.g2p_messages import Answer, ChunkBatch, CloseText, NextChunks, OpenText

GRACE_S = 1.0  # for the process to end by itself when it is closed; then it is killed
SOON_S = 0.5  # in which nearly every answer comes; the computing of one that takes longer is measured from then on
STALLED_S = 3.0  # without an answer or a process, after which texts count as not being read
# A process that takes longer for an answer hangs. Less would kill one that loads a language on a busy machine.
HANG_S = 10.0
HANG_CHARACTERS_PER_S = 50_000  # and the time to open a text: its marks are checked, SSML is parsed as a whole
START_S = 60.0  # for a new process to load its languages
MAX_FAILED_STARTS = 2  # in a row, after which texts are refused until a start succeeds; more lets them wait longer
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.5, 30.0  # wait before the next start then; it doubles up to the maximum
log = logging.getLogger(__name__)


class TextLost(Exception):
    """The process that held the text is gone, while it read this text or another."""

    def __init__(self, cause: str, *, during_request: bool) -> None:
        super().__init__(cause)
        self.during_request = during_request


@dataclass(slots=True, eq=False)
class OpenedText:
    """A text in the process, and the answers that nobody has taken yet."""

    opened: OpenText
    n_owed: int = 1  # answers to come
    answers: deque[ChunkBatch | Exception] = field(default_factory=deque)
    arrived: asyncio.Future[None] | None = None  # of the next answer, while somebody waits for it

    def put(self, answer: ChunkBatch | Exception) -> None:
        self.answers.append(answer)
        if self.arrived and not self.arrived.done():
            self.arrived.set_result(None)


class G2PProcess:
    """Sends texts to the process and sorts its answers. Everything is in the event loop, and nothing there waits for a
    message: bytes are read and written as far as possible.

    A process that dies or hangs is replaced at once; one that cannot be started is tried again later and later.
    """

    def __init__(self, pronounce: front.Pronounce, warm: tuple[str, ...], sizes: ChunkSizes | None = None) -> None:
        # Written by the process: the text that it reads. So it is known which one it died of.
        self._current = multiprocessing.get_context("spawn").RawValue(c_longlong, g2p_child.NO_TEXT)
        self._args = pronounce, warm, sizes, self._current
        self._texts: dict[int, OpenedText] = {}
        self._n_owed = 0  # answers to come of all texts
        self._child: ChildProcess | None = None
        self._connection: _Connection | None = None  # while texts can be sent
        self._down_since_s: float | None = time.monotonic()
        self._refusal: str | None = None  # why texts are not accepted
        self._quiet_since_s = 0.0  # the last answer, or the request after which one was owed
        self._cpu_s: float | None = None  # of the process, once an answer did not come soon
        self._watch: asyncio.TimerHandle | None = None
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    @property
    def n_texts(self) -> int:
        return len(self._texts)

    @property
    def stalled(self) -> bool:
        """Whether an answer is overdue: the process hangs, or a new one is being started."""
        since_s = self._down_since_s or (self._quiet_since_s if self._n_owed else None)
        return self.refuses or (since_s is not None and time.monotonic() > since_s + STALLED_S)

    @property
    def refuses(self) -> bool:
        """Whether texts are refused, because the process does not start."""
        return self._refusal is not None

    async def start(self) -> None:
        """Return when the languages are loaded; raise what prevents it."""
        self._loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = self._loop.create_future()
        self._supervisor = asyncio.create_task(self._supervise(started))
        await started

    def open(self, opened: OpenText) -> None:
        """Begin to read a text; raise NotReady if no process can be started."""
        if self._supervisor is None or self._supervisor.done():
            raise G2PUnavailable("the G2P processes are closed")
        if self._refusal is not None:
            raise NotReady(self._refusal)
        text = self._texts[opened.number] = OpenedText(opened, n_owed=0)
        self._owe(text)
        if self._connection:
            self._connection.send(opened)  # else when there is a process

    async def next_chunks(self, number: int, due_s: Callable[[], float]) -> ChunkBatch:
        """The next chunks of a text, whose audio is needed at `due_s()`; raise TextLost if it must be opened again."""
        text = self._texts[number]
        if not text.answers and not text.n_owed:
            if self._connection is None:
                raise TextLost("it died before", during_request=False)
            self._owe(text)
            self._connection.send(NextChunks(number, due_s()))
        if not text.answers:
            text.arrived = self._loop.create_future()
            await text.arrived
        answer = text.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close_text(self, number: int, *, ended: bool) -> None:
        """Forget a text; one that has ended is forgotten by the process already."""
        text = self._texts.pop(number, None)
        if text:
            self._n_owed -= text.n_owed
        if not ended and self._connection:
            self._connection.send(CloseText(number))

    async def close(self) -> None:
        if self._supervisor and not self._supervisor.done():
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])

    def kill(self) -> None:
        if child := self._child:
            child.kill()

    # -- answers ---------------------------------------------------------------------------------------------------

    def _owe(self, text: OpenedText) -> None:
        """Expect one more answer for this text."""
        if not self._n_owed:
            self._quiet_since_s = time.monotonic()
        text.n_owed += 1
        self._n_owed += 1
        if self._watch is None:
            self._watch = self._loop.call_later(SOON_S, self._look)

    def _answered(self, answer: Answer) -> None:
        self._quiet_since_s = time.monotonic()
        text, result = self._texts.get(answer.number), answer.result
        if text is None:
            return  # closed by its caller
        text.n_owed -= 1
        self._n_owed -= 1
        if isinstance(result, ChunkBatch) and result.has_sequel:
            self._owe(text)
        text.put(TextLost("it died before", during_request=False) if result is None else result)

    def _look(self) -> None:
        """Replace the process if it does not answer; called again and again while an answer is owed."""
        self._watch = None
        if not self._n_owed:
            return
        quiet_s, child = time.monotonic() - self._quiet_since_s, self._child
        text = self._texts.get(self._current.value)
        if self._connection is None or child is None or quiet_s < SOON_S:
            self._cpu_s = None
        elif self._cpu_s is None:
            self._cpu_s = child.cpu_s()
        elif quiet_s > (limit_s := hang_s(text.opened if text else None)):
            log.error("the G2P process does not answer; it is replaced")
            # Not stopped, but computing: another would do the same.
            if text and child.cpu_s() - self._cpu_s > limit_s / 2:
                self._fail(text, InvalidInput(
                    f"reading this text takes more than {limit_s:.0f} s; send less of it at once", param="input"
                ))  # fmt: skip
            self._connection.lose(f"it gave no answer in {limit_s:g} s")
            self._cpu_s = None
        self._watch = self._loop.call_later(SOON_S, self._look)

    def _fail(self, text: OpenedText, error: Exception) -> None:
        self._n_owed -= text.n_owed
        text.n_owed = 0
        text.put(error)

    # -- the process -----------------------------------------------------------------------------------------------

    async def _supervise(self, started: asyncio.Future[None]) -> None:
        """Keep a process running; the first start must succeed."""
        n_failed = 0
        try:
            while True:
                try:
                    connection = await self._start_process()
                except (TuttiError, OSError) as exc:
                    if not started.done():
                        started.set_exception(exc)
                        return
                    n_failed += 1
                    await self._await_restart(exc, n_failed)
                    continue
                n_failed = 0
                if not started.done():
                    started.set_result(None)
                self._begin(connection)
                cause = await connection.lost
                await self._end(cause)
        finally:
            if self._connection:
                self._connection.close()
            self._connection = None
            for text in self._texts.values():
                self._fail(text, G2PUnavailable("the G2P processes are closed"))
            await self._stop_process(GRACE_S)
            if self._watch:
                self._watch.cancel()

    async def _start_process(self) -> "_Connection":
        """Return when it is ready; raise TuttiError or OSError if it is not to be."""
        child = self._child = ChildProcess("tutti-g2p", g2p_child.main, *self._args)
        connection = _Connection(self._loop, self._answered)
        try:
            end = socket.socket(fileno=child.socket.detach())  # closed by the loop alone
            await self._loop.create_unix_connection(lambda: connection, sock=end)
            async with asyncio.timeout(START_S):
                ends: tuple[asyncio.Future[Any], ...] = connection.started, connection.lost
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not connection.started.done():
                raise G2PUnavailable(f"the G2P process does not start: {await self._exit_cause()}")
            if error := connection.started.result():
                raise error
        except BaseException:
            connection.close()
            await self._stop_process(0.0)
            raise
        return connection

    async def _await_restart(self, exc: Exception, n_failed: int) -> None:
        """Refuse all texts after some failed starts, and wait until another is worth a try."""
        log.error("start failed, %d in a row: %s", n_failed, exc)
        if n_failed < MAX_FAILED_STARTS:
            return
        self._refusal = f"{exc}; it is tried again in a moment"
        for text in self._texts.values():
            if text.n_owed:
                self._fail(text, NotReady(self._refusal))
        await asyncio.sleep(min(FIRST_BACKOFF_S * 2 ** min(n_failed - MAX_FAILED_STARTS, 16), MAX_BACKOFF_S))

    def _begin(self, connection: "_Connection") -> None:
        """Send the texts that wait for a process."""
        self._connection, self._down_since_s, self._refusal = connection, None, None
        self._quiet_since_s = time.monotonic()
        for text in self._texts.values():
            if text.n_owed:
                connection.send(text.opened)

    async def _end(self, cause: str) -> None:
        """Tell the callers that wait for an answer that their process is gone."""
        self._connection, self._down_since_s = None, time.monotonic()
        number, self._current.value = self._current.value, g2p_child.NO_TEXT
        cause = cause or await self._exit_cause()
        for text in list(self._texts.values()):
            if text.n_owed:
                self._fail(text, TextLost(cause, during_request=text.opened.number == number))
        await self._stop_process(0.0)

    async def _exit_cause(self) -> str:
        assert self._child is not None
        return f"it {await asyncio.to_thread(self._child.exit_cause)}"

    async def _stop_process(self, grace_s: float) -> None:
        child, self._child = self._child, None
        if child:
            await asyncio.to_thread(child.stop, grace_s)


def hang_s(opened: OpenText | None) -> float:
    """Return after how many seconds without an answer a process that reads this text is taken to hang."""
    return HANG_S + (len(opened.text) / HANG_CHARACTERS_PER_S if opened else 0.0)


class _Connection(asyncio.Protocol):
    """The socket to the process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, answered: Callable[[Answer], None]) -> None:
        self.started: asyncio.Future[TuttiError | None] = loop.create_future()
        self.lost: asyncio.Future[str] = loop.create_future()  # why, or "" if the process closed it
        self._answered = answered
        self._incoming = MessageReader()
        self._transport: asyncio.Transport | None = None

    def send(self, message: object) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.writelines(pack(message).parts)

    def lose(self, cause: str) -> None:
        """Give the process up."""
        self.close()
        if not self.lost.done():
            self.lost.set_result(cause)

    def close(self) -> None:
        if self._transport:
            self._transport.abort()

    # Called by the event loop:

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for answer in self._incoming.feed(data):
            if not self.started.done():
                self.started.set_result(answer.result)
            else:
                self._answered(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result("")
