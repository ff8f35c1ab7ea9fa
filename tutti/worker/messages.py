"""What a worker is told, and what it answers: values that may cross a process border."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tutti.errors import TuttiError
from tutti.speech import Model, Samples, Utterance

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


@dataclass(frozen=True, slots=True, eq=False)
class RunBoth:
    """Run both stages for rows that share no batch with others; answered by BothReady. No frames are kept."""

    checkpoint: str
    rows: tuple[tuple[int, Utterance], ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody waits for these rows any more; not answered."""

    ids: tuple[int, ...]


CallMessage = Acoustic | Vocoder | RunBoth
Order = CallMessage | Forget


@dataclass(frozen=True, slots=True, eq=False)
class BothStages:
    """Result of both stages, and the seconds that each of them took inside the worker."""

    durations: list[NDArray[np.int64]]
    samples: list[Samples]
    acoustic_s: float
    vocoder_s: float


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


@dataclass(frozen=True, slots=True, eq=False)
class BothReady:
    """BothStages without its samples, which lie in the shared memory that came along."""

    durations: tuple[NDArray[np.int64], ...]
    n_samples: tuple[int, ...]
    acoustic_s: float
    vocoder_s: float
    memory: Memory


@dataclass(frozen=True, slots=True)
class Failed:
    error: TuttiError
    memory: Memory


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the log, to be written where the others are."""

    record: logging.LogRecord


Reply = Step | Ready | Durations | Sound | BothReady | Failed | Logged
