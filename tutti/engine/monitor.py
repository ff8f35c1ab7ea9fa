"""Where one sees everybody who waits and how they are led, and may lead them otherwise for a while."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from typing import get_args

from tutti.batching.job import Job, Priority, StageName
from tutti.batching.policies import Policy, Window
from tutti.engine.batcher import Batcher
from tutti.engine.event_log import Turned
from tutti.engine.stats import BatchStats
from tutti.errors import InvalidInput

STAGES: tuple[StageName, ...] = get_args(StageName)
CLASSES: tuple[Priority, ...] = get_args(Priority)
SHOWN = 40  # jobs of each stage's queue


@dataclass(frozen=True, slots=True)
class Queue:
    """Who waits for one stage: how many of each class, and the oldest of them, each with its stream."""

    kinds: Mapping[Priority, int]
    oldest: Sequence[tuple[Job, int]]


class Monitor:
    """All workers of one engine, seen together. The policy changes between two batches, of all of them at once."""

    def __init__(
        self,
        batchers: Sequence[Batcher],
        batch_stats: BatchStats,
        policies: Mapping[str, Policy],
        target_s: float,
        first_chunks: int,
    ) -> None:
        self.batch_stats = batch_stats
        self._batchers = batchers
        self._policies = policies
        self._target_s = target_s
        self._first_chunks = first_chunks

    @property
    def policy(self) -> str:
        """The one in force."""
        return type(self._batchers[0].scheduler.policy).__name__.lower()

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(self._policies)

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(batcher.name for batcher in self._batchers)

    def use(self, name: str) -> None:
        """Puts a policy in force from the next batch on."""
        if name not in self._policies:
            raise InvalidInput(f"no policy {name!r} here; there is {', '.join(self._policies)}", param="policy")
        if name == self.policy:
            return
        self.batch_stats.events.note(Turned(self.batch_stats.events.clock(), self.policy, name))
        for batcher in self._batchers:
            batcher.use(self._policies[name])

    def others(self, caller: str) -> bool:
        """Whether work of anyone else waits or runs."""
        return any(batcher.scheduler.callers() - {caller} for batcher in self._batchers)

    def queues(self) -> dict[StageName, Queue]:
        found: dict[StageName, Queue] = {}
        for stage in STAGES:
            here = [(b, room) for b in self._batchers for room in b.scheduler.rooms if room.key.stage == stage]
            kinds: Counter[Priority] = sum((room.kinds for _, room in here), Counter())
            oldest = [(job, b.stream_of(job)) for b, room in here for job in islice(room, SHOWN)]
            if len(here) > 1:  # each room keeps the order of arrival, but only its own
                oldest = sorted(oldest, key=_arrived)[:SHOWN]
            found[stage] = Queue({kind: kinds[kind] for kind in CLASSES}, oldest)
        return found

    def backlog_s(self) -> float:
        """Device time until all that wait would have run, of the worker that has most before it."""
        return max(batcher.backlog_s for batcher in self._batchers)

    def settings(self) -> dict[str, bool | int | float | None]:
        """What the batching is set to, by the names of the settings where there is one."""
        limits = self._batchers[0].scheduler.limits
        window = next((policy for policy in self._policies.values() if isinstance(policy, Window)), Window())
        return {
            "batching": limits.max_rows > 1,
            "max_batch_size": limits.max_rows,
            "max_queue": limits.max_waiting,
            "first_audio_ms": 1000 * self._target_s,
            "cap_ms": round(1000 * limits.cap_s, 3) if isfinite(limits.cap_s) else None,
            "first_chunks": self._first_chunks,
            "max_wait_ms": 1000 * window.max_wait_s,
            "min_wait_ms": 1000 * window.min_wait_s,
            "early_rows": window.early_rows,
            "max_batch_frames": limits.max_padded.get("vocoder"),
            "max_batch_text": limits.max_text,
        }


def _arrived(waits: tuple[Job, int]) -> float:
    return waits[0].arrived_s
