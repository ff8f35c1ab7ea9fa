"""The tone model with a row for every trouble: what happens is written into the row's first token."""

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from tutti.errors import DeviceFull, InvalidInput, ModelFailed, WeightsCorrupt
from tutti.model.tone import ToneModel, pitch_hz
from tutti.speech import Frames, Model, Samples, Utterance


class Trouble(IntEnum):
    """First tokens, and what they do."""

    DIES = 140
    HANGS = 141
    POISON = 142
    FULL = 143
    NO_MEMORY = 144
    ODD = 145
    WRONG = 146
    SHORT = 147  # one row too few comes out
    SPEAKS_ILL = 148  # breaks in the vocoder
    LOGS = 149


class TroubledModel(ToneModel):
    """`folder` is how it talks with the test: it writes `running` there, and hangs until there is `go on`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def warm_up(self, progress: Callable[[int, int], None]) -> None:
        for done in range(3):
            progress(done + 1, 3)

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        for row in rows:
            self._act(int(row.tokens[1]))
        found = super().acoustic(rows)
        return found[:-1] if any(row.tokens[1] == Trouble.SHORT for row in rows) else found

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if any(pitch_hz(Trouble.SPEAKS_ILL) in row.f0 for row in rows):
            raise ModelFailed("not a voice")
        return super().vocoder(rows)

    def close(self) -> None:
        (self._folder / "closed").touch()

    def _act(self, trouble: int) -> None:
        match trouble:
            case Trouble.DIES:
                os.kill(os.getpid(), signal.SIGKILL)
            case Trouble.HANGS:
                (self._folder / "running").touch()
                while not (self._folder / "go on").exists():
                    time.sleep(0.005)
            case Trouble.POISON:
                raise ModelFailed("this row broke the network")
            case Trouble.FULL:
                raise DeviceFull("send fewer")
            case Trouble.NO_MEMORY:
                raise MemoryError
            case Trouble.ODD:
                raise KeyError("nobody thought of this")
            case Trouble.WRONG:
                raise InvalidInput("no such speed", param="speed")
            case Trouble.LOGS:
                logging.getLogger("tutti.troubled").warning("heard in row %s", trouble)


@dataclass(frozen=True, slots=True)
class Troubled:
    """Makes the model, unless a file in the folder says what is wrong today; counts its starts there."""

    folder: Path

    def __call__(self) -> Mapping[str, Model]:
        with (self.folder / "starts").open("a") as starts:
            starts.write("start\n")
        for name, fail in _START_TROUBLES.items():
            if (self.folder / name).exists():
                fail()
        return {"tone": TroubledModel(self.folder), "other": ToneModel()}

    def n_starts(self) -> int:
        path = self.folder / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0


def _corrupt() -> None:
    raise WeightsCorrupt("the bytes are wrong", param="model")


def _broken() -> None:
    raise RuntimeError("a bug")


_START_TROUBLES: dict[str, Callable[[], object]] = {
    "corrupt": _corrupt,
    "broken": _broken,
    "deadly": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}


def row(*tokens: int, speed: float = 1.0) -> Utterance:
    return Utterance(np.array([0, *tokens, 0]), np.zeros(256, np.float32), speed)
