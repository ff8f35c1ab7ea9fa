"""Targets and look-ahead of streams, by how they are delivered."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tutti.admission.ticket import Delivery
from tutti.model.spans import SpanRules
from tutti.text.chunk import DEFAULT_PACE


@dataclass(frozen=True, slots=True)
class Pacing:
    """Targets for the first audio, and how many chunks are made ahead of the listener."""

    target_s: float = 1.5  # to the first audio
    whole_target_s: float = 20.0  # to the first chunk of a whole answer; clients give up after 30 s
    bulk_target_s: float = 60.0  # to each chunk of bulk work
    whole_max_start_s: float | None = None  # how long a whole answer may wait to start; none: as long as a stream
    ahead: int = 2  # chunks made beyond the one that the caller waits for; more wastes work when a client leaves
    whole_ahead: int = 4  # the same for whole answers and bulk work
    idle_unload_s: float | None = None  # without a stream, after which the models are unloaded; none: never
    first_chunks: int = 2  # chunks of a stream that count as first
    joined_symbols: int = DEFAULT_PACE.joined_symbols  # up to which sentences are joined to a chunk; see ChunkPace
    span_rules: Mapping[str, SpanRules] = field(default_factory=dict)  # by checkpoint; others deliver whole rows

    def target(self, delivery: Delivery) -> float:
        """Seconds until the first audio is due."""
        return {"live": self.target_s, "whole": self.whole_target_s, "bulk": self.bulk_target_s}[delivery]
