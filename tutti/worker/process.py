"""A worker in a process of its own: watched, killed when it hangs, started again when it died."""

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
from tutti.worker.base import BaseWorker, Call
from tutti.worker.child import Child
from tutti.worker.messages import BothReady, BothStages, Durations, Failed, Forget, Make, Progress, Ready, Sound, Step

log = logging.getLogger(__name__)

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
START_SILENCE_S = 600.0  # a start that says nothing for so long hangs; compiling one shape takes minutes at worst
SEND_S = 10.0
SWITCH_S = 0.0005
GRACE_S = 5.0
MAX_TOLD = 2  # calls that the process knows of: the one that runs and the next
MENDABLE = (WorkerLost, DeviceFull, OSError)  # what another start may find mended


def backoff_s(failures: int) -> float:
    """How long to wait before the next start, after so many failures in a row: not at all, then ever longer."""
    return 0.0 if failures <= 1 else min(FIRST_WAIT_S * 2 ** min(failures - 2, 16), LONGEST_WAIT_S)


class ProcessWorker(BaseWorker):
    """One thread here owns the process: it starts it, gives it one call at a time, and starts it again."""

    def __init__(
        self,
        make: Make,
        *,
        progress: Progress = lambda _what, _done, _steps: None,
        backoff_s: Callable[[int], float] = backoff_s,
    ) -> None:
        super().__init__(progress)
        self._make = make
        self._backoff_s = backoff_s
        self._errands: deque[Call | Forget] = deque()
        self._failures = 0  # since the last answer
        self._was_ready = False
        self._hurry = threading.Event()
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Of the process as it is now."""
        child = self._child
        return child.pid if child else None

    async def start(self) -> None:
        """Returns when the models are warm. A process that dies before is started again; `status.error` says why."""
        self._loop = asyncio.get_running_loop()
        self._started = self._future()
        self._ended = asyncio.Event()
        # While the event loop is busy, the thread below would get its turn after 5 ms, some times for each batch.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        atexit.register(self._kill)
        threading.Thread(target=self._supervise, name="tutti-supervisor", daemon=True).start()
        await asyncio.shield(self._started)

    async def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._hurry.set()
            self._stir()
        await self._ended.wait()

    def _post(self, errand: Call | Forget) -> None:
        self._errands.append(errand)
        self._stir()

    def _stir(self) -> None:
        if not self._ended.is_set():
            with suppress(BlockingIOError):  # full: it is awake
                os.write(self._wake, b"\0")

    def _kill(self) -> None:
        """At the end of this process, when nobody has closed the worker."""
        self._closing = True
        if child := self._child:
            child.kill()

    # From here on: the supervising thread.

    def _supervise(self) -> None:
        while not self._closing:
            try:
                self._live()
            except Exception as exc:  # noqa: BLE001 - whatever it was, `_mend` judges it and `status.error` tells
                if self._closing or not self._mend(exc):
                    break
            if not self._closing:
                self._status = replace(self._status, state="restarting", restarts=self._status.restarts + 1)
        self._soon(self._finish)

    def _live(self) -> None:
        """One process from birth to burial; returns when it was ended on purpose."""
        child = self._child = Child(self._make, self._woken)
        grace_s = 0.0
        try:
            self._greet(child)
            self._serve(child)
            grace_s = GRACE_S
        finally:
            self._child = None
            child.bury(grace_s)

    def _mend(self, exc: Exception) -> bool:
        """Waits until it makes sense to start again; False when it never will."""
        if not self._was_ready and not isinstance(exc, MENDABLE):
            self._note("failed", error=str(exc))
            self._settle(self._started, exc)
            return False
        self._failures += 1
        wait_s = self._backoff_s(self._failures)
        self._note("restarting", error=str(exc))
        log.warning("worker down (%s), start %d in %g s", exc, self._failures, wait_s)
        self._hurry.wait(wait_s)
        return True

    def _greet(self, child: Child) -> None:
        """Waits until the models are warm."""
        while not self._closing:
            match child.hear(time.monotonic() + START_SILENCE_S):
                case (Step(what, done, steps), _):
                    self._tell(what, done, steps)
                case (Failed(error), _):
                    raise error
                case (Ready(memory), _):
                    self._was_ready = True
                    self._note("ready", memory)
                    self._settle(self._started, None)
                    log.info("worker ready pid=%d resident=%d MB", child.pid, memory.resident_bytes // 1_000_000)
                    return
        raise WorkerLost("the worker was closed before it was ready")

    def _serve(self, child: Child) -> None:
        """Gives it the next call while it is busy with one, so that it need not wait for us in between."""
        told: deque[Call] = deque()
        until_s = inf
        try:
            while not self._closing:
                if len(told) < MAX_TOLD and self._errands:
                    self._tell_next(child, told)
                    if len(told) == 1:
                        until_s = time.monotonic() + told[0].timeout_s
                elif self._hear(child, told, until_s if told else None):
                    until_s = time.monotonic() + told[0].timeout_s if told else inf
        except Exception as exc:
            self._note("restarting", error=str(exc))
            if told:
                self._settle(told.popleft().answer, WorkerLost(str(exc)))
            self._errands.extendleft(reversed(told))
            raise
        for call in told:
            self._settle(call.answer, WorkerLost("the worker was closed"))

    def _tell_next(self, child: Child, told: deque[Call]) -> None:
        match self._errands.popleft():
            case Forget() as order:
                child.tell(order, SEND_S)
            case call if not call.answer.cancelled():
                told.append(call)
                self._note("busy")
                child.tell(call.order, call.timeout_s)

    def _hear(self, child: Child, told: deque[Call], until_s: float | None) -> bool:
        """Hands the next answer to whoever waits for it; False when woken before: there is an errand, or an end."""
        match child.hear(until_s):
            case None:
                return False
            case (Durations(frames, memory), _):
                value: object = list(frames)
            case (Sound(_, memory), samples):
                value = samples
            case (BothReady(durations, _, acoustic_s, vocoder_s, memory), samples):
                value = BothStages(list(durations), samples, acoustic_s, vocoder_s)
            case (Failed(error, memory), _):
                value = error
            case (reply, _):
                raise WorkerLost(f"the worker process said {reply}")
        self._failures = 0
        call = told.popleft()
        self._note("busy" if told else "ready", memory)
        self._settle(call.answer, value, call.order)
        return True

    # Back in the event loop, when the thread is done.

    def _finish(self) -> None:
        atexit.unregister(self._kill)
        self._ended.set()
        os.close(self._wake)
        os.close(self._woken)
        for errand in self._errands:
            if isinstance(errand, Call) and not errand.answer.done():
                errand.answer.set_exception(WorkerLost(f"the worker is {self.status.state}"))
        self._errands.clear()
        if not self._started.done():
            self._started.set_exception(WorkerLost("the worker was closed before it was ready"))
