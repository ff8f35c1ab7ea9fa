"""A worker in a thread of this process, for the command line and for tests."""

import asyncio
import queue
import threading
from contextlib import suppress

from tutti.errors import WorkerLost
from tutti.worker import memory
from tutti.worker.base import BaseWorker, Call
from tutti.worker.messages import Acoustic, CallMessage, Forget, Make, Progress, RunBoth
from tutti.worker.stage_runner import StageRunner, typed

GRACE_S = 5.0


class ThreadWorker(BaseWorker):
    """Keeps the promises of a worker as far as a thread can, which nobody can kill.

    A call that takes too long raises WorkerLost; later calls wait until the thread is back.
    """

    def __init__(self, make: Make, *, progress: Progress = lambda _what, _done, _steps: None) -> None:
        super().__init__(progress)
        self._make = make
        self._errands: queue.SimpleQueue[Call | Forget | None] = queue.SimpleQueue()

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started = self._future()
        self._ended = asyncio.Event()
        threading.Thread(target=self._run, name="tutti-worker", daemon=True).start()
        await asyncio.shield(self._started)

    async def close(self) -> None:
        """Waits for the batch that runs, but not for ever."""
        self._closing = True
        self._errands.put(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._ended.wait()

    def _ask(self, order: CallMessage, timeout_s: float) -> asyncio.Future[object]:
        answer = super()._ask(order, timeout_s)
        hangs = WorkerLost(f"the model did not answer in {timeout_s:g} s")
        watch = self._loop.call_later(timeout_s, self._settle, answer, hangs)
        answer.add_done_callback(lambda _: watch.cancel())
        return answer

    def _post(self, errand: Call | Forget) -> None:
        self._errands.put(errand)

    def _run(self) -> None:
        self._serve()
        # The model is freed by now: while the interpreter ends, PyTorch would abort the process over it.
        self._soon(self._ended.set)

    def _serve(self) -> None:
        """The thread: loads, then runs errands until it finds None."""
        try:
            desk = StageRunner(self._make, self._tell)
        except Exception as exc:  # noqa: BLE001 - raised to whoever waits for the start
            error = typed(exc)
            self._note("failed", error=str(error))
            self._settle(self._started, error)
        else:
            self._note("ready", memory.held())
            self._settle(self._started, None)
            while self._do_next(desk):
                pass
            desk.close()

    def _do_next(self, desk: StageRunner) -> bool:
        errand = self._errands.get()
        if errand is None:
            return False
        if isinstance(errand, Forget):
            desk.forget(errand.ids)
        elif self._closing:
            self._settle(errand.answer, WorkerLost("the worker is closed"))
        elif not errand.answer.cancelled():
            self._note("busy")
            try:
                value = perform(desk, errand.order)
            except Exception as exc:  # noqa: BLE001 - raised to the caller
                value = typed(exc)
            self._note("ready", memory.held())
            self._settle(errand.answer, value, errand.order)
        return True


def perform(desk: StageRunner, order: CallMessage) -> object:
    if isinstance(order, Acoustic):
        return desk.acoustic(order.checkpoint, order.rows)
    if isinstance(order, RunBoth):
        return desk.both(order.checkpoint, order.rows)
    samples = desk.vocoder(order.checkpoint, order.ids, order.spans)
    desk.spoken(order.ids, order.spans)
    return samples
