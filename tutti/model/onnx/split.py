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
    """What was made from this file by any version of tutti: its parts, and what is made from them and from light."""
    folder = official.parent
    return [*folder.glob(f"{official.stem}.*.onnx"), *folder.glob("light-*.onnx")]


def decoder_inputs(row: Frames) -> dict[str, np.ndarray]:
    """A row as the decoder reads it."""
    curves = {F0: row.f0[None], ENERGY: row.energy[None]}
    return {FEATURES: row.features[None], **curves, STYLE: row.style[None]}


def _split(official: Path, paths: Graphs) -> None:
    import onnx
    from google.protobuf.message import DecodeError
    from onnx.utils import Extractor

    try:
        whole = onnx.load(official)
        inputs = [value.name for value in whole.graph.input]  # token ids, style, speed
        outputs = [value.name for value in whole.graph.output]
        style = inputs[1]
        extractor = Extractor(whole)
        for name in (READ, DECODED, WAVE):
            extractor.value_infos[name] = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        reading = extractor.extract_model(inputs[:1], [READ])
        predicting = extractor.extract_model([*inputs, READ], [FEATURES, F0, ENERGY, DURATIONS])
        decoding = extractor.extract_model([FEATURES, F0, ENERGY, style], [DECODED, WAVE])
        generating = extractor.extract_model([DECODED, WAVE, style], outputs)
        parts = (reading, predicting, decoding, generating)
    except (DecodeError, IndexError, KeyError, ValueError) as exc:
        raise WeightsCorrupt(f"{official} is not Kokoro's official graph ({exc}); run: tutti pull --verify") from exc
    for path, part in zip(paths, parts, strict=True):
        write_graph(part.SerializeToString(), path)


def write_graph(data: bytes, path: Path) -> None:
    try:
        write_file(path, data)
    except OSError as exc:
        raise StorageFull(f"cannot write {path} ({len(data) >> 20} MiB): {exc.strerror}") from exc
