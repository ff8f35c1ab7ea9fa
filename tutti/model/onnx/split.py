"""Split the official ONNX graph: after PL-BERT, so that a smaller reader can take its place; at the frames, so that
durations, pitch and energy can be read and changed; and before its generator, so that each row of a batch can run it on
a core of its own, and the light vocoder can take its place.

The names are the same in the fp32 and the int8 file.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock

from tutti.errors import StorageFull, WeightsCorrupt
from tutti.files import write_file
from tutti.model.onnx import proto
from tutti.speech import Frames

READ = "/encoder/bert_encoder/Add_output_0"  # [1, n, 512] what PL-BERT makes of the text; an input of the predictor
# Outputs of the acoustic half.
FEATURES = "/encoder/MatMul_1_output_0"  # [1, 512, T]
F0 = "/encoder/Reshape_output_0"  # [1, 2T]
ENERGY = "/encoder/Reshape_1_output_0"  # [1, 2T]
DURATIONS = "/encoder/Clip_output_0"  # [1, n]
STYLE = "style"  # [1, 256]; an input of all parts
# Inputs of the generator, besides the style.
DECODED = "/decoder/decoder/decode.3/Div_4_output_0"  # [1, 512, 2T]
WAVE = "/decoder/decoder/generator/Reshape_3_output_0"  # [1, 600T + 20] the harmonics of the pitch, before their STFT


class Graphs(NamedTuple):
    """The four parts of the official graph; the first two are the acoustic half."""

    reading: Path  # token ids -> read
    predicting: Path  # token ids, read, style, speed -> features, pitch, energy, durations
    decoding: Path  # features, pitch, energy, style -> decoded, wave
    generating: Path  # decoded, wave, style -> samples


def split_graphs(official: Path, cache: Path | None = None) -> Graphs:
    """The parts, written at first use: next to the official file, or into the cache."""
    beside = official if cache is None else cache / official.name
    paths = graph_paths(beside)
    if all(path.exists() for path in paths):
        return paths
    with FileLock(beside.with_suffix(".cut.lock")):
        if not all(path.exists() for path in paths):
            _split(official, paths)
    return paths


def graph_paths(official: Path) -> Graphs:
    """Where the parts of this file lie, next to it."""
    return Graphs(*(official.with_suffix(f".{name}.onnx") for name in Graphs._fields))


def derived_graphs(official: Path) -> list[Path]:
    """What was made from this file by any version of tutti: its parts, and what is made from our own weights."""
    folder = official.parent
    return [*folder.glob(f"{official.stem}.*.onnx"), *folder.glob("light-*.onnx"), *folder.glob("nano-*.onnx")]


def decoder_inputs(row: Frames) -> dict[str, np.ndarray]:
    """A row as the decoder reads it."""
    curves = {F0: row.f0[None], ENERGY: row.energy[None]}
    return {FEATURES: row.features[None], **curves, STYLE: row.style[None]}


def _split(official: Path, paths: Graphs) -> None:
    try:
        whole = proto.load(official)
        tokens, style, speed = whole.graph.input
        known = {value.name: value for value in whole.graph.value_info}
        features, f0, energy, durations = (known[name] for name in (FEATURES, F0, ENERGY, DURATIONS))
        read, decoded, wave = (proto.value(name, proto.FLOAT, None) for name in (READ, DECODED, WAVE))
        reading = proto.part_of(whole, [tokens], [read])
        predicting = proto.part_of(whole, [tokens, style, speed, read], [features, f0, energy, durations])
        decoding = proto.part_of(whole, [features, f0, energy, style], [decoded, wave])
        generating = proto.part_of(whole, [decoded, wave, style], whole.graph.output)
        parts = (reading, predicting, decoding, generating)
    except (proto.DecodeError, IndexError, KeyError, ValueError) as exc:
        raise WeightsCorrupt(f"{official} is not Kokoro's official graph ({exc}); run: tutti pull --verify") from exc
    for path, part in zip(paths, parts, strict=True):
        write_graph(part.SerializeToString(), path)


def write_graph(data: bytes, path: Path) -> None:
    try:
        write_file(path, data)
    except OSError as exc:
        raise StorageFull(f"cannot write {path} ({len(data) >> 20} MiB): {exc.strerror}") from exc
