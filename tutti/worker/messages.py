"""Messages between a worker and its process, and the values that callers get; all of them picklable.

What goes with every batch is a named tuple: it is pickled and read faster than a dataclass.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutti.errors import TuttiError
from tutti.speech import Model, Samples, Utterance
from tutti.worker.samples import RowFormat

ModelFactory = Callable[[], Mapping[str, Model]]  # loads the checkpoints, by name; picklable for a process worker
Progress = Callable[[str, int, int], None]  # name of the task, steps done, steps in all (0: not known)
FrameRange = tuple[int, int]  # first frame, and the one after the last
State = Literal["starting", "ready", "busy", "asleep", "restarting", "failed", "closed"]  # asleep: it wakes for a call


def no_progress(task: str, n_done: int, n_steps: int) -> None:
    """Report nothing."""


class Memory(NamedTuple):
    """What a worker holds: memory of the machine, and of the CUDA device where it has one."""

    resident_bytes: int = 0
    device_bytes: int = 0


NOTHING_HELD = Memory()


@dataclass(frozen=True, slots=True)
class Status:
    """State of a worker. `error` says why it last stopped or failed to start, also after a restart."""

    state: State
    error: str = ""
    restarts: int = 0
    memory: Memory = NOTHING_HELD
    stages_overlap: bool = False  # an acoustic call runs at the same time as a call of the vocoder


@dataclass(frozen=True, slots=True, eq=False)
class BothStages:
    """Result of both stages, and the seconds that each of them took inside the worker."""

    durations: list[NDArray[np.int64]]
    samples: list[Samples]
    acoustic_s: float
    vocoder_s: float


# To the worker's process:


class RunAcoustic(NamedTuple):
    """Turn rows into frames, which stay in the worker under the rows' ids; answered by DurationsReady."""

    checkpoint: str
    rows: tuple[tuple[int, Utterance], ...]


class RunVocoder(NamedTuple):
    """Turn the frames kept under these ids into samples, or a span of them; answered by SamplesReady."""

    checkpoint: str
    ids: tuple[int, ...]
    spans: Mapping[int, FrameRange]


class RunBoth(NamedTuple):
    """Run both stages for rows that share no batch with others; answered by BothReady. No frames are kept."""

    checkpoint: str
    rows: tuple[tuple[int, Utterance], ...]


class Forget(NamedTuple):
    """Drop the frames of these rows; not answered."""

    ids: tuple[int, ...]


StageRequest = RunAcoustic | RunVocoder | RunBoth


class NumberedRequest(NamedTuple):
    """A request, and the number that its reply will have: where stages overlap, replies come in any order."""

    number: int
    request: StageRequest


# From the worker's process:


@dataclass(frozen=True, slots=True)
class StartProgress:
    task: str
    n_done: int
    n_steps: int


@dataclass(frozen=True, slots=True)
class ModelsReady:
    memory: Memory
    stages_overlap: bool


class DurationsReady(NamedTuple):
    durations: tuple[NDArray[np.int64], ...]
    memory: Memory


class SamplesReady(NamedTuple):
    """Format of each row; the samples lie in the shared memory whose descriptor comes with this message."""

    formats: tuple[RowFormat, ...]
    memory: Memory


class BothReady(NamedTuple):
    """BothStages, with the samples in shared memory as for SamplesReady."""

    durations: tuple[NDArray[np.int64], ...]
    formats: tuple[RowFormat, ...]
    acoustic_s: float
    vocoder_s: float
    memory: Memory


class RequestFailed(NamedTuple):
    error: TuttiError
    memory: Memory


StageReply = DurationsReady | SamplesReady | BothReady | RequestFailed


class NumberedReply(NamedTuple):
    number: int
    reply: StageReply


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A log record of the process, to be logged by the parent."""

    record: logging.LogRecord


Message = StartProgress | ModelsReady | RequestFailed | NumberedReply | LogMessage  # RequestFailed: the start failed
