"""A batch while it is put together."""

from math import inf

from tutti.batching.job import Batch, Job, Reason
from tutti.batching.layout import extent
from tutti.batching.policies import Choice, Draft, Policy
from tutti.batching.queue import Lot

MAX_PASSED_OVER = 8  # rows that do not fit, before a batch goes as it is


class Forming:
    """Starts from the choice of a policy and asks the limits and the policy about every lot that might join."""

    def __init__(
        self, choice: Choice, policy: Policy, max_rows: int, max_text: int | None, max_padded: float, now: float
    ) -> None:
        self._choice = choice
        self._policy = policy
        self._cost = choice.waiting.cost
        self._max_rows = 0 if choice.alone or choice.lot.apart else max_rows
        self._max_text = inf if max_text is None else max_text
        self._max_padded = max_padded
        self._now = now
        self._jobs: list[Job] = list(choice.waiting.alive(choice.lot))
        rows = extent([job.size for job in self._jobs])
        self._draft = Draft(choice.lot, rows, self._cost.seconds(rows), _kept(choice.lot, now))
        self._text = sum(job.n_characters for job in self._jobs)
        self._passed_over = 0
        self._stopped: Reason | None = None

    def form(self) -> Batch:
        """The batch; its jobs wait no longer."""
        choice = self._choice
        for tier in self._policy.fill_from(choice.tier):
            choice.waiting.take(tier, self._now, self._offer)
        reason = self._stopped if self._stopped and choice.reason == "free" else choice.reason
        predicted_s, n_behind = self._draft.predicted_s, len(choice.waiting)
        return Batch(choice.waiting.key, tuple(self._jobs), reason, predicted_s, self._cost.shape, n_behind)

    def _offer(self, lot: Lot) -> bool | None:
        """True: it joins. False: it does not, but one behind it may. None: enough."""
        if lot is self._choice.lot:
            return True
        if len(self._jobs) >= self._max_rows:
            self._stopped = "full"
            return None
        if lot.apart:
            return False
        why = self._try(lot, lot.jobs[0])
        if why is None:
            return True
        self._stopped = self._stopped or why
        self._passed_over += 1
        return False if self._policy.passes_over and self._passed_over < MAX_PASSED_OVER else None

    def _try(self, lot: Lot, job: Job) -> Reason | None:
        draft, now, text = self._draft, self._now, self._text + job.n_characters
        rows = draft.rows.with_row(job.size)
        if text > self._max_text or self._cost.padded(rows) > self._max_padded:
            return "full"
        then_s, due_s = self._cost.seconds(rows), min(draft.due_s, _kept(lot, now))
        why = self._policy.refuses(draft, lot, then_s, due_s, now)
        if why is None:
            draft.rows, draft.predicted_s, draft.due_s = rows, then_s, due_s
            self._text = text
            self._jobs.append(job)
        return why


def _kept(lot: Lot, now: float) -> float:
    """The deadline that a batch with this lot must keep; none if it is too late anyway."""
    return lot.due_s if now + lot.alone_s <= lot.due_s else inf
