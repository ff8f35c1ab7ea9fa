"""A worker in a process of its own: watched, killed when it hangs, started again when it died."""

import asyncio
import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf

from tutti.batching.child import Child
from tutti.batching.face import Call, Face
from tutti.batching.orders import Durations, Failed, Forget, Make, Progress, Ready, Sound, Step
from tutti.errors import DeviceFull, WorkerLost
from tutti.speech import Samples

log = logging.getLogger(__name__)

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
START_SILENCE_S = 600.0  # a start that says nothing for so long hangs; compiling one shape takes minutes at worst
SEND_S = 10.0
GRACE_S = 5.0
MENDABLE = (WorkerLost, DeviceFull, OSError)  # what another start may find mended


def backoff_s(failures: int) -> float:
    """How long to wait before the next start, after so many failures in a row: not at all, then ever longer."""
    return 0.0 if failures <= 1 else min(FIRST_WAIT_S * 2 ** min(failures - 2, 16), LONGEST_WAIT_S)


class ProcessWorker(Face):
    """One thread here owns the process: it starts it, gives it one call at a time, and starts it again.

    With `max_bytes`, a process that holds more memory than that after a batch is replaced at once. No call fails for
    it, but rows between their stages are gone, and their vocoder call raises WorkerLost. A limit below what the models
    need at rest would never let it work, so a quarter above that is always granted.
    """

    def __init__(
        self,
        make: Make,
        *,
        progress: Progress = lambda _what, _done, _steps: None,
        max_bytes: int | None = None,
        backoff_s: Callable[[int], float] = backoff_s,
    ) -> None:
        super().__init__(progress)
        self._make = make
        self._max_bytes = max_bytes
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
            max_bytes = self._greet(child)
            self._serve(child, max_bytes)
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

    def _greet(self, child: Child) -> float:
        """Waits until the models are warm; the memory that the process may hold from then on."""
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
                    return inf if self._max_bytes is None else max(self._max_bytes, 1.25 * memory.resident_bytes)
        raise WorkerLost("the worker was closed before it was ready")

    def _serve(self, child: Child, max_bytes: float) -> None:
        while not self._closing:
            self._do_next(child)
            if self._status.memory.resident_bytes > max_bytes:
                self._note("restarting", error=f"it held more than {max_bytes / 1e6:.0f} MB")
                log.warning("worker past its memory, starting another")
                return

    def _do_next(self, child: Child) -> None:
        match self._errands.popleft() if self._errands else None:
            case None:
                child.hear(None)  # sleeps until there is an errand, or the process dies
            case Forget() as order:
                child.tell(order, SEND_S)
            case call if not call.answer.cancelled():
                self._run(child, call)

    def _run(self, child: Child, call: Call) -> None:
        """One call, whose caller hears of it even when the process is lost."""
        self._note("busy")
        try:
            heard = self._answer(child, call)
        except Exception as exc:
            self._note("restarting", error=str(exc))
            self._settle(call.answer, WorkerLost(str(exc)))
            raise
        self._failures = 0
        match heard:
            case (Durations(frames, memory), _):
                value: object = list(frames)
            case (Sound(_, memory), samples):
                value = samples
            case (Failed(error, memory), _):
                value = error
            case None:
                value, memory = WorkerLost("the worker was closed"), self.memory
        self._note("ready", memory)
        self._settle(call.answer, value, call.order)

    def _answer(self, child: Child, call: Call) -> tuple[Durations | Sound | Failed, list[Samples]] | None:
        """What the process says to it; None when the worker is closed meanwhile."""
        until_s = time.monotonic() + call.timeout_s
        child.tell(call.order, call.timeout_s)
        while not self._closing:
            match child.hear(until_s):
                case (Durations() | Sound() | Failed() as reply, samples):
                    return reply, samples
        return None

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
