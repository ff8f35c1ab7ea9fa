"""Schedulers and jobs on a virtual clock."""

import itertools

from tutti.batching.cost import Coefficients, CostModel
from tutti.batching.job import Batch, Job, Key, Priority
from tutti.batching.layout import Layout
from tutti.batching.policies import Deadline, Policy
from tutti.batching.scheduler import Limits, Scheduler
from tutti.plan.simulation import Padded

VOCODER = Key("kokoro", "vocoder")
CAP_S = 0.08
COST: Coefficients = (0.01, 0.0, 2e-5, 0.0)  # a pass takes 10 ms, a row of 100 adds 2 ms
numbers = itertools.count(1_000_000)


def new_scheduler(
    policy: Policy | None = None,
    *,
    cap_s: float = CAP_S,
    layout: Layout | None = None,
    cost: Coefficients = COST,
    **limits: object,
) -> Scheduler:
    model = CostModel(layout or Padded(), cost)
    chosen = Limits(cap_s=cap_s, **{"max_start_s": 0.0, **limits})  # type: ignore[arg-type]
    return Scheduler(chosen, lambda key: model, policy or Deadline(cap_s))


def new_job(
    size: int = 100, deadline_s: float = 1e6, priority: Priority = "next", caller: str = "", key: Key = VOCODER
) -> Job:
    """A job of a stream of its own."""
    return Job(key, next(numbers), priority, size, deadline_s, caller=caller)


def first_job(
    scheduler: Scheduler, cost_s: float, deadline_s: float, priority: Priority = "first", caller: str = ""
) -> Job:
    """The first job of a stream whose stages take `cost_s` in all."""
    later_s = cost_s - scheduler.predict(VOCODER, 1)
    return Job(VOCODER, next(numbers), priority, 1, deadline_s, later_s, caller)


def run(scheduler: Scheduler, now: float) -> tuple[Batch, float]:
    """Form a batch and finish it in the predicted time."""
    batch = scheduler.next_batch(now)
    assert batch is not None
    scheduler.finished(batch, batch.predicted_s, now + batch.predicted_s)
    return batch, now + batch.predicted_s
