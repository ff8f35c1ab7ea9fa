"""Learn a low rank for the wide convolutions of Kokoro's decoder, which the light vocoder reads.

Each convolution keeps of its output only what a basis spans; its input side follows from the official weights, so a
basis is all there is to learn and to store. It starts from the principal components of the output. Then all bases
learn together to give the light network what it had from the whole decoder.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from random import Random
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.run import Run
from training.schedule import Schedule
from training.teacher import DecoderRows
from tutti.model.light.weights import (
    BASIS_LEVELS,
    BLOCK,
    CORRECTION,
    CORRECTION_BIAS,
    INPUT_LOUDNESS,
    NARROW_LOUDNESS,
)
from tutti.model.torch.kokoro.convs import Conv
from tutti.model.torch.kokoro.masks import RowMask, valid_times
from tutti.model.torch.kokoro.vocoder import Vocoder
from tutti.model.torch.light import FEATURES, TIMBRE, LightNetwork, row_statistics

STEP_FRAMES = 12_000  # padded, of a training step
LONGEST = 512  # frames of a row in training
HIDDEN_WEIGHT = 8.0  # of the light network's inner values against the decoder's output
VARIANCE = 7.3  # of the decoder's output in speech
RIDGE = 100.0  # of the correction; small against the number of steps
LOG_S = 15.0
REFRESH_S = 10.0  # between two batches of new rows; fewer of them and the bases learn the rows by heart


class LowRankConv(Conv):
    """A convolution of the decoder in two products, from the official weight and a basis that can be learned."""

    def __init__(self, official: Conv, basis: Tensor) -> None:
        n_out, n_in, kernel = official.weight.shape
        super().__init__(n_in, n_out, kernel, bias=official.bias is not None)
        self.weight, self.bias = official.weight, official.bias
        self.basis = nn.Parameter(basis.clone())

    def forward(self, x: Tensor, mask: RowMask, skip_bias: bool = False) -> Tensor:
        y = F.linear(self.narrowed(x), self._rounded_basis)
        return y if skip_bias or self.bias is None else y + self.bias

    def narrowed(self, x: Tensor) -> Tensor:
        """The first product."""
        taps = self.weight.transpose(1, 2).flatten(1)  # [n_out, kernel n_in]
        if self.weight.shape[2] == 3:
            x = torch.cat([F.pad(x[:, :-1], (0, 0, 1, 0)), x, F.pad(x[:, 1:], (0, 0, 0, 1))], dim=-1)
        return F.linear(x, self._rounded_basis.T @ taps)

    @property
    def _rounded_basis(self) -> Tensor:
        return self.basis + (rounded(self.basis) - self.basis).detach()  # its gradient passes the rounding


@torch.no_grad()
def rounded(basis: Tensor) -> Tensor:  # [n_out, rank]
    """As `Int8Matrix` holds a basis."""
    blocks = F.pad(basis, (0, -basis.shape[1] % BLOCK)).unflatten(1, (-1, BLOCK))
    scales = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-12) / BASIS_LEVELS
    return ((blocks / scales).round() * scales).flatten(1)[:, : basis.shape[1]]


def wide_convolutions(vocoder: Vocoder) -> dict[str, Conv]:
    """The decoder's convolutions, by name."""
    return {
        name: module
        for name, module in vocoder.named_modules()
        if isinstance(module, Conv) and name.startswith(("encode.", "decode."))
    }


@torch.no_grad()
def watch_convolutions(
    vocoder: Vocoder, rows: Iterable[DecoderRows], see: Callable[[str, Tensor, Tensor, Tensor], None]
) -> None:
    """Decode these rows; call `see` with name, input and output of each convolution, and which steps are a row's."""
    lengths, frames = torch.empty(0), 1

    def hook(name: str, x: Tensor, y: Tensor) -> None:
        see(name, x, y, valid_times(y.shape[1] // frames * lengths, y.shape[1]))

    hooks = [
        conv.register_forward_hook(lambda _module, inputs, y, name=name: hook(name, inputs[0], y))
        for name, conv in wide_convolutions(vocoder).items()
    ]
    for each in rows:
        lengths, frames = each.n_frames, each.features.shape[1]
        decode(vocoder, each)
    for each_hook in hooks:
        each_hook.remove()


@torch.no_grad()
def principal_components(vocoder: Vocoder, rows: Iterable[DecoderRows]) -> dict[str, Tensor]:
    """Of the output of each convolution, [n_out, n_out], the largest first.

    A norm over the row follows the first convolution of a block, so each of its channels counts as much as any other.
    """
    covariances: dict[str, Tensor] = {}

    def see(name: str, _x: Tensor, y: Tensor, valid: Tensor) -> None:
        n = valid.sum(1, keepdim=True)
        y = y.float().masked_fill(~valid, 0)
        y = (y - y.sum(1, keepdim=True) / n).masked_fill(~valid, 0)
        if name.endswith("conv1"):
            y = y / (y.square().sum(1, keepdim=True) / n + 1e-5).sqrt()
        y = y.flatten(0, 1)
        covariances[name] = covariances.get(name, 0) + y.T @ y

    watch_convolutions(vocoder, rows, see)
    return {name: torch.linalg.eigh(covariance.double())[1].flip(1).float() for name, covariance in covariances.items()}


def decode(vocoder: Vocoder, rows: DecoderRows) -> Tensor:  # [B, 2T, 512]
    x, _ = vocoder.decoder_output(rows.features.float(), rows.f0, rows.energy, rows.n_frames, rows.style)
    return x[..., :FEATURES]


@torch.no_grad()
def fit_correction(low_rank: Vocoder, rows: Iterable[DecoderRows]) -> dict[str, Tensor]:
    """What to add to the output of a low-rank decoder, so that it comes closest to the whole one's: least squares."""
    gram, products = torch.zeros(FEATURES + 1, FEATURES + 1).double(), torch.zeros(FEATURES + 1, FEATURES).double()
    for each in rows:
        valid = valid_times(2 * each.n_frames, each.f0.shape[1])[..., 0]
        own, target = decode(low_rank, each)[valid].double().cpu(), each.decoded[valid].double().cpu()
        inputs = torch.cat([own, torch.ones(len(own), 1)], dim=1)
        gram, products = gram + inputs.T @ inputs, products + inputs.T @ (target - own)
    solution = torch.linalg.solve(gram + RIDGE * torch.eye(FEATURES + 1), products).float()
    return {CORRECTION: solution[:-1].T.contiguous(), CORRECTION_BIAS: solution[-1].clone()}


@torch.no_grad()
def measure_loudness(low_rank: Vocoder, rows: Iterable[DecoderRows]) -> dict[str, Tensor]:
    """Of all inputs of the low-rank convolutions, and of what is between their two products: the fourth root of the
    mean of the fourth power over speech, since one scale has to hold the peaks of all.
    """
    totals, n_steps = defaultdict[str, Tensor | float](float), defaultdict[str, int](int)
    convolutions = wide_convolutions(low_rank)

    def see(name: str, x: Tensor, _y: Tensor, valid: Tensor) -> None:
        x, n_steps[name] = x.float().masked_fill(~valid, 0), n_steps[name] + int(valid.sum())
        narrow = cast(LowRankConv, convolutions[name]).narrowed(x)
        for suffix, values in ((INPUT_LOUDNESS, x), (NARROW_LOUDNESS, narrow)):
            totals[name + suffix] += values.double().pow(4).sum((0, 1)).cpu()

    watch_convolutions(low_rank, rows, see)
    return {
        name + suffix: (totals[name + suffix] / n_steps[name]).pow(0.25).float()
        for name in convolutions
        for suffix in (INPUT_LOUDNESS, NARROW_LOUDNESS)
    }


class BasisTraining:
    """Bases of all convolutions, learned from whole rows."""

    def __init__(self, vocoder: Vocoder, network: LightNetwork, bases: dict[str, Tensor]) -> None:
        self._vocoder, self._network = vocoder, network
        for name, conv in wide_convolutions(vocoder).items():
            block, _, own = name.rpartition(".")
            setattr(vocoder.get_submodule(block), own, LowRankConv(conv, bases[name]))
        self._parameters = {
            name.removesuffix(".basis"): value for name, value in vocoder.named_parameters() if name.endswith(".basis")
        }
        self._optimiser = torch.optim.Adam(self._parameters.values(), lr=0.0, betas=(0.9, 0.98))

    @property
    def bases(self) -> dict[str, Tensor]:
        """As the package holds them."""
        return {name: rounded(value) for name, value in self._parameters.items()}

    def train(
        self,
        run: Run,
        rows: Sequence[DecoderRows],
        schedule: Schedule,
        more: Callable[[], Iterable[DecoderRows]],
        seed: int = 0,
    ) -> None:
        """Learn from these rows, and from more that come now and then."""
        rng, began = Random(seed), time.perf_counter()
        logged, n_steps, total = began - LOG_S, 0, torch.zeros(2, device=rows[0].f0.device)
        known, refreshed = _short(rows), began
        while (now := time.perf_counter()) - began < schedule.seconds:
            for group in self._optimiser.param_groups:
                group["lr"] = schedule.student_rate(now - began)
            if now - refreshed >= REFRESH_S:
                known += _short(more())
                refreshed = time.perf_counter()
            (batch,) = rng.choices(known, [each.f0.numel() for each in known])
            parts = self._losses(_some(batch, STEP_FRAMES))
            self._optimiser.zero_grad(set_to_none=True)
            (parts[0] + HIDDEN_WEIGHT * parts[1]).backward()
            torch.nn.utils.clip_grad_norm_(self._parameters.values(), 1.0)
            self._optimiser.step()
            total, n_steps = total + parts.detach(), n_steps + 1
            if now - logged >= LOG_S:
                decoded, hidden = (total / n_steps).tolist()
                if not math.isfinite(decoded + hidden):
                    raise FloatingPointError("the bases diverge")
                run.say(f"{now - began:5.0f} s, {n_steps} steps: decoder {decoded:.4f}, network {hidden:.4f}")
                logged, n_steps, total = now, 0, torch.zeros_like(total)

    def _losses(self, rows: DecoderRows) -> Tensor:  # [2]
        """Squared errors of the decoder's output, relative to its variance, and of the network's inner values."""
        valid = valid_times(2 * rows.n_frames, rows.f0.shape[1])
        target = rows.decoded.float()
        with torch.autocast(target.device.type, torch.bfloat16, enabled=target.is_cuda):
            own = decode(self._vocoder, rows).float()
            hidden = self._hidden(own, rows, valid)
            with torch.no_grad():
                wanted = self._hidden(target, rows, valid)
        n = valid.sum()
        decoded = (own - target).square().masked_fill(~valid, 0).sum() / (n * VARIANCE * FEATURES)
        inner = (hidden - wanted).float().square().masked_fill(~valid, 0).sum() / (n * hidden.shape[2])
        return torch.stack([decoded, inner])

    def _hidden(self, x: Tensor, rows: DecoderRows, valid: Tensor) -> Tensor:
        timbre = self._network.row(rows.style[:, :TIMBRE], row_statistics(x, rows.f0, valid))
        return self._network.hidden(x, rows.f0, timbre, valid)


def _short(rows: Iterable[DecoderRows]) -> list[DecoderRows]:
    return [each for each in rows if each.features.shape[1] <= LONGEST]


def _some(rows: DecoderRows, n_frames: int) -> DecoderRows:
    """Random rows of these, together about so many frames."""
    places = torch.randint(len(rows.n_frames), (max(1, n_frames // rows.features.shape[1]),), device=rows.f0.device)
    return DecoderRows(*(getattr(rows, each.name)[places] for each in fields(rows)))
