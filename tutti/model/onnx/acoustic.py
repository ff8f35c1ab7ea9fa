"""The acoustic half on a processor: a row's tokens and style -> durations, features, pitch and energy."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from tutti.model.light import weights
from tutti.model.onnx import proto, split
from tutti.model.onnx.acoustic_graph import (
    DURATIONS,
    ENERGY,
    F0,
    PROSODY,
    READ,
    STYLE,
    TEXT,
    TOKENS,
    frame_graph,
    token_graph,
)
from tutti.model.onnx.graph_files import packaged_graph, written_graph
from tutti.model.onnx.session import open_session, run
from tutti.model.onnx.text_graph import FEATURES, text_graph
from tutti.speech import Frames, TextName, Utterance

SHORT_TOKENS = 150  # up to which a row leaves its workspace to the next one


class ExactAcoustic:
    """The first two parts of the official graph."""

    def __init__(self, graphs: split.Graphs, threads: int) -> None:
        self._reader, self._predictor = (
            open_session(path, threads, spinning=True) for path in (graphs.reading, graphs.predicting)
        )

    def __call__(self, row: Utterance) -> Frames:
        is_short, tokens = len(row.tokens) <= SHORT_TOKENS, row.tokens[None]
        (read,) = run(self._reader, None, {self._reader.get_inputs()[0].name: tokens}, keep_workspace=is_short)
        names = [value.name for value in self._predictor.get_inputs()]
        inputs = (tokens, row.style[None], np.array([row.speed], np.float32), read)
        outputs = [split.FEATURES, split.F0, split.ENERGY, split.DURATIONS]
        features, f0, energy, durations = run(
            self._predictor, outputs, dict(zip(names, inputs, strict=True)), keep_workspace=is_short
        )
        return Frames(durations[0].astype(np.int64), features[0], f0[0], energy[0], row.style, row.pcm_volume)


class LightAcoustic:
    """A small text encoder instead of PL-BERT, and all else with most weights in int8."""

    def __init__(self, graphs: split.Graphs, threads: int) -> None:
        self._reader, self._tokens, self._frames = (
            open_session(path, threads, spinning=True) for path in (text_path(graphs), *acoustic_paths(graphs))
        )

    def __call__(self, row: Utterance) -> Frames:
        short = partial(run, keep_workspace=len(row.tokens) <= SHORT_TOKENS)
        tokens, style = row.tokens[None], row.style[None]
        (read,) = short(self._reader, [FEATURES], {TOKENS: tokens})
        given = {TOKENS: tokens, READ: read, STYLE: style}
        durations, prosody, text = short(self._tokens, [DURATIONS, PROSODY, TEXT], given)
        n_frames = np.maximum(np.rint(durations[0] / np.float32(row.speed)), 1).astype(np.int64)
        of_frames = np.repeat(prosody, n_frames, axis=1)
        f0, energy = short(self._frames, [F0, ENERGY], {PROSODY: of_frames, STYLE: style})
        features = np.repeat(text[0], n_frames, axis=0).T
        return Frames(n_frames, features, f0[0], energy[0], row.style, row.pcm_volume)


Acoustic = ExactAcoustic | LightAcoustic
ACOUSTICS: Mapping[TextName, type[Acoustic]] = {"exact": ExactAcoustic, "light": LightAcoustic}


def text_path(graphs: split.Graphs) -> Path:
    """The light text encoder as a graph, next to the parts of the official one."""
    return packaged_graph(graphs.reading.parent, "light-text", weights.TEXT_PATH, text_graph)


def acoustic_paths(graphs: split.Graphs) -> list[Path]:
    """What follows it as graphs, next to the part of the official one that holds their weights."""
    official = graphs.predicting

    def path(name: str, build: Callable[[proto.Message], bytes]) -> Path:
        return written_graph(official.parent, f"{official.stem}.{name}", b"", lambda: build(proto.load(official)))

    return [path("tokens", token_graph), path("frames", frame_graph)]
