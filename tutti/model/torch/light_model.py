"""Kokoro in PyTorch with light instead of its generator, or nano instead of its decoder and generator."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tutti.model.buckets import Group
from tutti.model.light import weights
from tutti.model.light.noise import normal, row_seed
from tutti.model.light.signal import HOP, REACH, pitch_phase
from tutti.model.protocol import Model, OnStep, Ran, speak_in_stages
from tutti.model.torch.cuda_graphs import Function, GraphedFunction
from tutti.model.torch.kokoro.masks import valid_times
from tutti.model.torch.kokoro.padding import Arrays, StageStream, pad_frames
from tutti.model.torch.kokoro.side_streams import run_parallel
from tutti.model.torch.kokoro.vocoder import Vocoder, unpadded_curves
from tutti.model.torch.light import FEATURES, TIMBRE, LightNetwork, SpectralNetwork, harmonic_phase, row_statistics
from tutti.model.torch.model import TorchModel, silent_frames, vocode_rows
from tutti.model.torch.nano import STEPS_PER_FRAME, NanoNetwork, text_and_energy
from tutti.model.validation import finish_samples
from tutti.speech import Frames, Samples, Span, Utterance, VocoderName

READ, STEERED = "read", "steered"  # in the cache of a row's spans, on the device: what the network reads, timbre


class Student(NamedTuple):
    """A network, its weights, and what it reads of the decoder's inputs, [B, L, n_features]."""

    network: type[SpectralNetwork]
    path: Path
    read: Callable[[Vocoder, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

    def load(self, path: Path | None = None) -> SpectralNetwork:
        """The network with these weights, or those of the package."""
        arrays = weights.as_float32(weights.read(path or self.path))
        state = {name: torch.from_numpy(value) for name, value in arrays.items()}
        return self.network.of(state).eval().requires_grad_(False)


def _decoded(vocoder: Vocoder, features: Tensor, f0: Tensor, energy: Tensor, n_frames: Tensor, style: Tensor) -> Tensor:
    return vocoder.decoder_output(features, f0, energy, n_frames, style)[0][..., :FEATURES]


def _text(vocoder: Vocoder, features: Tensor, _f0: Tensor, energy: Tensor, _n: Tensor, _style: Tensor) -> Tensor:
    return text_and_energy(features.to(vocoder.encode.conv1.weight.dtype), energy)


STUDENTS: Mapping[VocoderName, Student] = {
    "light": Student(LightNetwork, weights.PATH, _decoded),
    "nano": Student(NanoNetwork, weights.NANO_PATH, _text),
}


class LightTorchModel(Model):
    """Shares everything but what the network stands in for with a model of the exact vocoder."""

    def __init__(self, base: TorchModel, name: VocoderName = "light", path: Path | None = None) -> None:
        self.base = base
        self.traits = base.traits
        student, vocoder = STUDENTS[name], base.vocoder_network
        self._dtype = vocoder.encode.conv1.weight.dtype
        self._network = student.load(path).to(base.device, self._dtype)
        read = partial(student.read, vocoder)
        self._read = GraphedFunction(_read_function(read), base.vocoder_pool)
        self._vocode = GraphedFunction(_vocoder_function(read, self._network), base.vocoder_pool)

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        return self.base.acoustic(rows)

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        """Whole rows in padded passes; spans one by one, since where they are used devices are slow."""
        whole = [row for row in rows if not isinstance(row, Span)]
        samples = iter(vocode_rows(whole, self.base, self._vocode, _pad))
        return [self._vocode_span(row) if isinstance(row, Span) else next(samples) for row in rows]

    def speak(self, rows: Sequence[Utterance]) -> Ran:
        return speak_in_stages(rows, self.base.start_acoustic, self.vocoder)

    def warm_up(self, progress: OnStep = lambda _n_captured, _n_shapes: None) -> None:
        self.base.warm_up(progress, self._prepare)

    def enter_thread(self) -> None:
        self.base.enter_thread()

    def _prepare(self, n_rows: int, length: int, *, capture: bool) -> None:
        with self.base.vocoder_stream.activate(n_rows * length) as stream:
            tensors, arrays = _pad([silent_frames(length)] * n_rows, Group((), n_rows, length), stream)
            self._vocode.prepare(stream, arrays, *tensors, capture=capture)

    def _vocode_span(self, span: Span) -> Samples:
        first, last = 2 * span.start, 2 * span.end
        around = self._network.context + REACH
        around += around % STEPS_PER_FRAME
        begin, stop = max(0, first - around), min(2 * span.n_frames, last + around)
        with self.base.vocoder_stream.activate(span.n_frames) as stream:
            if READ not in span.cache:
                n = span.n_frames
                tensors, arrays = pad_frames([span], Group((0,), 1, n), stream)
                (read,) = self._read(stream, arrays, *tensors)
                x = read[0, : 2 * n].clone()
                f0, style = stream.upload(span.f0[None], span.style[None, :TIMBRE].astype(np.float32))
                statistics = row_statistics(x[None], f0, torch.ones_like(f0, dtype=torch.bool)[:, :, None])
                span.cache[READ] = x
                span.cache[STEERED] = self._network.row(style.to(self._dtype), statistics)
            f0, phase, index = stream.upload(
                span.f0[None, begin:stop],
                pitch_phase(span.f0)[None, begin:stop],
                np.arange(begin * HOP, stop * HOP)[None],
            )
            noise = normal(row_seed(span.durations, span.style), index)
            x = span.cache[READ][None, begin:stop]
            samples = self._network(x, f0, phase, span.cache[STEERED], noise)
            host = stream.download(samples[0, (first - begin) * HOP : (last - begin) * HOP])
            stream.wait()
        return finish_samples(span, host.numpy())


def _pad(rows: Sequence[Frames], group: Group, stream: StageStream) -> tuple[tuple[Tensor, Tensor], Arrays]:
    """The inputs of the exact vocoder, and the seed of each row [B]."""
    tensors, arrays = pad_frames(rows, group, stream)
    seeds = np.zeros(group.n_rows, np.int64)
    seeds[: len(rows)] = [row_seed(row.durations, row.style) for row in rows]
    return tensors, (*arrays, seeds)


def _read_function(read: Callable[..., Tensor]) -> Function:
    def read_rows(features: Tensor, curves: Tensor, n_frames: Tensor, style: Tensor) -> tuple[Tensor]:
        return (read(features, *unpadded_curves(curves, n_frames), n_frames, style),)

    return read_rows


def _vocoder_function(read: Callable[..., Tensor], network: SpectralNetwork) -> Function:
    """All of the vocoder, and whether each row is finite."""

    def vocode(
        features: Tensor, curves: Tensor, n_frames: Tensor, style: Tensor, seeds: Tensor
    ) -> tuple[Tensor, Tensor]:
        f0, energy = unpadded_curves(curves, n_frames)
        valid = valid_times(2 * n_frames, f0.shape[1])

        def steered() -> tuple[Tensor, Tensor]:
            x = read(features, f0, energy, n_frames, style)
            x = torch.where(valid, x, 0)  # kernels leave anything after a row's end, even NaN
            return x, network.row(style[:, :TIMBRE].to(x.dtype), row_statistics(x, f0, valid))

        def sources() -> tuple[Tensor, Tensor]:
            noise = normal(seeds[:, None], torch.arange(HOP * f0.shape[1], device=f0.device))
            return network.sources(f0, harmonic_phase(f0), noise, valid)

        (x, timbre), (source, noise) = run_parallel([steered, sources], "light", f0.numel() // 2, f0.device)
        samples = network.filter_sources(x, f0, timbre, source, noise, valid)
        return samples, torch.isfinite(samples).all(dim=1)

    return vocode
