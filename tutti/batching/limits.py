"""What no batch and no queue may exceed, and how long a stream may wait to start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from tutti.admission.control import START_SHARE
from tutti.batching.job import StageName

# A stream may start late by the larger of both, unless it or the limits say otherwise. Larger refuses fewer streams,
# smaller lets those that are accepted start sooner.
MIN_START_S, START_SENTENCES = 2.0, 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What no batch and no queue may exceed. A single row that is too large runs alone."""

    max_rows: int = 64
    max_padded: Mapping[StageName, int] = field(default_factory=dict)  # tokens or frames in one pass
    max_text: int | None = None  # characters in one batch
    max_waiting: int = 1000
    cap_s: float = inf  # the longest a batch should take; 0.4 x the target for first audio
    max_start_s: float | None = None  # how long a stream may wait to start; none: see MIN_START_S
    timeout_s: float = inf  # after which a client that does not say how long it waits has left

    def start_s(self, asked_s: float | None, sentence_s: float) -> float:
        """How long a stream may wait to start, if it asked for this, where a typical sentence takes so long."""
        if self.max_start_s == inf:
            return inf  # nothing is refused
        most_s = inf if self.max_start_s is None else self.max_start_s
        if asked_s is None:
            allowed_s = max(MIN_START_S, START_SENTENCES * sentence_s) if self.max_start_s is None else inf
            asked_s = min(allowed_s, START_SHARE * self.timeout_s)
        return min(asked_s, most_s)

    def give_up_s(self, asked_s: float | None) -> float:
        """How long the client of a stream waits for its first audio, if it asked for this."""
        return self.timeout_s if asked_s is None else asked_s / START_SHARE
