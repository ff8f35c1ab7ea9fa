"""Kokoro on a processor: ONNX Runtime over the parts of the official graph."""

import ctypes
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from tutti.errors import WeightsUnavailable
from tutti.model.onnx import split
from tutti.model.onnx.acoustic import ACOUSTICS, Acoustic
from tutti.model.onnx.exact import ExactVocoder
from tutti.model.onnx.light import LightVocoder
from tutti.model.onnx.nano import NanoVocoder
from tutti.model.protocol import Model
from tutti.model.validation import check_utterances
from tutti.speech import Frames, Samples, TextName, Utterance, VocoderName

VOCODERS: Mapping[VocoderName, type[ExactVocoder | LightVocoder | NanoVocoder]] = {
    "exact": ExactVocoder, "light": LightVocoder, "nano": NanoVocoder,
}  # fmt: skip
IS_GLIBC = platform.libc_ver()[0] == "glibc"
# glibc's numbers of the options, and bytes. The second: less is given back after each step of a window, and asked for
# again in the next one, which took a third of the time around the network.
MMAP_THRESHOLD, TRIM_THRESHOLD = (-3, 1 << 20), (-1, 8 << 20)


class OnnxModel(Model):
    """Two stages over one checkpoint: its acoustic half, exact or light, and a vocoder."""

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
        """`sharing`: a model over the same file, whose acoustic half is used if it is the same.
        `cache`: folder for the parts of the graph, default next to it.
        """
        if not official.exists():
            raise WeightsUnavailable(f"the model file is not at {official}; run: tutti pull --precision {precision}")
        _return_memory_early()
        graphs = split.split_graphs(official, cache)
        self._text = text
        self._acoustic: Acoustic = (
            sharing._acoustic if sharing and sharing._text == text else ACOUSTICS[text](graphs, threads)
        )
        self._vocoder = VOCODERS[vocoder](graphs, threads)
        _return_freed_memory()

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        return [self._acoustic(row) for row in rows]

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return self._vocoder(rows)

    def close(self) -> None:
        self._vocoder.close()


def _return_memory_early() -> None:
    """Make glibc return blocks of a megabyte and more to the system when they are freed.

    By default it raises that threshold with each freed block, until workspaces come from a heap that only grows: the
    process grew by 150 MB over a long text.
    """
    if IS_GLIBC:
        for option in (MMAP_THRESHOLD, TRIM_THRESHOLD):
            ctypes.CDLL(None).mallopt(*option)


def _return_freed_memory() -> None:
    """Make glibc return what is free inside of its heap, too: 20 MB, after files were read."""
    if IS_GLIBC:
        ctypes.CDLL(None).malloc_trim(0)
