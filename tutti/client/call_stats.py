"""Timings of each call, and statistics over many calls."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from tutti.percentile import percentile

MAX_CALLS = 4096  # latest calls kept for the percentiles

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Call:
    """One call, measured from its start. Times are what the caller waited; the caller's own work is not included."""

    kind: str  # speak, stream or live
    n_bytes: int = 0
    first_byte_s: float | None = None  # until the first byte of audio, failed attempts included
    buffer_s: float = 0.0  # waiting for the bytes after the first
    synthesis_s: float | None = None  # the server's own time for the first audio, from Server-Timing
    attempts: int = 0
    new_connections: int = 0
    cached: bool = False
    error: str | None = None  # error code
    timestamp: float = 0.0  # when the call began, in seconds since 1970

    @property
    def total_s(self) -> float | None:
        return None if self.first_byte_s is None else self.first_byte_s + self.buffer_s

    @property
    def retries(self) -> int:
        return max(0, self.attempts - 1)

    @property
    def is_measured(self) -> bool:
        """Whether its times count: not those of errors and cache hits."""
        return self.error is None and not self.cached

    @property
    def network_s(self) -> float | None:
        """Time to the first byte that was not synthesis: network, the server's queue, and retries."""
        if self.first_byte_s is None or self.synthesis_s is None:
            return None
        return max(0.0, self.first_byte_s - self.synthesis_s)


class Stopwatch:
    """Measures one call."""

    def __init__(self, kind: str, clock: Clock) -> None:
        self.kind = kind
        self.clock = clock
        self.attempts = 0
        self.new_connections = 0
        self.n_bytes = 0
        self._started = clock()
        self._timestamp = time.time()
        self._first_byte_s: float | None = None
        self._buffer_s = 0.0
        self._synthesis_s: float | None = None

    def begin_attempt(self) -> None:
        """Count an attempt and discard the times of the one before it, as its data was discarded too."""
        self.attempts += 1
        self._first_byte_s, self._buffer_s, self._synthesis_s = None, 0.0, None

    def mark_first_byte(self, server_timing: str) -> None:
        self._first_byte_s = self.clock() - self._started
        self._synthesis_s = synthesis_s(server_timing)

    def add_wait(self, seconds: float) -> None:
        self._buffer_s += seconds

    def call(self, error: str | None = None, *, cached: bool = False) -> Call:
        """Return what was measured so far."""
        return Call(
            *(self.kind, self.n_bytes, self._first_byte_s, self._buffer_s, self._synthesis_s),
            *(self.attempts, self.new_connections, cached, error, self._timestamp),
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of many durations, in seconds."""

    avg: float = 0.0
    min: float = 0.0
    max: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts since the start or the last reset; durations of the latest calls, without errors and cache hits."""

    count: int
    errors: int
    cached: int
    retries: int
    connections: int
    reuse_rate: float  # share of the attempts that needed no new connection
    first_byte_s: Summary
    total_s: Summary
    synthesis_s: Summary
    network_s: Summary
    buffer_s: Summary

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


class CallLog:
    """Counts calls and keeps the latest. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: deque[Call] = deque(maxlen=MAX_CALLS)
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
            self._retries += call.retries
            self._connections += call.new_connections
            if call.is_measured:
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
            summarise([call.first_byte_s for call in calls]),
            summarise([call.total_s for call in calls]),
            summarise([call.synthesis_s for call in calls]),
            summarise([call.network_s for call in calls]),
            summarise([call.buffer_s for call in calls]),
        )


def summarise(times: Sequence[float | None]) -> Summary:
    """Summarise the durations that are known."""
    durations = sorted(seconds for seconds in times if seconds is not None)
    if not durations:
        return Summary()
    p50, p95, p99 = (percentile(durations, p) or 0.0 for p in (50, 95, 99))
    return Summary(sum(durations) / len(durations), durations[0], durations[-1], p50, p95, p99, len(durations))


def synthesis_s(server_timing: str) -> float | None:
    """Sum the durations of `Server-Timing: g2p;dur=0.4, acoustic;dur=9.1`, without the time in the queue."""
    total_ms, has_duration = 0.0, False
    for entry in server_timing.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur" and name != "queue":
                try:
                    total_ms, has_duration = total_ms + float(value.strip('" ')), True
                except ValueError:
                    continue
    return total_ms / 1000 if has_duration else None
