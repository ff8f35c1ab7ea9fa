"""Our batched Kokoro as the teacher: rows in, what the light vocoder reads and what it should say out."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from tutti.model.light.signal import HOP
from tutti.model.prosody import apply_prosody
from tutti.model.torch.kokoro.masks import valid_times
from tutti.model.torch.kokoro.padding import StageStream, pad_frames
from tutti.model.torch.kokoro.vocoder import unpadded_curves
from tutti.model.torch.light import FEATURES, TIMBRE, row_statistics
from tutti.model.torch.model import TorchModel
from tutti.speech import Frames, Utterance

BATCH_ROWS = 96
BATCH_ROWS_CPU = 4
MIN_STEPS = 8  # shorter rows are left out


@dataclass(frozen=True, slots=True)
class Example:
    """One spoken row, on the device: L steps of 300 samples."""

    features: Tensor  # [L, 512] fp16, the decoder's output
    f0: Tensor  # [L] Hz
    timbre: Tensor  # [128]
    samples: Tensor  # [300 L] fp16
    statistics: Tensor  # [1028] of the row


class Teacher(Protocol):
    def speak(self, rows: Sequence[Utterance]) -> Iterator[list[Example]]: ...


class KokoroTeacher:
    """Speaks in large batches. While the vocoder runs, the next batch is in the acoustic stage."""

    def __init__(self, weights: Path, device: torch.device) -> None:
        self._model = TorchModel(weights, "cuda" if device.type == "cuda" else "cpu", "off")
        self._stream = StageStream(device)
        self._batch_rows = BATCH_ROWS if device.type == "cuda" else BATCH_ROWS_CPU

    def speak(self, rows: Sequence[Utterance]) -> Iterator[list[Example]]:
        """Yield the examples batch by batch, rows of similar length together."""
        ordered = sorted(rows, key=lambda row: len(row.tokens) / row.speed)
        batches = [ordered[i : i + self._batch_rows] for i in range(0, len(ordered), self._batch_rows)]
        with ThreadPoolExecutor(max_workers=1) as executor:
            upcoming = executor.submit(self._acoustic, batches[0]) if batches else None
            for i in range(len(batches)):
                assert upcoming is not None
                frames = upcoming.result()
                upcoming = executor.submit(self._acoustic, batches[i + 1]) if i + 1 < len(batches) else None
                yield self._vocode(frames)

    def _acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        frames = self._model.acoustic(rows)
        for row, row_frames in zip(rows, frames, strict=True):
            apply_prosody(row_frames, row.prosody)
        return frames

    def _vocode(self, rows: Sequence[Frames]) -> list[Example]:
        model, examples = self._model, []
        network = model.vocoder_network
        groups = model.plan.frames.group([row.n_frames for row in rows], model.max_padded_frames)
        with self._stream.activate(sum(row.n_frames for row in rows)) as stream:
            for group in groups:
                members = [rows[i] for i in group.members]
                (features, curves), arrays = pad_frames(members, group, stream)
                n_frames, style = stream.upload(*arrays)
                f0, energy = unpadded_curves(curves, n_frames)
                x, styles = network.decoder_output(features, f0, energy, n_frames, style)
                wave = network.generator(x, network.generator.source_spectrum(f0, n_frames), styles, n_frames)
                statistics = row_statistics(x[..., :FEATURES], f0, valid_times(2 * n_frames, f0.shape[1]))
                for i, row in enumerate(members):
                    n = 2 * row.n_frames
                    if n >= MIN_STEPS:
                        examples.append(
                            Example(
                                x[i, :n, :FEATURES].half(),
                                f0[i, :n].float(),
                                style[i, :TIMBRE].float(),
                                wave[i, : HOP * n].half(),
                                statistics[i],
                            )
                        )
            stream.wait()
        return examples
