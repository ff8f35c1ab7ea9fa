"""Rate limits per caller: token buckets, on a clock that is passed in."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tutti.server.errors import RateLimited

MAX_CALLERS = 10_000  # the least recently seen are dropped; a dropped caller starts again with a full bucket


@dataclass(slots=True)
class Bucket:
    n_tokens: float
    filled_at: float


class RateLimit:
    """A limit per minute and caller. The bucket holds one minute's worth; a larger request empties it."""

    def __init__(self, per_minute: float, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._unit = unit
        self._clock = clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, caller: str, n: float = 1) -> None:
        """Take `n` tokens, or raise RateLimited with the time until they are available."""
        if not self._per_minute:
            return
        now = self._clock()
        bucket = self._buckets.setdefault(caller, Bucket(self._per_minute, now))
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        per_second = self._per_minute / 60
        bucket.n_tokens = min(self._per_minute, bucket.n_tokens + (now - bucket.filled_at) * per_second)
        bucket.filled_at = now
        needed = min(n, self._per_minute)  # more than a bucket holds is accepted when it is full
        if bucket.n_tokens < needed:
            raise RateLimited(
                f"more than {self._per_minute:g} {self._unit} per minute",
                retry_after_s=(needed - bucket.n_tokens) / per_second,
            )
        bucket.n_tokens -= n


class RateLimits:
    """The limits on requests and on characters."""

    def __init__(self, requests: float, characters: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.requests = RateLimit(requests, "requests", clock)
        self.characters = RateLimit(characters, "characters", clock)
