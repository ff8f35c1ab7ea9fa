"""Kokoro in PyTorch with the light vocoder instead of its generator."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tutti.model.buckets import Group
from tutti.model.light import weights
from tutti.model.light.noise import normal, row_seed
from tutti.model.light.signal import CONTEXT_STEPS, HOP, pitch_phase
from tutti.model.protocol import Model, OnStep, Ran, speak_in_stages
from tutti.model.torch.cuda_graphs import Function, GraphedFunction
from tutti.model.torch.kokoro.masks import valid_times
from tutti.model.torch.kokoro.padding import Arrays, StageStream, pad_frames
from tutti.model.torch.kokoro.side_streams import run_parallel
from tutti.model.torch.kokoro.vocoder import Vocoder, unpadded_curves
from tutti.model.torch.light import FEATURES, TIMBRE, LightNetwork, harmonic_phase, row_statistics
from tutti.model.torch.model import TorchModel, silent_frames, vocode_rows
from tutti.model.validation import finish_samples
from tutti.speech import Frames, Samples, Span, Utterance

DECODED, STEERED = "decoded", "steered"  # in the cache of a row's spans, on the device: decoder's output, timbre


class LightTorchModel(Model):
    """Shares everything but the generator with a model of the exact vocoder."""

    def __init__(self, base: TorchModel) -> None:
        self.base = base
        self.traits = base.traits
        vocoder = base.vocoder_network
        self._dtype = vocoder.encode.conv1.weight.dtype
        self._network = load_network().to(base.device, self._dtype)
        self._decode = GraphedFunction(_decoder_function(vocoder), base.vocoder_pool)
        self._vocode = GraphedFunction(_light_function(vocoder, self._network), base.vocoder_pool)

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
        begin, stop = max(0, first - CONTEXT_STEPS), min(2 * span.n_frames, last + CONTEXT_STEPS)
        with self.base.vocoder_stream.activate(span.n_frames) as stream:
            if DECODED not in span.cache:
                n = span.n_frames
                tensors, arrays = pad_frames([span], Group((0,), 1, n), stream)
                (decoded,) = self._decode(stream, arrays, *tensors)
                x = decoded[0, : 2 * n, :FEATURES].clone()
                f0, style = stream.upload(span.f0[None], span.style[None, :TIMBRE].astype(np.float32))
                statistics = row_statistics(x[None], f0, torch.ones_like(f0, dtype=torch.bool)[:, :, None])
                span.cache[DECODED] = x
                span.cache[STEERED] = self._network.row(style.to(self._dtype), statistics)
            f0, phase, index = stream.upload(
                span.f0[None, begin:stop],
                pitch_phase(span.f0)[None, begin:stop],
                np.arange(begin * HOP, stop * HOP)[None],
            )
            noise = normal(row_seed(span.durations, span.style), index)
            x = span.cache[DECODED][None, begin:stop]
            samples = self._network(x, f0, phase, span.cache[STEERED], noise)
            host = stream.download(samples[0, (first - begin) * HOP : (last - begin) * HOP])
            stream.wait()
        return finish_samples(span, host.numpy())


def load_network() -> LightNetwork:
    """The network with the weights of the package."""
    state = {name: torch.from_numpy(value) for name, value in weights.as_float32(weights.read()).items()}
    return LightNetwork.of(state).eval().requires_grad_(False)


def _pad(rows: Sequence[Frames], group: Group, stream: StageStream) -> tuple[tuple[Tensor, Tensor], Arrays]:
    """The inputs of the exact vocoder, and the seed of each row [B]."""
    tensors, arrays = pad_frames(rows, group, stream)
    seeds = np.zeros(group.n_rows, np.int64)
    seeds[: len(rows)] = [row_seed(row.durations, row.style) for row in rows]
    return tensors, (*arrays, seeds)


def _decoder_function(vocoder: Vocoder) -> Function:
    def decode(features: Tensor, curves: Tensor, n_frames: Tensor, style: Tensor) -> tuple[Tensor]:
        x, _ = vocoder.decoder_output(features, *unpadded_curves(curves, n_frames), n_frames, style)
        return (x,)

    return decode


def _light_function(vocoder: Vocoder, network: LightNetwork) -> Function:
    """Decoder and network, and whether each row is finite."""

    def vocode(
        features: Tensor, curves: Tensor, n_frames: Tensor, style: Tensor, seeds: Tensor
    ) -> tuple[Tensor, Tensor]:
        f0, energy = unpadded_curves(curves, n_frames)
        valid = valid_times(2 * n_frames, f0.shape[1])

        def decode() -> tuple[Tensor, Tensor]:
            x, _ = vocoder.decoder_output(features, f0, energy, n_frames, style)
            x = torch.where(valid, x[..., :FEATURES], 0)  # kernels leave anything after a row's end, even NaN
            return x, network.row(style[:, :TIMBRE].to(x.dtype), row_statistics(x, f0, valid))

        def sources() -> tuple[Tensor, Tensor]:
            noise = normal(seeds[:, None], torch.arange(HOP * f0.shape[1], device=f0.device))
            return network.sources(f0, harmonic_phase(f0), noise, valid)

        (x, timbre), (source, noise) = run_parallel([decode, sources], "light", f0.numel() // 2, f0.device)
        samples = network.filter_sources(x, f0, timbre, source, noise, valid)
        return samples, torch.isfinite(samples).all(dim=1)

    return vocode
