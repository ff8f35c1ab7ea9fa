"""A worker in its own process: supervised, killed when it hangs, restarted when it dies."""

import asyncio
import atexit
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf

from tutti.errors import DeviceFull, WorkerLost
from tutti.speech import Samples
from tutti.worker.base import SWITCH_INTERVAL_S, BaseWorker, PendingCall
from tutti.worker.calls_in_flight import CallsInFlight
from tutti.worker.child import Child
from tutti.worker.messages import (
    BothReady,
    BothStages,
    DurationsReady,
    Forget,
    Memory,
    ModelFactory,
    ModelsReady,
    NumberedReply,
    NumberedRequest,
    Progress,
    RequestFailed,
    RunAcoustic,
    RunVocoder,
    SamplesReady,
    StageReply,
    StageRequest,
    StartProgress,
    no_progress,
)

log = logging.getLogger(__name__)

FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.5, 30.0  # wait before the second restart in a row; it doubles up to the maximum
START_TIMEOUT_S = 600.0  # a start without progress for so long hangs; compiling one shape may take minutes
FORGET_TIMEOUT_S = 10.0  # for the process to read a Forget; a process that does not read hangs
GRACE_S = 1.0  # for the process to close its models; then it is killed
SPARE_MEMORY = 1.25  # times its memory after the start that a process may always hold: less would replace it for ever
MAX_SMALL_ROWS = 4  # rows of a call that the event loop sends itself; more may not fit into the socket at once
RETRYABLE = (WorkerLost, DeviceFull, OSError)  # errors of the first start that another start may not meet


def backoff_s(failures: int) -> float:
    """Exponential backoff before the next start, after so many failures in a row; none after the first."""
    return 0.0 if failures <= 1 else min(FIRST_BACKOFF_S * 2 ** min(failures - 2, 16), MAX_BACKOFF_S)


class ProcessWorker(BaseWorker):
    """A supervising thread owns the process: it starts it, sends it calls, and restarts it after a crash."""

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
        self._max_bytes = inf if max_bytes is None else max_bytes
        self._is_too_large = False
        self._make_models = make_models
        self._backoff_s = backoff_s
        self._queue: deque[PendingCall | Forget] = deque()
        self._failures = 0  # since the last answer
        self._was_ready = False
        self._end_backoff = threading.Event()
        self._unload = False  # stop the process when its calls are done, and wait for `_awake`
        self._awake = threading.Event()
        self._child: Child | None = None
        self._sending = threading.Lock()  # held to send a call, and to stop serving
        self._serving: tuple[Child, CallsInFlight] | None = None  # while calls may be sent

    @property
    def pid(self) -> int | None:
        """Of the current process; None while there is none."""
        child = self._child
        return child.pid if child else None

    async def start(self) -> None:
        """Return when the models are warm. A process that dies before is restarted; `status.error` says why."""
        self._loop = asyncio.get_running_loop()
        self._started = self._new_future()
        self._ended = asyncio.Event()
        # While the event loop is busy, the supervising thread would wait 5 ms for its turn, several times a batch.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL_S))
        self._wakeup_read, self._wakeup_write = os.pipe()
        os.set_blocking(self._wakeup_write, False)
        atexit.register(self._kill)
        threading.Thread(target=self._supervise, name="tutti-supervisor", daemon=True).start()
        await asyncio.shield(self._started)

    async def unload(self) -> bool:
        """Stop the process when its calls are done; a new call before that keeps it."""
        if not self._unload and not self._closing:
            if self._started.done():  # else somebody waits for it: the worker is only just being loaded again
                self._started = self._new_future()
            self._asleep = self._new_future()
            self._awake.clear()
            self._unload = True
            self._wake_up()
        await asyncio.shield(self._asleep)
        return self.status.state == "asleep"

    async def wake(self) -> None:
        self._awake.set()
        await asyncio.shield(self._started)

    async def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._end_backoff.set()
            self._awake.set()
            self._wake_up()
        try:
            async with asyncio.timeout(GRACE_S):
                await self._ended.wait()
        except TimeoutError:
            self._kill()  # the thread waits for it: it does not read, or does not finish what it sends
            await self._ended.wait()

    def _enqueue(self, item: PendingCall | Forget) -> None:
        is_asleep = self._status.state == "asleep"
        if is_asleep and isinstance(item, Forget):
            return  # it holds nothing
        if self._unload and not is_asleep and isinstance(item, PendingCall):
            self._unload = False  # its next call may need what this one leaves in the process
            self._resolve(self._asleep, None)
        if not self._send_at_once(item):
            self._queue.append(item)
        self._awake.set()
        self._wake_up()  # to send it, or to watch how long it takes

    def _send_at_once(self, item: PendingCall | Forget) -> bool:
        """Send a small call from the event loop if the process has none: waking the thread takes longer.

        A process without calls reads, so its socket has room for a few rows; where it has none, the thread waits.
        """
        if isinstance(item, Forget) or not _is_small(item.request) or not self._sending.acquire(blocking=False):
            return False
        try:
            if self._serving is None or self._queue or self._is_too_large or self._closing:
                return False
            child, in_flight = self._serving
            if in_flight or not child.has_room():
                return False
            self._send_call(child, in_flight, item)
        except WorkerLost:
            pass  # the thread sees it, too, and this call among those that ran
        finally:
            self._sending.release()
        return True

    def _wake_up(self) -> None:
        if not self._ended.is_set():
            with suppress(BlockingIOError):  # full: the thread is awake
                os.write(self._wakeup_write, b"\0")

    def _kill(self) -> None:
        """At exit of the interpreter, when the worker was not closed; or when it does not close."""
        self._closing = True
        if child := self._child:
            child.kill()

    # In the supervising thread:

    def _supervise(self) -> None:
        while not self._closing:
            try:
                self._run_process()
            except Exception as exc:  # noqa: BLE001 - `_await_restart` judges it, and `status.error` reports it
                if self._closing or not self._await_restart(exc):
                    break
            if self._unload and not self._closing:
                self._sleep()
            elif not self._closing:
                self._status = replace(self._status, state="restarting", restarts=self._status.restarts + 1)
        self._call_in_loop(self._finish)

    def _sleep(self) -> None:
        """Wait without a process until the worker is needed."""
        self._set_status("asleep", Memory())
        self._resolve(self._asleep, None)
        log.info("worker asleep")
        self._awake.wait()
        self._unload = False
        self._set_status("starting")

    def _run_process(self) -> None:
        """Start a process and serve calls until the worker is closed; raise when the process fails."""
        child = self._child = Child(self._make_models, self._wakeup_read)
        grace_s = 0.0
        try:
            self._await_models(child)
            self._serve(child)
            grace_s = GRACE_S
        finally:
            self._child = None
            child.stop(grace_s)

    def _await_restart(self, exc: Exception) -> bool:
        """Wait before the next start; False when another start would not help."""
        if not self._was_ready and not isinstance(exc, RETRYABLE):
            self._set_status("failed", error=str(exc))
            self._resolve(self._started, exc)
            return False
        self._failures += 1
        wait_s = self._backoff_s(self._failures)
        self._set_status("restarting", error=str(exc))
        log.warning("worker down (%s), start %d in %g s", exc, self._failures, wait_s)
        self._end_backoff.wait(wait_s)
        return True

    def _await_models(self, child: Child) -> None:
        """Wait until the models are loaded and warm."""
        while not self._closing:
            match child.receive(time.monotonic() + START_TIMEOUT_S):
                case (StartProgress(task, n_done, n_steps), _):
                    self._report_progress(task, n_done, n_steps)
                case (RequestFailed(error), _):
                    raise error
                case (ModelsReady(memory, stages_overlap), _):
                    self._was_ready = True
                    self._status = replace(self._status, stages_overlap=stages_overlap)
                    self._limit_bytes = max(self._max_bytes, SPARE_MEMORY * memory.resident_bytes)
                    self._is_too_large = False
                    self._set_status("ready", memory)
                    self._resolve(self._started, None)
                    log.info("worker ready pid=%d resident=%d MB", child.pid, memory.resident_bytes // 1_000_000)
                    return
        raise WorkerLost("the worker was closed before it was ready")

    def _serve(self, child: Child) -> None:
        """Send calls and resolve them. When the process fails, calls that ran are lost; the others are sent again."""
        in_flight = CallsInFlight(self._status.stages_overlap)
        self._serving = child, in_flight
        try:
            while not self._closing:
                if self._stops_serving(in_flight):
                    return
                if not self._is_too_large and self._queue and in_flight.may_send(self._queue[0]):
                    self._send_next(child, in_flight)
                else:
                    self._receive_next(child, in_flight)
        except Exception as exc:
            with self._sending:
                self._serving = None
            self._set_status("restarting", error=str(exc))
            for call in in_flight.running():
                self._resolve(call.future, WorkerLost(str(exc)))
            self._queue.extendleft(reversed(in_flight.waiting()))
            raise
        with self._sending:
            self._serving = None
        for call in in_flight.running() + in_flight.waiting():
            self._resolve(call.future, WorkerLost("the worker was closed"))

    def _stops_serving(self, in_flight: CallsInFlight) -> bool:
        """Whether the process is to end now, without calls: it is unloaded, or too large."""
        with self._sending:
            if in_flight or not (self._is_too_large or (self._unload and not self._queue)):
                return False
            self._serving = None
        if self._is_too_large:
            self._set_status("restarting", error=f"it held more than {self._limit_bytes / 1e6:.0f} MB")
            log.warning("worker replaced: %s", self._status.error)
        return True

    def _send_next(self, child: Child, in_flight: CallsInFlight) -> None:
        with self._sending:
            match self._queue.popleft():
                case Forget() as forget:
                    child.send(forget, FORGET_TIMEOUT_S)
                case call if not call.future.cancelled():
                    self._send_call(child, in_flight, call)

    def _send_call(self, child: Child, in_flight: CallsInFlight, call: PendingCall) -> None:
        number = in_flight.add(call, time.monotonic())
        self._set_status("busy")
        child.send(NumberedRequest(number, call.request), call.timeout_s)

    def _receive_next(self, child: Child, in_flight: CallsInFlight) -> None:
        """Resolve the call of the next reply; return early after a wake-up."""
        match child.receive(in_flight.deadline_s):
            case None:
                return
            case (NumberedReply(number, reply), samples):
                pass
            case (message, _):
                raise WorkerLost(f"the worker process sent an unexpected message: {message}")
        with self._sending:
            call = in_flight.pop(number, time.monotonic())
            self._failures = 0
            if not isinstance(call.request, RunAcoustic):
                self._is_too_large = reply.memory.resident_bytes > self._limit_bytes
            self._set_status("busy" if in_flight else "ready", reply.memory)
        self._resolve(call.future, _result(reply, samples), call.request)

    # In the event loop, when the thread has ended:

    def _finish(self) -> None:
        atexit.unregister(self._kill)
        self._ended.set()
        os.close(self._wakeup_write)
        os.close(self._wakeup_read)
        for item in self._queue:
            if isinstance(item, PendingCall) and not item.future.done():
                item.future.set_exception(WorkerLost(f"the worker is {self.status.state}"))
        self._queue.clear()
        if not self._started.done():
            self._started.set_exception(WorkerLost("the worker was closed before it was ready"))
        if self._unload and not self._asleep.done():
            self._asleep.set_result(None)


def _is_small(request: StageRequest) -> bool:
    return isinstance(request, RunVocoder) or len(request.rows) <= MAX_SMALL_ROWS


def _result(reply: StageReply, samples: list[Samples]) -> object:
    """What the caller gets; an error is raised to it."""
    match reply:
        case DurationsReady(durations, _):
            return list(durations)
        case SamplesReady():
            return samples
        case BothReady(durations, _, acoustic_s, vocoder_s, _):
            return BothStages(list(durations), samples, acoustic_s, vocoder_s)
        case RequestFailed(error, _):
            return error
