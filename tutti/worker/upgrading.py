"""A worker that starts with a model that is ready soon, and changes to a faster one when that is ready.

On CUDA the fast model needs its kernels compiled and its shapes captured, which takes a minute the first time. That is
done in a second process, so no request ever waits for it; that process starts when the first model is ready.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from tutti.errors import TuttiError
from tutti.model.protocol import Ran
from tutti.tasks import cancel_all, wait_for_all
from tutti.worker.base import Worker
from tutti.worker.messages import Run, Status

log = logging.getLogger(__name__)

HANDOVER_S = 30.0  # for the rows whose frames the first worker holds; then it is closed, and rows left start again


async def _nothing(_worker: Worker) -> None: ...


class UpgradingWorker:
    """Serves with `first` until `second` is ready; if that fails, for good."""

    def __init__(
        self,
        first: Worker,
        second: Worker,
        before_change: Callable[[Worker], Awaitable[None]] = _nothing,
        handover_s: float = HANDOVER_S,
    ) -> None:
        """`before_change` is called with the second worker before it serves, to measure its costs."""
        self.before_change = before_change
        self._current = first
        self._second = second
        self._previous: Worker | None = None  # holds the frames of rows that began before the change
        self._handover_s = handover_s
        self._new_rows: set[int] = set()  # rows that began after the change, while there is a previous worker
        self._changing: asyncio.Task[None] | None = None

    @property
    def status(self) -> Status:
        return self._current.status

    @property
    def is_upgraded(self) -> bool:
        return self._current is self._second

    async def start(self) -> None:
        """Return when the first model is ready; only then the second one begins to load, which would delay it."""
        started_s = time.monotonic()
        await self._current.start()
        self._changing = asyncio.create_task(self._change(started_s), name="tutti-upgrade")

    async def close(self) -> None:
        if self._changing is not None:
            await cancel_all([self._changing])
        second = self._second if self._changing else None  # else it was not started
        workers = {id(worker): worker for worker in (self._current, second, self._previous) if worker}
        await wait_for_all(worker.close() for worker in workers.values() if worker.status.state != "closed")

    def run(self, run: Run, timeout_s: float) -> asyncio.Future[Ran]:
        if self._previous is None:
            return self._current.run(run, timeout_s)
        if run.stages != "vocoder":
            self._new_rows.update(run.ids)
        new = [id for id in run.ids if id in self._new_rows]
        old = [id for id in run.ids if id not in self._new_rows]
        if not old:
            return self._current.run(run, timeout_s)
        if not new:
            return self._previous.run(run, timeout_s)
        parts = [
            worker.run(run._replace(ids=tuple(ids)), timeout_s)
            for worker, ids in ((self._previous, old), (self._current, new))
        ]
        return asyncio.ensure_future(_merge(run.ids, [*old, *new], parts))

    def forget(self, ids: Sequence[int]) -> None:
        self._current.forget(ids)
        if self._previous is not None:
            self._previous.forget(ids)

    async def unload(self) -> bool:
        return self._previous is None and await self._current.unload()

    async def wake(self) -> None:
        await self._current.wake()

    async def _change(self, started_s: float) -> None:
        """Serve with the second worker as soon as it is ready; close the first when its rows have ended."""
        try:
            await self._second.start()
            await self.before_change(self._second)
        except Exception as exc:  # the first worker serves, whatever keeps the second from it
            is_bug = not isinstance(exc, TuttiError)
            log.warning("the faster model does not start (%s); the first one stays in use", exc, exc_info=is_bug)
            await self._second.close()
            return
        self._previous, self._current = self._current, self._second
        log.info("the faster model is in use after=%.1fs", time.monotonic() - started_s)
        await asyncio.sleep(self._handover_s)
        previous, self._previous = self._previous, None
        self._new_rows.clear()
        await previous.close()


async def _merge(ids: Sequence[int], order: Sequence[int], parts: Sequence[asyncio.Future[Ran]]) -> Ran:
    """The samples of both workers, which come in this order, in that of the ids; an error of either is that of all."""
    await asyncio.wait(parts)
    samples = dict(zip(order, [row for part in parts for row in part.result().samples], strict=True))
    return Ran(samples=[samples[id] for id in ids])
