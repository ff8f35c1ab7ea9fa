"""When to try again. Pure: no clock, no randomness of its own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retries:
    """Exponential backoff with jitter, within the limits below."""

    max_retries: int = 2
    first_wait_s: float = 0.2  # before the first retry, if the server named no time; doubles each time
    max_wait_s: float = 30.0  # give up at once if the server asks for more

    def wait_s(self, n_failed: int, retry_after_s: float | None, left_s: float | None, jitter: float) -> float | None:
        """Return the seconds until the next attempt, or None to give up. `jitter` from 0 to 1 spreads clients."""
        if n_failed > self.max_retries:
            return None
        backoff_s = self.first_wait_s * 2 ** (n_failed - 1) * (0.5 + jitter / 2)
        wait_s = backoff_s if retry_after_s is None else retry_after_s
        if wait_s > self.max_wait_s or (left_s is not None and wait_s >= left_s):
            return None  # an error now is better than the same error later
        return wait_s
