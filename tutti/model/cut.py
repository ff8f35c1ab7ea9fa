"""Cuts the official ONNX graph in two at the frames, so that durations, pitch and energy can be read and changed."""

import os
from pathlib import Path

from filelock import FileLock

from tutti.errors import StorageFull, WeightsCorrupt

# What the acoustic half hands over. The names are the same in the fp32 and the int8 file.
FEATURES = "/encoder/MatMul_1_output_0"  # [1, 512, T]
F0 = "/encoder/Reshape_output_0"  # [1, 2T]
ENERGY = "/encoder/Reshape_1_output_0"  # [1, 2T]
DURATIONS = "/encoder/Clip_output_0"  # [1, n]


def halves(official: Path) -> tuple[Path, Path]:
    """The acoustic and the vocoder half, kept beside the official file; cut at first use."""
    acoustic = official.with_suffix(".acoustic.onnx")
    vocoder = official.with_suffix(".vocoder.onnx")
    if acoustic.exists() and vocoder.exists():
        return acoustic, vocoder
    with FileLock(official.with_suffix(".cut.lock")):
        if not (acoustic.exists() and vocoder.exists()):
            _cut(official, acoustic, vocoder)
    return acoustic, vocoder


def _cut(official: Path, acoustic: Path, vocoder: Path) -> None:
    import onnx
    from google.protobuf.message import DecodeError
    from onnx.utils import Extractor

    try:
        graph = onnx.load(official)
        inputs = [value.name for value in graph.graph.input]  # token ids, style, speed
        outputs = [value.name for value in graph.graph.output]
        extractor = Extractor(graph)
        halves = {
            acoustic: extractor.extract_model(inputs, [FEATURES, F0, ENERGY, DURATIONS]),
            vocoder: extractor.extract_model([FEATURES, F0, ENERGY, inputs[1]], outputs),
        }
    except (DecodeError, IndexError, KeyError, ValueError) as exc:
        raise WeightsCorrupt(f"{official} is not Kokoro's official graph ({exc}); run: tutti pull --verify") from exc
    for path, half in halves.items():
        _write(half.SerializeToString(), path)


def _write(data: bytes, path: Path) -> None:
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as exc:
        partial.unlink(missing_ok=True)
        raise StorageFull(f"cannot write {path} ({len(data) >> 20} MiB): {exc.strerror}") from exc
