"""What a run does when, by the clock: learning rates and phases as functions of the seconds since training began."""

import math
from dataclasses import dataclass
from typing import Literal

Phase = Literal["imitation", "regression", "adversarial"]
FINAL = 0.01  # of the highest learning rate, at the end of a phase


@dataclass(frozen=True, slots=True)
class Schedule:
    """First the imitation of another network, if at all, and regression; then, for the last part, the critics: at first
    they alone learn.
    """

    seconds: float
    critic_part: float = 0.25  # of the time
    rate: float = 8e-4
    critic_phase_rate: float = 2e-4  # of the student
    critic_rate: float = 3e-4
    warm_up_s: float = 5.0
    critic_alone_s: float = 12.0
    imitation_part: float = 0.0  # of the time

    @property
    def regression_s(self) -> float:
        return self.seconds * (1 - self.critic_part)

    def phase(self, now_s: float) -> Phase:
        if self.is_adversarial(now_s):
            return "adversarial"
        return "imitation" if now_s < self.seconds * self.imitation_part else "regression"

    def is_adversarial(self, now_s: float) -> bool:
        return now_s >= self.regression_s and self.critic_part > 0

    def student_rate(self, now_s: float) -> float:
        if not self.is_adversarial(now_s):
            return self.rate * _cosine(now_s, self.regression_s, self.warm_up_s)
        since = now_s - self.regression_s - self.critic_alone_s
        duration = self.seconds - self.regression_s - self.critic_alone_s
        return 0.0 if since < 0 else self.critic_phase_rate * _cosine(since, duration, self.warm_up_s)

    def judge_rate(self, now_s: float) -> float:
        if not self.is_adversarial(now_s):
            return 0.0
        return self.critic_rate * _cosine(now_s - self.regression_s, self.seconds - self.regression_s, 0.0)


def _cosine(now_s: float, duration_s: float, warm_up_s: float) -> float:
    if now_s < warm_up_s:
        return (now_s + 0.1) / (warm_up_s + 0.1)
    part = min(1.0, (now_s - warm_up_s) / max(1e-6, duration_s - warm_up_s))
    return FINAL + (1 - FINAL) * 0.5 * (1 + math.cos(math.pi * part))
