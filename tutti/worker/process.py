"""A worker in its own process: supervised, killed when it hangs, restarted when it dies."""

import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from tutti.errors import DeviceFull, TuttiError, WorkerLost
from tutti.model.protocol import Ran
from tutti.process.messages import WithDescriptor, close_descriptor
from tutti.process.supervisor import ChildLost, Supervisor, backoff_s
from tutti.speech import Samples
from tutti.worker import child_main
from tutti.worker.base import SWITCH_INTERVAL_S, BaseWorker, PendingCall
from tutti.worker.calls_in_flight import CallsInFlight
from tutti.worker.messages import (
    Forget,
    LogMessage,
    Memory,
    Message,
    ModelFactory,
    ModelsReady,
    NumberedRun,
    Progress,
    RunEnded,
    StartFailed,
    StartProgress,
    no_progress,
)
from tutti.worker.samples import RowFormat, map_samples

log = logging.getLogger(__name__)

START_TIMEOUT_S = 600.0  # a start without progress for so long hangs; compiling one shape may take minutes
GRACE_S = 1.0  # for the process to close its models; then it is killed
SPARE_MEMORY = 1.25  # times its memory after the start that a process may always hold: less would replace it for ever
RETRYABLE = (WorkerLost, DeviceFull, OSError)  # errors of the first start that another start may not meet


class ProcessWorker(BaseWorker):
    """Sends calls to the process and resolves them, all in the event loop; the supervisor restarts it after a crash."""

    def __init__(
        self,
        make_models: ModelFactory,
        *,
        progress: Progress = no_progress,
        max_bytes: float | None = None,
        backoff_s: Callable[[int], float] = backoff_s,
    ) -> None:
        """A process that holds more than `max_bytes` is replaced between two batches: after one that ended rows, so
        that each replacement brings some rows to their end. It may always hold a quarter more than after its start.
        """
        super().__init__(progress)
        log_level = logging.getLogger("tutti").getEffectiveLevel()
        self._supervisor = Supervisor(
            "tutti-worker", child_main.main, (make_models, log_level),
            began=self._began, receive=self._receive, lost=self._lost, grace_s=GRACE_S, backoff_s=backoff_s,
        )  # fmt: skip
        self._max_bytes = inf if max_bytes is None else max_bytes
        self._limit_bytes = inf  # of this process
        self._is_too_large = False
        self._queue: deque[PendingCall | Forget] = deque()
        self._in_flight: CallsInFlight | None = None  # while the models are loaded and calls may be sent
        self._was_ready = False
        self._unloading = False  # end the process when its calls are done
        self._is_wanted = True  # again, since it was to be unloaded
        self._unload_task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Of the current process; None while there is none."""
        return self._supervisor.pid

    async def start(self) -> None:
        """Return when the models are warm. A process that dies before is restarted; `status.error` says why."""
        self._loop = asyncio.get_running_loop()
        self._started = self._new_future()
        # While an encoder's thread is busy, the event loop would wait 5 ms for its turn, several times a batch.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL_S))
        self._supervisor.start()
        await asyncio.shield(self._started)

    async def unload(self) -> bool:
        """Stop the process when its calls are done; a new call before that keeps it."""
        if not self._unloading and not self._closing:
            if self._started.done():  # else a caller waits for it: the worker is only just being loaded again
                self._started = self._new_future()
            self._asleep = self._new_future()
            self._unloading, self._is_wanted = True, False
            self._send_queued()
        await asyncio.shield(self._asleep)
        return self.status.state == "asleep"

    async def wake(self) -> None:
        self._wake()
        await asyncio.shield(self._started)

    async def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._fail_all()
        await self._supervisor.close()

    # -- calls -------------------------------------------------------------------------------------------------------

    def _enqueue(self, item: PendingCall | Forget) -> None:
        if isinstance(item, Forget):
            if self._status.state == "asleep":
                return  # it holds nothing
        elif self._status.state == "asleep":
            self._wake()
        elif self._unloading:
            self._keep_loaded()  # its next call may need what this one leaves in the process
        self._queue.append(item)
        self._send_queued()

    def _send_queued(self) -> None:
        """Send the calls for which the process has room. If it has none and is to end, that is now."""
        link, in_flight = self._supervisor.link, self._in_flight
        if link is None or in_flight is None:
            return
        while self._queue and not self._is_too_large and in_flight.may_send(self._queue[0]):
            item = self._queue.popleft()
            if isinstance(item, Forget):
                link.send(item)
            elif not item.future.cancelled():
                number = in_flight.add(item, time.monotonic())
                self._set_status("busy")
                link.send(NumberedRun(number, item.run))
        self._supervisor.expect(in_flight.deadline_s)
        if in_flight:
            return
        if self._is_too_large:
            self._in_flight = None
            self._set_status("restarting", error=f"it held more than {self._limit_bytes / 1e6:.0f} MB")
            log.warning("worker replaced: %s", self._status.error)
            self._supervisor.replace()
        elif self._unloading and not self._queue:
            self._begin_unload()

    def _answered(self, answer: RunEnded, descriptor: int | None) -> None:
        """Resolve the call of an answer, and send the next one."""
        assert self._in_flight is not None, "only a process with loaded models answers calls"
        try:
            call = self._in_flight.pop(answer.number, time.monotonic())
        except WorkerLost as exc:
            close_descriptor(descriptor)
            self._supervisor.kill(exc)
            return
        self._supervisor.answered()
        if call.run.stages != "acoustic":
            self._is_too_large = answer.memory.resident_bytes > self._limit_bytes
        self._set_status("busy" if self._in_flight else "ready", answer.memory)
        self._resolve(call.future, _result(answer, descriptor), call.run)
        self._send_queued()

    # -- the process -------------------------------------------------------------------------------------------------

    def _began(self) -> None:
        if self._status.state == "restarting":
            self._status = replace(self._status, restarts=self._status.restarts + 1)
        self._supervisor.expect(time.monotonic() + START_TIMEOUT_S)

    def _receive(self, message: Message | WithDescriptor) -> None:
        match message:
            case WithDescriptor(RunEnded() as answer, descriptor):
                self._answered(answer, descriptor)
            case RunEnded() as answer:
                self._answered(answer, None)
            case LogMessage(record):
                _log(record)
            case StartProgress(task, n_done, n_steps):
                self._supervisor.expect(time.monotonic() + START_TIMEOUT_S)
                self._progress(task, n_done, n_steps)
            case ModelsReady(memory, stages_overlap):
                self._ready(memory, stages_overlap)
            case StartFailed(error):
                self._supervisor.kill(error)
            case _:
                self._supervisor.kill(ChildLost(f"sent an unexpected message: {message}"))

    def _ready(self, memory: Memory, stages_overlap: bool) -> None:
        self._was_ready, self._is_too_large = True, False
        self._status = replace(self._status, stages_overlap=stages_overlap)
        self._limit_bytes = max(self._max_bytes, SPARE_MEMORY * memory.resident_bytes)
        self._set_status("ready", memory)
        self._resolve(self._started, None)
        log.info("worker ready pid=%d resident=%d MB", self.pid, memory.resident_bytes // 1_000_000)
        self._in_flight = CallsInFlight(stages_overlap)
        self._send_queued()

    def _lost(self, reason: Exception, wait_s: float) -> None:
        """Calls that ran are lost; the others are sent to the next process."""
        error = WorkerLost(f"the worker process {reason}") if isinstance(reason, ChildLost) else reason
        self._is_too_large = False
        if not self._was_ready and not isinstance(error, RETRYABLE):
            self._supervisor.retire()
            self._set_status("failed", error=str(error))
            self._resolve(self._started, error)
            self._fail_all()
            return
        self._set_status("restarting", error=str(error))
        if self._in_flight is not None:
            in_flight, self._in_flight = self._in_flight, None
            for call in in_flight.running():
                self._resolve(call.future, WorkerLost(str(error)))
            self._queue.extendleft(reversed(in_flight.waiting()))
        log.warning("worker down (%s), start %d in %g s", error, self._supervisor.failures, wait_s)
        if self._unloading and not self._queue:
            self._begin_unload()

    def _begin_unload(self) -> None:
        self._in_flight = None
        self._unload_task = self._loop.create_task(self._fall_asleep(), name="tutti-worker-unload")

    async def _fall_asleep(self) -> None:
        await self._supervisor.stop()
        if self._closing:
            return
        if not self._unloading:  # a call has come meanwhile
            self._set_status("restarting")
            self._supervisor.start()
            return
        self._set_status("asleep", Memory())
        self._resolve(self._asleep, None)
        log.info("worker asleep")
        if self._is_wanted:
            self._wake()

    def _wake(self) -> None:
        self._is_wanted = True
        if self._status.state == "asleep" and not self._closing:
            self._unloading = False
            self._set_status("starting")
            self._supervisor.start()

    def _keep_loaded(self) -> None:
        self._unloading = False
        self._resolve(self._asleep, None)
        if self._in_flight is not None:
            self._resolve(self._started, None)

    def _fail_all(self) -> None:
        """Nothing is answered any more: the worker is closed, or cannot be started."""
        if self._in_flight is not None:
            for call in self._in_flight.running() + self._in_flight.waiting():
                self._resolve(call.future, WorkerLost("the worker was closed"))
            self._in_flight = None
        for item in self._queue:
            if isinstance(item, PendingCall):
                self._resolve(item.future, WorkerLost(f"the worker is {self.status.state}"))
        self._queue.clear()
        self._resolve(self._started, WorkerLost("the worker was closed before it was ready"))
        if self._unloading:
            self._resolve(self._asleep, None)


def _result(answer: RunEnded, descriptor: int | None) -> Ran | Exception:
    """What the caller gets; an error is raised to it."""
    if isinstance(answer.result, TuttiError) or not answer.formats:
        return answer.result
    try:
        return answer.result._replace(samples=_samples(answer.formats, descriptor))
    except OSError as exc:
        return WorkerLost(f"the samples did not arrive: {exc}")


def _samples(formats: Sequence[RowFormat], descriptor: int | None) -> list[Samples]:
    if descriptor is None:
        raise OSError("no file descriptor was free")
    try:
        return map_samples(descriptor, formats)
    finally:
        close_descriptor(descriptor)


def _log(record: logging.LogRecord) -> None:
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)
