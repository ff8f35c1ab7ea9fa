"""What the exact model makes of rows, kept on disk: a verification that was stopped resumes where it was."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tutti.files import write_file
from tutti.model.prosody import apply_prosody
from tutti.model.protocol import Model
from tutti.speech import Frames, Samples, Utterance


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRow:
    """One row as it was spoken."""

    durations: NDArray[np.int64]
    samples: Samples


class Recordings:
    """Speaks each row once; `folder` keeps the recordings, named by what is spoken and with which weights."""

    def __init__(self, folder: Path | None, weights: str, load: Callable[[], Model]) -> None:
        """`weights`: what the model's sound depends on, as text. `load` is called when the first row is missing."""
        self._folder, self._weights, self._load = folder, weights, load
        self._model: Model | None = None

    def __call__(self, row: Utterance) -> RecordedRow:
        path = self._folder / f"{row_key(row, self._weights)}.npz" if self._folder else None
        stored = _read(path) if path else None
        if stored is not None:
            return stored
        if self._model is None:
            self._model = self._load()
        frames, samples = speak_row(self._model, row)
        recording = RecordedRow(frames.durations, samples)
        if path:
            _write(path, recording)
        return recording

    def close(self) -> None:
        if self._model is not None:
            self._model.close()


def row_key(row: Utterance, weights: str) -> str:
    """A name for what is spoken, how, and with which weights."""
    numbers = np.array([row.speed, row.prosody.pitch, row.prosody.pitch_range, row.prosody.energy])
    content = (weights.encode(), row.tokens.tobytes(), row.style.tobytes(), numbers.tobytes())
    return sha256(b"".join(content)).hexdigest()[:32]


def speak_row(model: Model, row: Utterance) -> tuple[Frames, Samples]:
    """Run both stages, with the row's prosody applied between them, as a worker does."""
    (frames,) = model.acoustic([row])
    apply_prosody(frames, row.prosody)
    (samples,) = model.vocoder([frames])
    return frames, samples


def _read(path: Path) -> RecordedRow | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            return RecordedRow(file["durations"], file["samples"].astype(np.float32))
    except (OSError, ValueError, KeyError, BadZipFile):
        return None  # missing or damaged: it is spoken again


def _write(path: Path, recording: RecordedRow) -> None:
    data = io.BytesIO()
    np.savez(data, durations=recording.durations, samples=recording.samples)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, data.getvalue())
