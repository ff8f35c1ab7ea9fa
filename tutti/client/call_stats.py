"""What each call cost, and what many of them cost together."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

KEPT = 4096  # calls that percentiles are taken over

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Call:
    """One call, measured from the moment it was made. Times are what the caller waited; its own work is not in them."""

    kind: str  # speak, stream or live
    n_bytes: int = 0
    first_byte_s: float | None = None  # until the first byte of audio, attempts that failed included
    buffer_s: float = 0.0  # for the bytes after the first
    synthesis_s: float | None = None  # what the server says it worked for the first audio
    attempts: int = 0
    new_connections: int = 0
    cached: bool = False
    error: str | None = None  # its code

    @property
    def total_s(self) -> float | None:
        return None if self.first_byte_s is None else self.first_byte_s + self.buffer_s

    @property
    def network_s(self) -> float | None:
        """What of the first byte's time the server did not work: the wire, the queue before it, and retries."""
        if self.first_byte_s is None or self.synthesis_s is None:
            return None
        return max(0.0, self.first_byte_s - self.synthesis_s)


class Watch:
    """The stopwatch of one call."""

    def __init__(self, kind: str, clock: Clock) -> None:
        self.kind = kind
        self.clock = clock
        self.attempts = 0
        self.new_connections = 0
        self.n_bytes = 0
        self._started = clock()
        self._first_byte_s: float | None = None
        self._buffer_s = 0.0
        self._synthesis_s: float | None = None

    def begin_attempt(self) -> None:
        """What an earlier attempt received was thrown away, and so are its times."""
        self.attempts += 1
        self._first_byte_s, self._buffer_s, self._synthesis_s = None, 0.0, None

    def answered(self, server_timing: str) -> None:
        self._first_byte_s = self.clock() - self._started
        self._synthesis_s = synthesis_s(server_timing)

    def waited(self, seconds: float) -> None:
        self._buffer_s += seconds

    def call(self, error: str | None = None, *, cached: bool = False) -> Call:
        return Call(
            *(self.kind, self.n_bytes, self._first_byte_s, self._buffer_s, self._synthesis_s),
            *(self.attempts, self.new_connections, cached, error),
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """Many seconds in a few."""

    avg: float = 0.0
    min: float = 0.0
    max: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """Calls since the start or the last reset; seconds over the latest. Answers from the cache have none."""

    count: int
    errors: int
    cached: int
    retries: int
    connections: int
    reuse_rate: float  # of the attempts that went out, those that needed no new connection
    first_byte_s: Summary
    total_s: Summary
    synthesis_s: Summary
    network_s: Summary
    buffer_s: Summary

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


class Ledger:
    """Keeps the calls; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: deque[Call] = deque(maxlen=KEPT)
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self._calls.clear()
            self._count = self._errors = self._cached = self._attempts = self._retries = self._connections = 0

    def add(self, call: Call) -> None:
        with self._lock:
            self._count += 1
            self._errors += call.error is not None
            self._cached += call.cached
            self._attempts += call.attempts
            self._retries += max(0, call.attempts - 1)
            self._connections += call.new_connections
            if call.error is None and not call.cached:
                self._calls.append(call)

    def stats(self) -> Stats:
        with self._lock:
            calls = list(self._calls)
            reused = max(0, self._attempts - self._connections)
            counts = (self._count, self._errors, self._cached, self._retries, self._connections)
            rate = reused / self._attempts if self._attempts else 0.0
        return Stats(
            *counts,
            rate,
            summary([call.first_byte_s for call in calls]),
            summary([call.total_s for call in calls]),
            summary([call.synthesis_s for call in calls]),
            summary([call.network_s for call in calls]),
            summary([call.buffer_s for call in calls]),
        )


def summary(times: Sequence[float | None]) -> Summary:
    known = sorted(seconds for seconds in times if seconds is not None)
    if not known:
        return Summary()
    p50, p95, p99 = (percentile(known, share) for share in (0.50, 0.95, 0.99))
    return Summary(sum(known) / len(known), known[0], known[-1], p50, p95, p99, len(known))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest, in proportion."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def synthesis_s(server_timing: str) -> float | None:
    """The sum of what `Server-Timing: g2p;dur=0.4, acoustic;dur=9.1` tells, waiting in the queue left out."""
    total_ms, found = 0.0, False
    for entry in server_timing.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur" and name != "queue":
                try:
                    total_ms, found = total_ms + float(value.strip('" ')), True
                except ValueError:
                    continue
    return total_ms / 1000 if found else None
