"""A ring buffer of the latest batching events, for the dashboard."""

from collections import deque
from collections.abc import Callable
from itertools import islice
from time import monotonic
from typing import Literal, NamedTuple

from tutti.batching.job import Batch

Outcome = Literal["done", "failed", "lost"]
Event = Literal["spoken", "failed", "cancelled", "rejected", "underrun", "retried"]
LENGTH = 2048  # events; a batch of 64 rows takes some 13 kB, one of a CPU below 1 kB


class BatchStarted(NamedTuple):
    """A batch was started."""

    at_s: float
    number: int
    worker: str
    batch: Batch


class BatchEnded(NamedTuple):
    """A batch ended; without seconds if it failed."""

    at_s: float
    number: int
    took_s: float | None
    outcome: Outcome


class FirstAudio(NamedTuple):
    """The first audio of a stream was handed over."""

    at_s: float
    after_s: float
    in_time: bool


class AudioSent(NamedTuple):
    """Audio of a chunk was handed over."""

    at_s: float
    audio_s: float
    in_time: bool


class EventCounted(NamedTuple):
    """An event that is only counted."""

    at_s: float
    event: Event
    n: int


class PolicyChanged(NamedTuple):
    """The policy was changed."""

    at_s: float
    before: str
    policy: str


LogEvent = BatchStarted | BatchEnded | FirstAudio | AudioSent | EventCounted | PolicyChanged


class EventLog:
    """A ring buffer: the newest event replaces the oldest."""

    def __init__(self, length: int = LENGTH, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.started_s = clock()
        self.n_added = 0
        self._events: deque[LogEvent] = deque(maxlen=length)

    def add(self, event: LogEvent) -> None:
        self.n_added += 1
        self._events.append(event)

    def since(self, n: int) -> list[LogEvent]:
        """The events after the first `n` ever added, oldest first, as far as they are still kept."""
        n_new = min(self.n_added - n, len(self._events))
        return list(islice(reversed(self._events), n_new))[::-1]
