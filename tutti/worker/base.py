"""The worker protocol, and what both kinds share: callers wait for futures."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tutti.errors import WorkerLost
from tutti.speech import Samples, Utterance
from tutti.worker.messages import (
    BothStages,
    Forget,
    FrameRange,
    Memory,
    Progress,
    RunAcoustic,
    RunBoth,
    RunVocoder,
    StageRequest,
    State,
    Status,
)

SWITCH_INTERVAL_S = 0.0005  # of Python's threads; larger delays each batch while another thread is busy


class Worker(Protocol):
    """Owner of one device. All methods must be called in the event loop in which the worker was started.

    Calls are enqueued at once and answered in order; where `status.stages_overlap`, acoustic calls run beside the
    others, and only the order of each of both kinds is kept. A model's error is the error of the whole batch.
    WorkerLost: the worker died or hung, and every row it held is gone. While it is being restarted, calls wait.
    """

    @property
    def status(self) -> Status: ...

    async def start(self) -> None:
        """Return when the models are loaded and warm; raise their error when another start would not help."""

    def acoustic(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float
    ) -> asyncio.Future[list[NDArray[np.int64]]]:
        """Frames for each token of each row; the worker keeps what the vocoder needs under the row's id."""

    def vocoder(
        self, checkpoint: str, ids: Sequence[int], timeout_s: float, spans: Mapping[int, FrameRange] = {}
    ) -> asyncio.Future[list[Samples]]:
        """Samples of rows that went through `acoustic`; the worker then forgets the rows.

        A row with a span returns the samples of that span, which may end a little earlier, where the row is quieter; it
        is forgotten after its last frame. After a model's error the rows are kept, to be tried in halves. Raises
        WorkerLost also for a row that the worker does not hold.
        """

    def both_stages(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float
    ) -> asyncio.Future[BothStages]:
        """Run both stages in one round trip, for rows that share no batch with others.

        An error of either stage is the error of the whole call. No frames are kept afterwards, even after an error: to
        try again, start with the acoustic stage.
        """

    def forget(self, ids: Sequence[int]) -> None:
        """Drop the frames of these rows, which are no longer needed."""

    async def unload(self) -> bool:
        """Give the models' memory back until the next call or `wake`; False if this worker cannot."""

    async def wake(self) -> None:
        """Return when the models are loaded again. A call would wait for that, too, but its time would be counted."""

    async def close(self) -> None:
        """End the worker; calls that still wait raise WorkerLost."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingCall:
    """A request, and the future that waits for its result."""

    request: StageRequest
    timeout_s: float
    future: asyncio.Future[object]


class BaseWorker(ABC):
    """The calls of the protocol, made of `_enqueue`, which a worker must implement."""

    def __init__(self, progress: Progress) -> None:
        self._status = Status("starting")
        self._closing = False
        self._progress = progress
        self._loop: asyncio.AbstractEventLoop

    @property
    def status(self) -> Status:
        return replace(self._status, state="closed") if self._closing else self._status

    def acoustic(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float
    ) -> asyncio.Future[list[NDArray[np.int64]]]:
        future = self._call(RunAcoustic(checkpoint, tuple(rows)), timeout_s)
        return cast(asyncio.Future[list[NDArray[np.int64]]], future)

    def vocoder(
        self, checkpoint: str, ids: Sequence[int], timeout_s: float, spans: Mapping[int, FrameRange] = {}
    ) -> asyncio.Future[list[Samples]]:
        future = self._call(RunVocoder(checkpoint, tuple(ids), dict(spans)), timeout_s)
        return cast(asyncio.Future[list[Samples]], future)

    def both_stages(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float
    ) -> asyncio.Future[BothStages]:
        return cast(asyncio.Future[BothStages], self._call(RunBoth(checkpoint, tuple(rows)), timeout_s))

    def forget(self, ids: Sequence[int]) -> None:
        if ids and self.status.state not in ("closed", "failed"):
            self._enqueue(Forget(tuple(ids)))

    def _call(self, request: StageRequest, timeout_s: float) -> asyncio.Future[object]:
        call = PendingCall(request, timeout_s, self._new_future())
        if self._closing or self._status.state == "failed":
            call.future.set_exception(WorkerLost(f"the worker is {self.status.state}; start another"))
        else:
            self._enqueue(call)
        return call.future

    def _new_future(self) -> asyncio.Future[object]:
        future: asyncio.Future[object] = self._loop.create_future()
        # Retrieve the exception here: its caller may have left, and asyncio would log it as never retrieved.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    @abstractmethod
    def _enqueue(self, item: PendingCall | Forget) -> None:
        """Have it done after all that were enqueued before."""

    def _set_status(self, state: State, memory: Memory | None = None, error: str | None = None) -> None:
        now = self._status
        self._status = replace(
            now, state=state, error=now.error if error is None else error, memory=memory or now.memory
        )

    def _resolve(self, future: asyncio.Future[object], result: object, request: StageRequest | None = None) -> None:
        """Set the result of a future; an exception is raised to its caller."""
        if future.done():
            if isinstance(request, RunAcoustic) and not isinstance(result, BaseException):
                self.forget([id for id, _ in request.rows])  # the caller has left, so nothing needs the frames
        elif isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
