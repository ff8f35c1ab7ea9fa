"""Our batched Kokoro as the teacher: rows in, what the student reads and what it should say out."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import torch
from torch import Tensor

from training.low_rank import low_rank_decoder
from training.students import LIGHT, DecoderInputs, Student
from tutti.model.light.signal import HOP
from tutti.model.prosody import apply_prosody
from tutti.model.torch.kokoro.masks import valid_times
from tutti.model.torch.kokoro.padding import StageStream, pad_frames
from tutti.model.torch.kokoro.vocoder import unpadded_curves
from tutti.model.torch.light import FEATURES, TIMBRE, LightNetwork, row_statistics
from tutti.model.torch.model import TorchModel
from tutti.speech import Frames, Utterance

BATCH_ROWS = 96
BATCH_ROWS_CPU = 4
MIN_STEPS = 8  # shorter rows are left out


@dataclass(frozen=True, slots=True)
class Example:
    """One spoken row, on the device: L steps of 300 samples."""

    features: Tensor  # [L, n_features] fp16, what the student reads; light: the decoder's output
    f0: Tensor  # [L] Hz
    timbre: Tensor  # [128]
    samples: Tensor  # [300 L] fp16
    statistics: Tensor  # [2 n_features + 4] of the row
    hidden: Tensor  # [L, n] fp16, of the network that the student imitates; n = 0 without one


@dataclass(frozen=True, slots=True)
class DecoderRows:
    """Some rows of similar length, padded, on the device: what the decoder reads, and what it says."""

    features: Tensor  # [B, T, 512] fp16
    f0: Tensor  # [B, 2T] Hz
    energy: Tensor  # [B, 2T]
    n_frames: Tensor  # [B]
    style: Tensor  # [B, 256]
    decoded: Tensor  # [B, 2T, 512] fp16


class Teacher(Protocol):
    def speak(self, rows: Sequence[Utterance]) -> Iterator[list[Example]]: ...


class KokoroTeacher:
    """Speaks in large batches. While the vocoder runs, the next batch is in the acoustic stage."""

    def __init__(
        self,
        weights: Path,
        device: torch.device,
        bases: Mapping[str, Tensor] = MappingProxyType({}),
        student: Student = LIGHT,
        imitated: LightNetwork | None = None,
    ) -> None:
        """`bases`: of the decoder's convolutions, with which the features of the examples are made."""
        self._student = student
        self._model = TorchModel(weights, "cuda" if device.type == "cuda" else "cpu", "off")
        self._light_decoder = low_rank_decoder(self._model.vocoder_network, bases)
        dtype = self._model.vocoder_network.encode.conv1.weight.dtype
        self._imitated = None if imitated is None else deepcopy(imitated).to(device, dtype)
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

    def decode(self, rows: Sequence[Utterance]) -> Iterator[DecoderRows]:
        """Yield what the exact decoder reads and says, batch by batch."""
        ordered = sorted(rows, key=lambda row: len(row.tokens) / row.speed)
        for i in range(0, len(ordered), self._batch_rows):
            frames, decoded = self._acoustic(ordered[i : i + self._batch_rows]), []
            with self._stream.activate(sum(row.n_frames for row in frames)) as stream:
                for members, inputs in self._padded(frames, stream):
                    x, _ = self._model.vocoder_network.decoder_output(*inputs)
                    valid = valid_times(2 * inputs[3], x.shape[1])  # kernels leave anything after a row's end
                    tensors = (*inputs, torch.where(valid, x[..., :FEATURES], 0).half())
                    decoded.append([tensor[: len(members)] for tensor in tensors])
                stream.wait()
            for features, *rest in decoded:  # copies, since gradients cannot begin in inference mode
                yield DecoderRows(features.half().clone(), *(each.clone() for each in rest))

    def _acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        frames = self._model.acoustic(rows)
        for row, row_frames in zip(rows, frames, strict=True):
            apply_prosody(row_frames, row.prosody)
        return frames

    def _vocode(self, rows: Sequence[Frames]) -> list[Example]:
        examples, network = [], self._model.vocoder_network
        with self._stream.activate(sum(row.n_frames for row in rows)) as stream:
            for members, inputs in self._padded(rows, stream):
                _, f0, _, n_frames, style = inputs
                x, styles = network.decoder_output(*inputs)
                wave = network.generator(x, network.generator.source_spectrum(f0, n_frames), styles, n_frames)
                x, _ = self._light_decoder.decoder_output(*inputs)
                valid = valid_times(2 * n_frames, x.shape[1])
                decoded = torch.where(valid, x[..., :FEATURES], 0)  # kernels leave anything after a row's end, even NaN
                read = self._student.read(decoded, inputs)
                statistics = row_statistics(read, f0, valid)
                hidden = self._hidden(decoded, f0, style, valid)
                for i, row in enumerate(members):
                    n = 2 * row.n_frames
                    if n >= MIN_STEPS:
                        examples.append(
                            Example(
                                read[i, :n].half(),
                                f0[i, :n].float(),
                                style[i, :TIMBRE].float(),
                                wave[i, : HOP * n].half(),
                                statistics[i],
                                hidden[i, :n].half(),
                            )
                        )
            stream.wait()
        return examples

    def _hidden(self, decoded: Tensor, f0: Tensor, style: Tensor, valid: Tensor) -> Tensor:  # [B, L, n]
        """Of the network that is imitated, where there is one."""
        if self._imitated is None:
            return decoded[..., :0]
        steered = self._imitated.row(style[:, :TIMBRE].to(decoded.dtype), row_statistics(decoded, f0, valid))
        return self._imitated.hidden(decoded, f0, steered, valid)

    def _padded(self, rows: Sequence[Frames], stream: StageStream) -> Iterator[tuple[list[Frames], DecoderInputs]]:
        """Rows of similar length, and the inputs of the decoder for them."""
        model = self._model
        for group in model.plan.frames.group([row.n_frames for row in rows], model.max_padded_frames):
            members = [rows[i] for i in group.members]
            (features, curves), arrays = pad_frames(members, group, stream)
            n_frames, style = stream.upload(*arrays)
            yield members, (features, *unpadded_curves(curves, n_frames), n_frames, style)
