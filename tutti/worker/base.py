"""The worker protocol, and what both kinds share: callers wait for futures."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tutti.errors import WorkerLost
from tutti.model.protocol import Ran
from tutti.worker.messages import Forget, Memory, Progress, Run, State, Status

SWITCH_INTERVAL_S = 0.0005  # of Python's threads; larger delays each batch while another thread is busy


class Worker(Protocol):
    """Owner of one device. All methods must be called in the event loop in which the worker was started.

    Calls are enqueued at once and answered in order; where `status.stages_overlap`, acoustic calls run beside the
    others, and only the order of each of both kinds is kept. A model's error is the error of the whole call.
    WorkerLost: the worker died or hung, and every row it held is gone. While it is being restarted, calls wait.
    """

    @property
    def status(self) -> Status: ...

    async def start(self) -> None:
        """Return when the models are loaded and warm; raise their error when another start would not help."""

    def run(self, run: Run, timeout_s: float) -> asyncio.Future[Ran]:
        """Run stages of rows in one round trip.

        acoustic: the worker keeps the frames under the rows' ids.
        vocoder: for rows whose frames it has; else the call raises WorkerLost. A row with a span gets the samples of
        that span, which may end a little earlier, where the row is quieter; its frames are dropped after the last one.
        After a model's error they are kept, so that the rows can be tried in halves.
        both: for rows that share no batch with others. It keeps no frames, even after an error: to try again, start
        with the acoustic stage.
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
    """Stages to be run, and the future that waits for them."""

    run: Run
    timeout_s: float
    future: asyncio.Future[Ran]


class BaseWorker(ABC):
    """`run` and `forget` of the protocol, made of `_enqueue`, which a worker must implement."""

    def __init__(self, progress: Progress) -> None:
        self._status = Status("starting")
        self._closing = False
        self._progress = progress
        self._loop: asyncio.AbstractEventLoop

    @property
    def status(self) -> Status:
        return replace(self._status, state="closed") if self._closing else self._status

    def run(self, run: Run, timeout_s: float) -> asyncio.Future[Ran]:
        call = PendingCall(run, timeout_s, self._new_future())
        if self._closing or self._status.state == "failed":
            call.future.set_exception(WorkerLost(f"the worker is {self.status.state}; start another"))
        else:
            self._enqueue(call)
        return call.future

    def forget(self, ids: Sequence[int]) -> None:
        if ids and self.status.state not in ("closed", "failed"):
            self._enqueue(Forget(tuple(ids)))

    def _new_future(self) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
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

    def _resolve(self, future: asyncio.Future[Any], result: object, run: Run | None = None) -> None:
        """Set the result of a future; an exception is raised to its caller."""
        if future.done():
            if run is not None and run.stages == "acoustic" and not isinstance(result, BaseException):
                self.forget(run.ids)  # the caller has left, so nothing needs the frames
        elif isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
