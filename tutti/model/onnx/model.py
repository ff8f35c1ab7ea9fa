"""Kokoro on a processor: ONNX Runtime over the parts of the official graph."""

import ctypes
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort

from tutti.errors import WeightsUnavailable
from tutti.model.onnx import split
from tutti.model.onnx.exact import ExactVocoder
from tutti.model.onnx.light import LightVocoder, text_path
from tutti.model.onnx.nano import NanoVocoder
from tutti.model.onnx.session import open_session, run
from tutti.model.protocol import Model
from tutti.model.validation import check_utterances
from tutti.speech import Frames, Samples, TextName, Utterance, VocoderName

VOCODERS: Mapping[VocoderName, type[ExactVocoder | LightVocoder | NanoVocoder]] = {
    "exact": ExactVocoder, "light": LightVocoder, "nano": NanoVocoder,
}  # fmt: skip
SHORT_TOKENS = 150  # up to which a row leaves its workspace to the next one
IS_GLIBC = platform.libc_ver()[0] == "glibc"
MMAP_THRESHOLD = (-3, 1 << 20)  # glibc's number of the option, and a megabyte


class OnnxModel(Model):
    """Two stages over one checkpoint: its acoustic half, with the exact or the light text encoder, and a vocoder."""

    def __init__(
        self,
        official: Path,
        precision: str,
        threads: int,
        *,
        vocoder: VocoderName = "exact",
        text: TextName = "exact",
        sharing: "OnnxModel | None" = None,
        cache: Path | None = None,
    ) -> None:
        """`sharing`: a model over the same file, whose predictor is used, and its text encoder if it is the same.
        `cache`: folder for the parts of the graph, default next to it.
        """
        if not official.exists():
            raise WeightsUnavailable(f"the model file is not at {official}; run: tutti pull --precision {precision}")
        _return_memory_early()
        graphs = split.split_graphs(official, cache)
        self._text = text
        self._reader: ort.InferenceSession = (
            sharing._reader
            if sharing and sharing._text == text
            else open_session(text_path(graphs) if text == "light" else graphs.reading, threads, spinning=True)
        )
        self._predictor: ort.InferenceSession = (
            sharing._predictor if sharing else open_session(graphs.predicting, threads, spinning=True)
        )
        self._vocoder = VOCODERS[vocoder](graphs, threads)
        _return_freed_memory()

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        return [self._predict_frames(row) for row in rows]

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return self._vocoder(rows)

    def close(self) -> None:
        self._vocoder.close()

    def _predict_frames(self, row: Utterance) -> Frames:
        is_short = len(row.tokens) <= SHORT_TOKENS
        tokens = row.tokens[None]
        (read,) = run(self._reader, None, {self._reader.get_inputs()[0].name: tokens}, keep_workspace=is_short)
        names = [value.name for value in self._predictor.get_inputs()]
        inputs = (tokens, row.style[None], np.array([row.speed], np.float32), read)
        outputs = [split.FEATURES, split.F0, split.ENERGY, split.DURATIONS]
        features, f0, energy, durations = run(
            self._predictor, outputs, dict(zip(names, inputs, strict=True)), keep_workspace=is_short
        )
        return Frames(durations[0].astype(np.int64), features[0], f0[0], energy[0], row.style, row.pcm_volume)


def _return_memory_early() -> None:
    """Make glibc return blocks of a megabyte and more to the system when they are freed.

    By default it raises that threshold with each freed block, until workspaces come from a heap that only grows: the
    process grew by 150 MB over a long text.
    """
    if IS_GLIBC:
        ctypes.CDLL(None).mallopt(*MMAP_THRESHOLD)


def _return_freed_memory() -> None:
    """Make glibc return what is free inside of its heap, too: 20 MB, after files were read."""
    if IS_GLIBC:
        ctypes.CDLL(None).malloc_trim(0)
