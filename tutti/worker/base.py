"""The asyncio side that both kinds of worker share: callers wait for futures that a thread of the worker settles."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tutti.errors import WorkerLost
from tutti.speech import Samples, Utterance
from tutti.worker.messages import (
    Acoustic,
    BothStages,
    CallMessage,
    Forget,
    FrameRange,
    Memory,
    Progress,
    RunBoth,
    State,
    Status,
    Vocoder,
)


class Worker(Protocol):
    """What the batcher asks of a worker. All of it belongs to the event loop in which the worker was started."""

    @property
    def status(self) -> Status: ...

    @property
    def restarts(self) -> int: ...

    @property
    def memory(self) -> Memory: ...

    async def start(self) -> None:
        """Returns when the models are loaded and warm; raises their error when trying again would not help."""

    def acoustic(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float, *, on: bool = False
    ) -> asyncio.Future[list[NDArray[np.int64]]]:
        """Frames for each token of each row; what the vocoder needs stays in the worker under the row's id.

        The worker has it when this returns, and the answer comes when it comes.
        `on`: the vocoder will be asked for the same rows next, so a worker may begin with that at once.

        A model's error stands for the whole batch. WorkerLost: the worker died or hung, and every row it held is gone.
        While the worker is being started again, calls wait.
        """

    def vocoder(
        self, checkpoint: str, ids: Sequence[int], timeout_s: float, spans: Mapping[int, FrameRange] = {}
    ) -> asyncio.Future[list[Samples]]:
        """The samples of rows that went through `acoustic`; the worker then forgets the rows.

        Of a row with a span only those frames sound, or some less at its end, where it is quieter there; the row is
        forgotten when its last frame has sounded.
        After a model's error the rows are still there, to be tried in halves. WorkerLost also when a row is not there.
        """

    def both(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float
    ) -> asyncio.Future[BothStages]:
        """Run both stages in one round trip, for rows that share no batch with others.

        An error of either stage stands for the whole call. No frames are kept afterwards, whatever happened: to try
        again, start with the acoustic stage.
        """

    def forget(self, ids: Sequence[int]) -> None:
        """Nobody waits for these rows any more."""

    async def close(self) -> None:
        """Ends the worker; calls that still wait raise WorkerLost."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An order and who waits for its answer."""

    order: CallMessage
    timeout_s: float
    answer: asyncio.Future[object]


class BaseWorker(ABC):
    """Callers' methods, made of two that a worker must have: hand over a call, hand over what to forget."""

    def __init__(self, progress: Progress) -> None:
        self._status = Status("starting")  # written by the worker's thread alone
        self._closing = False
        self._progress = progress
        self._loop: asyncio.AbstractEventLoop

    @property
    def status(self) -> Status:
        return replace(self._status, state="closed") if self._closing else self._status

    @property
    def restarts(self) -> int:
        return self._status.restarts

    @property
    def memory(self) -> Memory:
        return self._status.memory

    def acoustic(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float, *, on: bool = False
    ) -> asyncio.Future[list[NDArray[np.int64]]]:
        asked = self._ask(Acoustic(checkpoint, tuple(rows), on), timeout_s)
        return cast(asyncio.Future[list[NDArray[np.int64]]], asked)

    def vocoder(
        self, checkpoint: str, ids: Sequence[int], timeout_s: float, spans: Mapping[int, FrameRange] = {}
    ) -> asyncio.Future[list[Samples]]:
        asked = self._ask(Vocoder(checkpoint, tuple(ids), dict(spans)), timeout_s)
        return cast(asyncio.Future[list[Samples]], asked)

    def both(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float
    ) -> asyncio.Future[BothStages]:
        return cast(asyncio.Future[BothStages], self._ask(RunBoth(checkpoint, tuple(rows)), timeout_s))

    def forget(self, ids: Sequence[int]) -> None:
        if ids and self.status.state not in ("closed", "failed"):
            self._post(Forget(tuple(ids)))

    def _ask(self, order: CallMessage, timeout_s: float) -> asyncio.Future[object]:
        call = Call(order, timeout_s, self._future())
        if self._closing or self._status.state == "failed":
            call.answer.set_exception(WorkerLost(f"the worker is {self.status.state}; start another"))
        else:
            self._post(call)
        return call.answer

    def _future(self) -> asyncio.Future[object]:
        future: asyncio.Future[object] = self._loop.create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # who waited for it may be gone
        return future

    @abstractmethod
    def _post(self, errand: Call | Forget) -> None:
        """Hands it to the worker's thread, in order."""

    # Called by the worker's thread:

    def _note(self, state: State, memory: Memory | None = None, error: str | None = None) -> None:
        now = self._status
        self._status = Status(state, now.error if error is None else error, now.restarts, memory or now.memory)

    def _tell(self, what: str, done: int, steps: int) -> None:
        self._soon(lambda: self._progress(what, done, steps))

    def _settle(self, answer: asyncio.Future[object], value: object, order: CallMessage | None = None) -> None:
        """Resolves with a value, or rejects with an exception."""

        def settle() -> None:
            if answer.done():
                if isinstance(order, Acoustic) and not isinstance(value, BaseException):
                    self.forget([id for id, _ in order.rows])  # the caller has left: nobody will ask for these frames
            elif isinstance(value, BaseException):
                answer.set_exception(value)
            else:
                answer.set_result(value)

        self._soon(settle)

    def _soon(self, act: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(act)
