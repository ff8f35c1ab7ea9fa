"""Read-only view of all queues and workers for the operator, and the switch for the active policy."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite

from tutti.batching.job import PRIORITIES, STAGES, Job, Priority, StageName
from tutti.batching.policies import Policy, Window
from tutti.engine.batcher import Batcher
from tutti.engine.event_log import PolicyChanged
from tutti.engine.stats import BatchStats
from tutti.errors import InvalidInput

__all__ = ["PRIORITIES", "STAGES", "Monitor", "StageQueue"]

MAX_JOBS = 40  # shown of each stage's queue


@dataclass(frozen=True, slots=True)
class StageQueue:
    """The jobs that wait for one stage: how many of each priority, and the oldest of them."""

    n_by_priority: Mapping[Priority, int]
    oldest: Sequence[Job]


class Monitor:
    """All workers of one engine, seen together. A change of policy takes effect between two batches."""

    def __init__(
        self,
        batchers: Sequence[Batcher],
        batch_stats: BatchStats,
        policies: Mapping[str, Policy],
        target_s: float,
        first_chunks: int,
        checkpoint: str,
    ) -> None:
        self.batch_stats = batch_stats
        self._batchers = batchers
        self._policies = policies
        self._target_s = target_s
        self._first_chunks = first_chunks
        self._checkpoint = checkpoint

    @property
    def policy(self) -> str:
        """Name of the active policy."""
        return type(self._batchers[0].scheduler.policy).__name__.lower()

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(self._policies)

    @property
    def worker_names(self) -> tuple[str, ...]:
        return tuple(batcher.name for batcher in self._batchers)

    def use(self, name: str) -> None:
        """Activate a policy from the next batch on."""
        if name not in self._policies:
            raise InvalidInput(f"unknown policy {name!r}; available: {', '.join(self._policies)}", param="policy")
        if name == self.policy:
            return
        self.batch_stats.events.add(PolicyChanged(self.batch_stats.events.clock(), self.policy, name))
        for batcher in self._batchers:
            batcher.use(self._policies[name])

    def has_other_callers(self, caller: str) -> bool:
        """Whether jobs of any other caller wait or run."""
        return any(batcher.scheduler.callers() - {caller} for batcher in self._batchers)

    def queues(self) -> dict[StageName, StageQueue]:
        stages: dict[StageName, StageQueue] = {}
        for stage in STAGES:
            queues = [q for batcher in self._batchers for q in batcher.scheduler.queues if q.key.stage == stage]
            n_by_priority: Counter[Priority] = sum((queue.n_by_priority for queue in queues), Counter())
            oldest = [job for queue in queues for job in islice(queue, MAX_JOBS)]
            if len(queues) > 1:  # each queue keeps the order of arrival, but only its own
                oldest = sorted(oldest, key=lambda job: job.arrived_s)[:MAX_JOBS]
            stages[stage] = StageQueue({name: n_by_priority[name] for name in PRIORITIES}, oldest)
        return stages

    def backlog_s(self) -> float:
        """Device seconds until all waiting jobs have run, of the worker with the most."""
        return max(batcher.backlog_s for batcher in self._batchers)

    def expected_wait_s(self) -> float:
        """Seconds until a new stream would have its first audio, at the worker that would get it."""
        return min(batcher.expected_wait_s(self._checkpoint) for batcher in self._batchers)

    def settings(self) -> dict[str, bool | int | float | None]:
        """The configuration of the batching, by the names of the settings where there is one."""
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
