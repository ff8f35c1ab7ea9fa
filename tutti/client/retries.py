"""When to ask again: pure, so that it can be read and tested without a clock."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, how soon, and how long a server may make us wait."""

    times: int = 2
    first_s: float = 0.2
    patience_s: float = 30.0

    def wait_s(self, failed: int, asked_s: float | None, left_s: float | None, luck: float) -> float | None:
        """Seconds until the next attempt, or none: give up. `luck` from 0 to 1 spreads the herd."""
        if failed > self.times:
            return None
        wait_s = self.first_s * 2 ** (failed - 1) * (0.5 + luck / 2) if asked_s is None else asked_s
        if wait_s > self.patience_s or (left_s is not None and wait_s >= left_s):
            return None  # telling the caller now is better than failing later
        return wait_s
