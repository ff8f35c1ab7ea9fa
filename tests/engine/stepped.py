"""A worker whose calls end when a test says so, around the code that runs in a real one; and parts with defects."""

import asyncio
from collections.abc import Callable
from inspect import isfunction
from typing import Any

from tutti.batching.job import StageName
from tutti.errors import ModelFailed, TuttiError, WorkerLost
from tutti.model.tone import ToneModel
from tutti.worker.base import BaseWorker, PendingCall
from tutti.worker.messages import Forget, Status, no_progress
from tutti.worker.stage_runner import StageRunner


class RunnerWorker(BaseWorker):
    """Calls of one stage end in order; where stages overlap, the acoustic ones beside all others."""

    def __init__(self, *, stages_overlap: bool = False) -> None:
        super().__init__(no_progress)
        self._status = Status("ready", stages_overlap=stages_overlap)
        self._runner = self._new_runner()
        self.fails = False  # whether every call of the vocoder does
        self.items: list[PendingCall | Forget] = []  # in the order in which they were sent
        self.left: set[int] = set()  # rows for which no call may start any more
        self.left_seeds: set[int | None] = set()  # the same for rows with these seeds
        self.started_for_left: set[int] = set()
        self._seeds: dict[int, int | None] = {}  # of rows

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def unload(self) -> bool:
        return False

    async def wake(self) -> None: ...

    async def close(self) -> None:
        self._closing = True

    @property
    def frames(self) -> dict[int, Any]:
        """The rows that it keeps between their stages."""
        return self._runner._frames

    @property
    def named(self) -> set[int]:
        """The rows of calls that have not ended, and those that it forgets after them."""
        forgotten = {id for item in self.items if isinstance(item, Forget) for id in item.ids}
        return forgotten.union(*(call.run.ids for call in self.calls))

    @property
    def calls(self) -> list[PendingCall]:
        return [item for item in self.items if isinstance(item, PendingCall)]

    def end(self, stage: StageName) -> None:
        """The first call of this stage ends, if there is one that runs."""
        calls = [call for call in self.calls if self._stage(call) == stage] if self._overlaps else self.calls[:1]
        for call in calls[:1]:
            self.items.remove(call)
            if not call.future.cancelled():
                self._resolve(call.future, self._result(call), call.run)
        self._forget()

    def end_any(self) -> None:
        for stage in ("vocoder", "acoustic"):
            self.end(stage)  # type: ignore[arg-type]

    def die(self) -> None:
        """All calls that run are lost, those behind them run later, and all frames are gone."""
        self._runner = self._new_runner()
        running = {self._stage(call): call for call in reversed(self.calls)} if self._overlaps else {0: None}
        for call in [call for call in running.values() if call] or self.calls[:1]:
            self.items.remove(call)
            self._resolve(call.future, WorkerLost("the worker died"))
        self._forget()

    def _enqueue(self, item: PendingCall | Forget) -> None:
        if isinstance(item, PendingCall):
            self._seeds |= {id: row.seed for id, row in zip(item.run.ids, item.run.utterances, strict=False)}
            ids = item.run.ids
            self.started_for_left |= {id for id in ids if id in self.left or self._seeds[id] in self.left_seeds}
        self.items.append(item)
        self._forget()

    def _forget(self) -> None:
        """Carry out what comes before all calls."""
        while self.items and isinstance(item := self.items[0], Forget):
            self.items.pop(0)
            self._runner.forget(item.ids)

    def _result(self, call: PendingCall) -> object:
        if self.fails and call.run.stages == "vocoder":
            return ModelFailed("it fails")
        try:
            result = self._runner.run(call.run)
            self._runner.forget_finished(call.run)
        except TuttiError as error:
            return error
        return result

    @property
    def _overlaps(self) -> bool:
        return self._status.stages_overlap

    def _stage(self, call: PendingCall) -> StageName:
        return "acoustic" if call.run.stages == "acoustic" else "vocoder"

    def _new_runner(self) -> StageRunner:
        return StageRunner(lambda: {"kokoro": ToneModel()}, no_progress)


class Defect(Exception):
    """What a part raises that has a bug."""


class Defects:
    """Makes one of the next calls of a part raise, before or after it did its work."""

    def __init__(self) -> None:
        self._part, self._n_before, self._is_late = "", -1, False

    def arm(self, part: str, n_before: int, *, is_late: bool) -> None:
        """`n_before`: calls of that part that still work; none of them raises if it is negative."""
        self._part, self._n_before, self._is_late = part, n_before, is_late

    def spread(self, part: str, target: Any, *names: str) -> None:
        """Count every public call of this object from now on, or those of these names, also those it makes itself."""
        public = [name for name in dir(type(target)) if name[0] != "_" and isfunction(getattr(type(target), name))]
        for name in names or public:
            setattr(target, name, self._counted(part, getattr(target, name)))

    def _counted(self, part: str, works: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            raises = part == self._part and self._n_before == 0
            if part == self._part and self._n_before >= 0:
                self._n_before -= 1
            if raises and not self._is_late:
                raise Defect(part)
            result = works(*args, **options)
            if raises:
                raise Defect(f"{part}, after its work")
            return result

        return call
