"""A tone model with a row for every fault, chosen by the row's first token; and helpers of the worker tests."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from tutti.errors import DeviceFull, InvalidInput, ModelFailed, WeightsCorrupt
from tutti.model.protocol import Model, OnStep, Traits
from tutti.model.tone import ToneModel, pitch_hz
from tutti.speech import Frames, Samples, Stages, Utterance
from tutti.worker.messages import FrameRange, Run
from tutti.worker.process import ProcessWorker

TIMEOUT_S = 60.0  # of calls that must not take long


class Fault(IntEnum):
    """First tokens of rows, and what they cause."""

    DIES = 140
    HANGS = 141
    FAILS = 142
    DEVICE_FULL = 143
    NO_MEMORY = 144
    UNEXPECTED = 145
    INVALID = 146
    ROW_MISSING = 147  # one row too few is returned
    VOCODER_FAILS = 148
    VOCODER_HANGS = 151
    VOCODER_DIES = 152
    LOGS = 149
    GROWS = 150


class FaultyModel(ToneModel):
    """`folder` connects it with the test: it writes `running` there, and hangs until there is `continue`."""

    def __init__(self, folder: Path, stages_overlap: bool = False) -> None:
        super().__init__()
        self.traits = Traits(stages_overlap)
        self._folder = folder
        self._kept: list[bytes] = []

    def warm_up(self, progress: OnStep = lambda *_: None) -> None:
        for done in range(3):
            progress(done + 1, 3)

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        for row in rows:
            self._act(int(row.tokens[1]))
        batch = super().acoustic(rows)
        return batch[:-1] if any(row.tokens[1] == Fault.ROW_MISSING for row in rows) else batch

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if any(pitch_hz(Fault.VOCODER_FAILS) in row.f0 for row in rows):
            raise ModelFailed("not a voice")
        for fault, acts_as in ((Fault.VOCODER_HANGS, Fault.HANGS), (Fault.VOCODER_DIES, Fault.DIES)):
            if any(pitch_hz(fault) in row.f0 for row in rows):
                self._act(acts_as)
        return super().vocoder(rows)

    def close(self) -> None:
        (self._folder / "closed").touch()

    def _act(self, fault: int) -> None:
        match fault:
            case Fault.DIES:
                os.kill(os.getpid(), signal.SIGKILL)
            case Fault.HANGS:
                (self._folder / "running").touch()
                while not (self._folder / "continue").exists():
                    time.sleep(0.005)
            case Fault.FAILS:
                raise ModelFailed("the network failed on this row")
            case Fault.DEVICE_FULL:
                raise DeviceFull("send fewer")
            case Fault.NO_MEMORY:
                raise MemoryError
            case Fault.UNEXPECTED:
                raise KeyError("unforeseen")
            case Fault.INVALID:
                raise InvalidInput("no such speed", param="speed")
            case Fault.LOGS:
                logging.getLogger("tutti.faulty").warning("logged in row %s", fault)
            case Fault.GROWS:
                self._kept.append(bytes(np.ones(400_000_000, np.uint8)))


@dataclass(frozen=True, slots=True)
class FaultyModels:
    """Makes the models, or fails as a file in the folder says; counts its calls there."""

    folder: Path
    stages_overlap: bool = False

    def __call__(self) -> Mapping[str, Model]:
        with (self.folder / "starts").open("a") as starts:
            starts.write("start\n")
        for name, fail in _START_FAULTS.items():
            if (self.folder / name).exists():
                fail()
        other = ToneModel()
        other.traits = Traits(self.stages_overlap)
        return {"tone": FaultyModel(self.folder, self.stages_overlap), "other": other}

    def n_starts(self) -> int:
        path = self.folder / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0


class OverlappingWorker(ProcessWorker):
    """A process worker whose model lets its stages overlap."""

    def __init__(self, make_models: FaultyModels, **options: Any) -> None:
        super().__init__(replace(make_models, stages_overlap=True), **options)


def _corrupt() -> None:
    raise WeightsCorrupt("the bytes are wrong", param="model")


def _broken() -> None:
    raise RuntimeError("a bug")


_START_FAULTS: dict[str, Callable[[], object]] = {
    "corrupt": _corrupt,
    "broken": _broken,
    "deadly": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}


def first_stage(rows: Iterable[tuple[int, Utterance]], checkpoint: str = "tone") -> Run:
    return _run("acoustic", rows, checkpoint)


def second_stage(ids: Iterable[int], spans: Mapping[int, FrameRange] = {}, checkpoint: str = "tone") -> Run:
    return Run(checkpoint, "vocoder", tuple(ids), (), spans)


def both_stages(rows: Iterable[tuple[int, Utterance]], checkpoint: str = "tone") -> Run:
    return _run("both", rows, checkpoint)


def _run(stages: Stages, rows: Iterable[tuple[int, Utterance]], checkpoint: str) -> Run:
    of = dict(rows)
    return Run(checkpoint, stages, tuple(of), tuple(of.values()))


def row(*tokens: int, speed: float = 1.0) -> Utterance:
    return Utterance(np.array([0, *tokens, 0]), np.zeros(256, np.float32), speed)


def expected_samples(utterance: Utterance) -> Samples:
    model = ToneModel()
    return model.vocoder(model.acoustic([utterance]))[0]


async def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)
