"""Read-only view of all queues and workers for the operator, and the switch for the active policy."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from typing import Any

from tutti.admission.ticket import DELIVERIES, Delivery
from tutti.batching.job import PRIORITIES, STAGES, Job, Key, Priority, StageName
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Policy, Window
from tutti.engine.batcher import Batcher
from tutti.engine.playback import Pacing
from tutti.engine.stats import BatchStats, PolicyChanged
from tutti.errors import InvalidInput

log = logging.getLogger(__name__)

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
        pacing: Pacing,
        checkpoint: str,
    ) -> None:
        self.batch_stats = batch_stats
        self._batchers = batchers
        self._policies = policies
        self._pacing = pacing
        self._checkpoint = checkpoint

    @property
    def policy(self) -> str:
        """Name of the active policy."""
        return type(self._batchers[0].scheduler.policy).__name__.lower()

    @property
    def target_s(self) -> float:
        """Seconds until the first audio of a stream is due."""
        return self._pacing.target_s

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

    def waiting(self) -> dict[Priority, int]:
        """How many jobs of each priority wait."""
        by_worker = [batcher.scheduler.waiting() for batcher in self._batchers]
        return {priority: sum(waiting[priority] for waiting in by_worker) for priority in PRIORITIES}

    def backlog_s(self) -> float:
        """Device seconds until all waiting jobs have run, of the worker with the most."""
        return max(batcher.backlog_s for batcher in self._batchers)

    def expected_wait_s(self) -> float:
        """Seconds until a new stream would have its first audio, at the worker that would get it."""
        return self.predicted_wait_s("live") + self.sentence_s()

    def predicted_wait_s(self, delivery: Delivery) -> float:
        """Seconds that a new request would wait before its work begins, at the worker that would get it."""
        priority: Priority = "bulk" if delivery == "bulk" else "first"
        return self.next_batcher().predicted_wait_s(self._checkpoint, priority, self._pacing.target(delivery))

    def log_cost(self) -> None:
        """Say what the model processes cost on this machine, and how fast one of them is."""
        memory = [batcher.worker.status.memory for batcher in self._batchers]
        log.info(
            "models loaded workers=%d memory=%.0fMB device_memory=%.0fMB sentence=%.0fms",
            len(memory), sum(each.resident_bytes for each in memory) / 1e6,
            sum(each.device_bytes for each in memory) / 1e6, 1000 * self.sentence_s(),
        )  # fmt: skip

    def sentence_s(self) -> float:
        """Predicted device seconds of a typical sentence, at the worker that would get it."""
        return self.next_batcher().scheduler.sentence_s(self._checkpoint)

    def busy_ratio(self) -> float:
        """Share of the last 10 s in which the devices had a batch, the mean over all workers."""
        return sum(batcher.busy_ratio for batcher in self._batchers) / len(self._batchers)

    def next_batcher(self) -> Batcher:
        """The worker that gets the next stream: the one with the least work, streams included whose text is read."""
        if len(self._batchers) == 1:
            return self._batchers[0]

        def work_s(batcher: Batcher) -> float:
            return batcher.backlog_s + batcher.start_delay.n_starting * batcher.scheduler.sentence_s(self._checkpoint)

        return min(self._batchers, key=lambda batcher: (not batcher.ready, work_s(batcher)))

    def refresh_gauges(self) -> None:
        """Set the gauges that change by themselves; called in the event loop before the metrics are read."""
        self.batch_stats.queue(self.waiting(), self.backlog_s())
        self.batch_stats.load({name: self.predicted_wait_s(name) for name in DELIVERIES}, self.busy_ratio())

    def costs(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What batches of the default checkpoint cost the first worker, as it has learned: see batching.cost."""
        scheduler = self._batchers[0].scheduler

        def stage_costs(key: Key) -> dict[str, Any]:
            cost = scheduler.cost(key)
            cores = cost.layout.cores if isinstance(cost.layout, SideBySide) else None
            return {"coefficients": list(cost.coefficients), "cores": cores, "error": round(cost.error, 4)}

        return {self._checkpoint: {stage: stage_costs(Key(self._checkpoint, stage)) for stage in STAGES}}

    def settings(self) -> dict[str, bool | int | float | None]:
        """The configuration of the batching, by the names of the settings where there is one."""
        limits = self._batchers[0].scheduler.limits
        window = next((policy for policy in self._policies.values() if isinstance(policy, Window)), Window())
        return {
            "batching": limits.max_rows > 1,
            "max_batch_size": limits.max_rows,
            "max_queue": limits.max_waiting,
            "first_audio_ms": 1000 * self._pacing.target_s,
            "cap_ms": round(1000 * limits.cap_s, 3) if isfinite(limits.cap_s) else None,
            "first_chunks": self._pacing.first_chunks,
            "max_wait_ms": 1000 * window.max_wait_s,
            "min_wait_ms": 1000 * window.min_wait_s,
            "early_rows": window.early_rows,
            "max_batch_frames": limits.max_padded.get("vocoder"),
            "max_batch_text": limits.max_text,
        }

    def stats(self) -> dict[str, Any]:
        """Statistics of the batching, with the field names of the HTTP API."""
        settings, waiting = self.settings(), self.waiting()
        return {
            "queue_status": {
                "current_size": sum(waiting.values()),
                "by_class": waiting,
                "backlog_s": self.backlog_s(),
                "expected_wait_s": self.expected_wait_s(),
                "worker_running": any(batcher.ready for batcher in self._batchers),
            },
            "performance": self.batch_stats.as_dict(),
            "config": {
                "policy": self.policy,
                "max_batch_size": settings["max_batch_size"],
                "max_wait_ms": settings["max_wait_ms"],
                "min_wait_ms": settings["min_wait_ms"],
                "max_queue_size": settings["max_queue"],
                "first_audio_ms": settings["first_audio_ms"],
                "bypass_chunks": settings["first_chunks"],
            },
        }

    def workers(self) -> dict[str, Any]:
        """State of the workers, with the field names of the HTTP API."""
        states = [batcher.worker.status.state for batcher in self._batchers]
        return {
            "totalWorkers": len(states),
            "readyWorkers": sum(batcher.ready for batcher in self._batchers),
            "busyWorkers": states.count("busy"),
            "asleepWorkers": states.count("asleep"),
            "queueSize": sum(self.waiting().values()),
            "batchingEnabled": self.settings()["batching"],
        }
