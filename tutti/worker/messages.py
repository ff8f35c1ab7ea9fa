"""Messages between a worker and its process; all of them picklable.

What goes with every batch is a named tuple: it is pickled and read faster than a dataclass.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tutti.errors import TuttiError
from tutti.model.protocol import Model, Ran
from tutti.speech import Stages, Utterance
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


# To the worker's process:


class Run(NamedTuple):
    """Run stages of some rows. Between two calls their frames stay in the worker."""

    checkpoint: str
    stages: Stages
    ids: tuple[int, ...]
    utterances: tuple[Utterance, ...] = ()  # of these rows; none for the vocoder alone
    spans: Mapping[int, FrameRange] = {}  # of rows of which the vocoder makes only a part


class Forget(NamedTuple):
    """Drop the frames of these rows; not answered."""

    ids: tuple[int, ...]


class NumberedRun(NamedTuple):
    """A call, and the number that its answer will have: where stages overlap, answers come in any order."""

    number: int
    run: Run


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


class RunEnded(NamedTuple):
    """What a call made, or its error. The samples lie in the shared memory whose descriptor comes with this message."""

    number: int
    result: Ran | TuttiError
    formats: tuple[RowFormat, ...]  # of the samples of each row
    memory: Memory


@dataclass(frozen=True, slots=True)
class StartFailed:
    error: TuttiError


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A log record of the process, to be logged by the parent."""

    record: logging.LogRecord


Message = StartProgress | ModelsReady | StartFailed | RunEnded | LogMessage
