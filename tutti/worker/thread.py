"""A worker in a thread of this process, for the command line and for tests."""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tutti.errors import WorkerLost
from tutti.model.protocol import Ran
from tutti.worker import memory
from tutti.worker.base import BaseWorker, PendingCall
from tutti.worker.messages import Forget, ModelFactory, Progress, Run, no_progress
from tutti.worker.stage_runner import StageRunner, as_tutti_error

GRACE_S = 5.0  # how long `close` waits for the batch that runs; a thread cannot be killed


class ThreadWorker(BaseWorker):
    """A worker in a thread. A thread cannot be killed: a call that takes too long raises WorkerLost, but its batch
    still runs to its end, and later calls wait for it.
    """

    def __init__(self, make_models: ModelFactory, *, progress: Progress = no_progress) -> None:
        super().__init__(progress)
        self._make_models = make_models
        self._queue: queue.SimpleQueue[PendingCall | Forget | None] = queue.SimpleQueue()

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started = self._new_future()
        self._ended = asyncio.Event()
        threading.Thread(target=self._run, name="tutti-worker", daemon=True).start()
        await asyncio.shield(self._started)

    async def unload(self) -> bool:
        return False  # its memory belongs to this process

    async def wake(self) -> None:
        pass

    async def close(self) -> None:
        """Wait for the batch that runs, but not longer than GRACE_S."""
        self._closing = True
        self._queue.put(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._ended.wait()

    def run(self, run: Run, timeout_s: float) -> asyncio.Future[Ran]:
        future = super().run(run, timeout_s)
        error = WorkerLost(f"the model did not answer in {timeout_s:g} s")
        timer = self._loop.call_later(timeout_s, self._resolve, future, error)
        future.add_done_callback(lambda _: timer.cancel())
        return future

    def _enqueue(self, item: PendingCall | Forget) -> None:
        self._queue.put(item)

    # In the thread, which alone writes the status:

    def _run(self) -> None:
        self._serve()
        # The model is freed by now: freed while the interpreter ends, PyTorch would abort the process.
        self._call_in_loop(self._ended.set)

    def _serve(self) -> None:
        """Load the models, then handle what is enqueued until None comes."""
        try:
            runner = StageRunner(self._make_models, self._report_progress)
        except Exception as exc:  # noqa: BLE001 - raised to the caller of `start`
            error = as_tutti_error(exc)
            self._set_status("failed", error=str(error))
            self._resolve_soon(self._started, error)
        else:
            self._set_status("ready", memory.current())
            self._resolve_soon(self._started, None)
            while self._handle_next(runner):
                pass
            runner.close()

    def _handle_next(self, runner: StageRunner) -> bool:
        item = self._queue.get()
        if item is None:
            return False
        if isinstance(item, Forget):
            runner.forget(item.ids)
        elif self._closing:
            self._resolve_soon(item.future, WorkerLost("the worker is closed"))
        elif not item.future.cancelled():
            self._set_status("busy")
            try:
                result: object = runner.run(item.run)
                runner.forget_finished(item.run)
            except Exception as exc:  # noqa: BLE001 - raised to the caller
                result = as_tutti_error(exc)
            self._set_status("ready", memory.current())
            self._resolve_soon(item.future, result, item.run)
        return True

    def _report_progress(self, task: str, n_done: int, n_steps: int) -> None:
        self._call_in_loop(lambda: self._progress(task, n_done, n_steps))

    def _resolve_soon(self, future: asyncio.Future[Any], result: object, run: Run | None = None) -> None:
        self._call_in_loop(lambda: self._resolve(future, result, run))

    def _call_in_loop(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits any more
            self._loop.call_soon_threadsafe(callback)
