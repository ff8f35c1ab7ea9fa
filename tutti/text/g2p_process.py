"""The process that turns texts into chunks, as the server sees it: which texts it reads, and what it owes them."""

import asyncio
import logging
import multiprocessing
import time
from collections import deque
from collections.abc import Callable
from ctypes import c_longlong
from dataclasses import dataclass, field

from tutti import text as front
from tutti.errors import G2PUnavailable, InvalidInput, NotReady, TuttiError
from tutti.process.supervisor import ChildLost, Supervisor
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
log = logging.getLogger(__name__)


class TextLost(Exception):
    """The process that held the text is gone, while it read this text or another."""

    def __init__(self, cause: str, *, during_request: bool) -> None:
        super().__init__(cause)
        self.during_request = during_request


@dataclass(slots=True, eq=False)
class TextInProcess:
    """A text in the process, and its answers that its caller has not taken yet."""

    request: OpenText
    n_owed: int = 1  # answers to come
    answers: deque[ChunkBatch | Exception] = field(default_factory=deque)
    arrival: asyncio.Future[None] | None = None  # of the next answer, while its caller waits

    def put(self, answer: ChunkBatch | Exception) -> None:
        self.answers.append(answer)
        if self.arrival and not self.arrival.done():
            self.arrival.set_result(None)


class G2PProcess:
    """Sends texts to the process and sorts its answers.

    A process that dies or hangs is replaced at once; one that cannot be started is tried again later and later.
    """

    def __init__(self, pronounce: front.Pronounce, warm: tuple[str, ...], sizes: ChunkSizes | None = None) -> None:
        # Written by the process: the text that it reads. So it is known which one it died of.
        self._current = multiprocessing.get_context("spawn").RawValue(c_longlong, g2p_child.NO_TEXT)
        self._supervisor = Supervisor(
            "tutti-g2p", g2p_child.main, (pronounce, warm, sizes, self._current),
            began=self._began, receive=self._receive, lost=self._lost, grace_s=GRACE_S,
        )  # fmt: skip
        self._texts: dict[int, TextInProcess] = {}
        self._n_owed = 0  # answers to come of all texts
        self._is_ready = False  # texts can be sent
        self._is_closed = False
        self._started: asyncio.Future[None] | None = None
        self._n_failed = 0  # starts in a row
        self._down_since_s: float | None = time.monotonic()
        self._refusal: str | None = None  # why texts are not accepted
        self._quiet_since_s = 0.0  # the last answer, or the request after which one was owed
        self._cpu_s: float | None = None  # of the process, once an answer did not come soon
        self._watch: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._supervisor.pid

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
        self._started = self._loop.create_future()
        self._supervisor.start()
        await self._started

    def open(self, request: OpenText) -> None:
        """Begin to read a text; raise NotReady if no process can be started."""
        if self._started is None or self._is_closed:
            raise G2PUnavailable("the G2P processes are closed")
        if self._refusal is not None:
            raise NotReady(self._refusal)
        text = self._texts[request.number] = TextInProcess(request, n_owed=0)
        self._owe(text)
        self._send(request)  # else when there is a process

    async def next_chunks(self, number: int, due_s: Callable[[], float]) -> ChunkBatch:
        """The next chunks of a text, whose audio is needed at `due_s()`; raise TextLost if it must be opened again."""
        text = self._texts[number]
        if not text.answers and not text.n_owed:
            if not self._is_ready:
                raise TextLost("it died before", during_request=False)
            self._owe(text)
            self._send(NextChunks(number, due_s()))
        if not text.answers:
            text.arrival = self._loop.create_future()
            await text.arrival
        answer = text.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close_text(self, number: int, *, ended: bool) -> None:
        """Forget a text; one that has ended is forgotten by the process already."""
        text = self._texts.pop(number, None)
        if text:
            self._n_owed -= text.n_owed
        if not ended:
            self._send(CloseText(number))

    async def close(self) -> None:
        self._is_closed, self._is_ready = True, False
        for text in self._texts.values():
            self._fail(text, G2PUnavailable("the G2P processes are closed"))
        if self._watch:
            self._watch.cancel()
        if self._started and not self._started.done():
            self._started.set_exception(G2PUnavailable("the G2P processes are closed"))
        await self._supervisor.close()

    # -- answers ---------------------------------------------------------------------------------------------------

    def _send(self, message: OpenText | NextChunks | CloseText) -> None:
        if self._is_ready and (link := self._supervisor.link):
            link.send(message)

    def _owe(self, text: TextInProcess) -> None:
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
        if text is None or not text.n_owed:
            return  # closed by its caller, or given up
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
        quiet_s, process = time.monotonic() - self._quiet_since_s, self._supervisor
        text = self._texts.get(self._current.value)
        if not self._is_ready or quiet_s < SOON_S:
            self._cpu_s = None
        elif self._cpu_s is None:
            self._cpu_s = process.cpu_s()
        elif quiet_s > (limit_s := hang_s(text.request if text else None)):
            log.error("the G2P process does not answer; it is replaced")
            # Not stopped, but computing: another would do the same.
            if text and process.cpu_s() - self._cpu_s > limit_s / 2:
                self._fail(text, InvalidInput(
                    f"reading this text takes more than {limit_s:.0f} s; send less of it at once", param="input"
                ))  # fmt: skip
            process.kill(ChildLost(f"gave no answer in {limit_s:g} s"))
            self._cpu_s = None
        self._watch = self._loop.call_later(SOON_S, self._look)

    def _fail(self, text: TextInProcess, error: Exception) -> None:
        if text.n_owed:
            self._n_owed -= text.n_owed
            text.n_owed = 0
            text.put(error)

    # -- the process -----------------------------------------------------------------------------------------------

    def _began(self) -> None:
        self._supervisor.expect(time.monotonic() + START_S)

    def _receive(self, answer: Answer) -> None:
        if self._is_ready:
            self._answered(answer)
        elif isinstance(answer.result, TuttiError):
            self._supervisor.kill(answer.result)
        else:
            self._ready()

    def _ready(self) -> None:
        """Send the texts that wait for a process."""
        self._supervisor.expect(None)
        self._supervisor.answered()
        self._is_ready, self._n_failed, self._down_since_s, self._refusal = True, 0, None, None
        self._quiet_since_s = time.monotonic()
        if self._started and not self._started.done():
            self._started.set_result(None)
        for text in self._texts.values():
            if text.n_owed:
                self._send(text.request)

    def _lost(self, reason: Exception, wait_s: float) -> None:
        if self._is_ready:
            self._end(f"it {reason}")
        else:
            is_lost = isinstance(reason, ChildLost)
            self._not_started(G2PUnavailable(f"the G2P process does not start: it {reason}") if is_lost else reason)

    def _end(self, cause: str) -> None:
        """Tell the callers that wait for an answer that their process is gone."""
        self._is_ready, self._down_since_s = False, time.monotonic()
        number, self._current.value = self._current.value, g2p_child.NO_TEXT
        for text in list(self._texts.values()):
            self._fail(text, TextLost(cause, during_request=text.request.number == number))

    def _not_started(self, error: Exception) -> None:
        """The first start must succeed; after some others in a row that fail, refuse all texts until one does not."""
        if self._started and not self._started.done():
            self._is_closed = True
            self._supervisor.retire()
            self._started.set_exception(error)
            return
        self._n_failed += 1
        log.error("start failed, %d in a row: %s", self._n_failed, error)
        if self._n_failed < MAX_FAILED_STARTS:
            return
        self._refusal = f"{error}; it is tried again in a moment"
        for text in self._texts.values():
            self._fail(text, NotReady(self._refusal))


def hang_s(request: OpenText | None) -> float:
    """Return after how many seconds without an answer a process that reads this text is taken to hang."""
    return HANG_S + (len(request.text) / HANG_CHARACTERS_PER_S if request else 0.0)
