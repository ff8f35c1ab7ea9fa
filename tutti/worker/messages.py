"""What a worker is told, and what it answers: values that may cross a process border."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tutti.errors import TuttiError
from tutti.speech import Model, Utterance

Make = Callable[[], Mapping[str, Model]]  # checkpoints by name; picklable when another process shall call it
Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all (0: not known)
FrameRange = tuple[int, int]  # frames: from, and up to
State = Literal["starting", "ready", "busy", "restarting", "failed", "closed"]


@dataclass(frozen=True, slots=True, eq=False)
class Acoustic:
    """Rows become frames, which stay with the worker under the rows' ids; answered by Durations."""

    checkpoint: str
    rows: tuple[tuple[int, Utterance], ...]
    on: bool = False  # nobody else waits: these rows will be asked for next, so their sound may be begun


@dataclass(frozen=True, slots=True)
class Vocoder:
    """The frames kept under these ids become samples; answered by Sound. Of rows with a span, that stretch alone."""

    checkpoint: str
    ids: tuple[int, ...]
    spans: Mapping[int, FrameRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody waits for these rows any more; not answered."""

    ids: tuple[int, ...]


Order = Acoustic | Vocoder | Forget


@dataclass(frozen=True, slots=True)
class Memory:
    """What a worker holds: of the machine's memory, and of the CUDA device's where it has one."""

    resident_bytes: int = 0
    device_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """How a worker fares. `error` says why it last went down or failed to start, also after it came back."""

    state: State
    error: str = ""
    restarts: int = 0
    memory: Memory = Memory()


@dataclass(frozen=True, slots=True)
class Step:
    """How far the start has come."""

    what: str
    done: int
    steps: int


@dataclass(frozen=True, slots=True)
class Ready:
    memory: Memory


@dataclass(frozen=True, slots=True, eq=False)
class Durations:
    frames: tuple[NDArray[np.int64], ...]
    memory: Memory | None  # none where the sound is made at once, and tells


@dataclass(frozen=True, slots=True)
class Sound:
    """Rows of so many samples each, in the shared memory that came along."""

    n_samples: tuple[int, ...]
    memory: Memory


@dataclass(frozen=True, slots=True)
class Failed:
    error: TuttiError
    memory: Memory


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the log, to be written where the others are."""

    record: logging.LogRecord


Reply = Step | Ready | Durations | Sound | Failed | Logged
