"""A row on its way through one stage, and the batch it leaves in: plain values."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tutti.batching.layout import Layout

Priority = Literal["first", "next", "bulk"]
StageName = Literal["acoustic", "vocoder"]
Reason = Literal["free", "full", "cost", "deadline", "window", "early", "quiet", "bypass", "retry"]


class Key(NamedTuple):
    """Rows may share a batch if and only if their keys are equal."""

    checkpoint: str
    stage: StageName


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One row that waits for one stage."""

    key: Key
    stream: int  # jobs of one stream and key leave in the order in which they came
    kind: Priority
    size: int  # tokens (acoustic) or frames (vocoder)
    deadline_s: float  # monotonic clock: when the samples are needed
    then_s: float = 0.0  # predicted seconds of the stages after this one
    caller: str = ""  # fair share is between callers
    n_characters: int = 0
    arrived_s: float = 0.0
    goes_on: bool = False  # a stretch of a row that sounds already

    @property
    def due_s(self) -> float:
        """When this stage must be done, so that the ones after it are in time."""
        return self.deadline_s - self.then_s


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows for one pass, in the order in which they were taken, and why no more of them."""

    key: Key
    jobs: tuple[Job, ...]
    reason: Reason
    predicted_s: float
    shape: Layout
    n_behind: int = 0  # of the same key, who had to stay

    @property
    def rows(self) -> int:
        return len(self.jobs)

    @property
    def longest(self) -> int:
        return max(job.size for job in self.jobs)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(job.size for job in self.jobs)

    @property
    def padded(self) -> int:
        """Tokens or frames the device works through, padding included."""
        return self.shape.laid_out(self.sizes)

    @property
    def lengths(self) -> list[int]:
        """What each row takes in its pass, padding included."""
        return self.shape.lengths(self.sizes)

    @property
    def waste(self) -> float:
        """The share of the pass that is padding."""
        padded = self.padded
        return 1.0 - sum(self.sizes) / padded if padded else 0.0
