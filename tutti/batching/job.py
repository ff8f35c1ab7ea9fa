"""A row that waits for one stage, and the batch it runs in: plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from tutti.admission.feasibility import NOTHING_REMAINS, Remaining
from tutti.batching.layout import Layout
from tutti.speech import Stages

Priority = Literal["first", "next", "bulk"]
StageName = Literal["acoustic", "vocoder"]
# Why a batch has no more rows. free: no other job waited. full: a limit on rows, memory or characters. cost, deadline:
# one more row would have cost too much, or made a row late. window, early, quiet, bypass: the rule of that policy that
# started it. retry: part of a failed batch.
Reason = Literal["free", "full", "cost", "deadline", "window", "early", "quiet", "bypass", "retry"]
PRIORITIES: tuple[Priority, ...] = ("first", "next", "bulk")
STAGES: tuple[StageName, ...] = ("acoustic", "vocoder")
FUSED_S = 0.05  # of later stages that several rows may run in one call; larger saves calls, and rows wait for others


class Key(NamedTuple):
    """Jobs may share a batch if and only if their keys are equal."""

    checkpoint: str
    stage: StageName


@dataclass(slots=True, eq=False)
class Job:
    """One row that waits for one stage."""

    key: Key
    stream: int  # jobs of one stream and key run in the order in which they were added
    priority: Priority
    size: int  # tokens (acoustic) or frames (vocoder)
    deadline_s: float  # monotonic clock: when the samples are needed
    later_s: float = 0.0  # predicted seconds of the stages after this one
    caller: str = ""  # the device is shared fairly between callers
    n_characters: int = 0
    arrived_s: float = 0.0
    is_continuation: bool = False  # a later span of a row: runs before further chunks of its stream, even if late
    starts_stream: bool = False  # nothing of its stream was heard before
    goes_first: bool = False  # before those that are due sooner: its caller has few streams, beside one with most
    starts_late: bool = False  # its stream was accepted to start after its target: ranks behind those in time till then
    spans: Remaining = NOTHING_REMAINS  # further spans of its row, which are queued one by one
    may_split: bool = False  # its row may be worth cutting into spans once its length is known
    max_start_s: float | None = None  # how long its stream may wait for its first audio; none: as the scheduler says
    give_up_s: float = inf  # when the client of its stream stops to wait for its first audio
    remaining: Remaining | None = None  # none: known from another job of its stream, or not at all

    @property
    def is_bulk(self) -> bool:
        return self.priority == "bulk"

    @property
    def due_s(self) -> float:
        """When this stage must be done so that the later ones meet the deadline."""
        return self.deadline_s - self.later_s

    @property
    def own_s(self) -> float:
        """Until when further chunks of its stream may share its pass: not at all if nothing of the stream was heard."""
        return inf if self.is_bulk else -inf if self.starts_stream else self.due_s

    @property
    def remaining_of_stream(self) -> Remaining:
        """All that follows it, as far as it is known."""
        text = self.remaining or NOTHING_REMAINS
        return Remaining(text.seconds + self.spans.seconds, max(text.share, self.spans.share))

    @property
    def waits_to_start(self) -> bool:
        """Whether its stream may start late, and has not started."""
        return self.starts_late and self.starts_stream

    @property
    def catches_up(self) -> bool:
        """Whether it goes on with a stream that may start late."""
        return self.starts_late and not self.starts_stream


def may_run_both(jobs: Sequence[Job]) -> bool:
    """Whether these rows, if no others are there, may run their later stages in the same call.

    They come back together, and whole: a chunk would wait for later ones of its stream, or for those of others.
    """
    is_first = jobs[0].key.stage == "acoustic"
    is_short = len(jobs) == 1 or sum(job.later_s for job in jobs) <= FUSED_S
    return is_first and is_short and not any(job.may_split for job in jobs)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Jobs for one pass in the order in which they were picked, and why no more joined."""

    key: Key
    jobs: tuple[Job, ...]
    reason: Reason
    predicted_s: float
    layout: Layout
    stages: Stages  # that run in one call; where that is both, all else is about the acoustic one

    @property
    def n_rows(self) -> int:
        return len(self.jobs)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(job.size for job in self.jobs)

    @property
    def padded(self) -> int:
        """Tokens or frames that the device computes, padding included."""
        return self.layout.padded_size(self.sizes)

    @property
    def padded_lengths(self) -> list[int]:
        """Length of each row in its pass, padding included."""
        return self.layout.padded_lengths(self.sizes)

    @property
    def waste(self) -> float:
        """Share of the pass that is padding."""
        padded = self.padded
        return 1.0 - sum(self.sizes) / padded if padded else 0.0
