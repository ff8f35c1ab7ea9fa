"""Held-out rows, spoken by teacher and student: the distance of `training.verify`, on the device, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.losses import Losses, LossWeights
from training.speaker import SpeakerEncoder
from training.teacher import Example
from tutti.model.light.noise import normal
from tutti.model.light.signal import HOP
from tutti.model.torch.light import SpectralNetwork, harmonic_phase, pulse_train
from tutti.verify import mel

BATCH_STEPS = 40_000  # padded steps of a batch
LEVEL_GATE_DB = 0.5  # of `training.verify`, whose own constant needs packages that a training machine lacks


@dataclass(frozen=True, slots=True)
class Score:
    """How far the student is from its teacher."""

    mel_db: float  # mean over rows
    worst_db: float
    snr_db: float  # of the predictable part, mean over rows
    level_db: float  # mean of the absolute difference of a row's level
    worst_level_db: float
    mean_level_db: float  # above zero: too loud
    share_off_level: float  # of rows whose level differs by more than the gate of `training.verify`
    voiced_db: float  # of frames in voiced steps, and of all others
    unvoiced_db: float
    speaker: float | None = None  # similarity, mean over rows
    worst_speaker: float | None = None


class Evaluation:
    """The rows and the teacher's waves; `score` speaks them with any weights."""

    def __init__(self, examples: Sequence[Example], speaker: SpeakerEncoder | None = None) -> None:
        self._speaker = speaker
        self._examples = sorted((each for each in examples if len(each.f0) >= 10), key=lambda each: len(each.f0))
        self._losses = Losses(LossWeights()).to(self._examples[0].f0.device)
        self._noises = [_noise(len(each.samples), i, each.f0.device) for i, each in enumerate(self._examples)]

    @torch.no_grad()
    def score(self, network: SpectralNetwork) -> Score:
        spoken = list(zip(self._examples, self._speak(network), strict=True))
        rows = [self._compare(example, *waves) for example, waves in spoken]
        table = torch.stack(rows)  # [rows, 6]: dB, SNR, level, dB and share of voiced, dB of unvoiced
        distance, snr, level, voiced, share, unvoiced = table.double().cpu().T
        return Score(
            *(float(distance.mean()), float(distance.max()), float(snr.mean())),
            *(float(level.abs().mean()), float(level.abs().max()), float(level.mean())),
            float((level.abs() > LEVEL_GATE_DB).double().mean()),
            float((voiced * share).sum() / share.sum()),
            float((unvoiced * (1 - share)).sum() / (1 - share).sum()),
            *self._compare_speakers([(waves[0], example.samples.float()) for example, waves in spoken]),
        )

    def _compare_speakers(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> tuple[float | None, float | None]:
        if self._speaker is None:
            return None, None
        similarities = self._speaker.similarities(pairs)
        return float(similarities.mean()), float(similarities.min())

    def waves(self, network: SpectralNetwork, n: int) -> list[tuple[Tensor, Tensor]]:
        """(teacher, student) of n rows spread over all lengths."""
        pairs = [(example.samples.float(), waves[0])
                 for example, waves in zip(self._examples, self._speak(network), strict=True)]  # fmt: skip
        return pairs[:: max(1, len(pairs) // n)][:n]

    def _speak(self, network: SpectralNetwork) -> list[tuple[Tensor, Tensor]]:
        """The wave and its predictable part of each row."""
        waves: list[tuple[Tensor, Tensor]] = []
        while len(waves) < len(self._examples):
            first = len(waves)
            n = 1
            while first + n < len(self._examples) and (n + 1) * len(self._examples[first + n].f0) <= BATCH_STEPS:
                n += 1
            waves += self._batch(network, self._examples[first : first + n], self._noises[first : first + n])
        return waves

    def _batch(
        self, network: SpectralNetwork, examples: Sequence[Example], noises: Sequence[Tensor]
    ) -> list[tuple[Tensor, Tensor]]:
        pad = torch.nn.utils.rnn.pad_sequence
        f0 = pad([each.f0 for each in examples], batch_first=True)
        features = pad([each.features.float() for each in examples], batch_first=True)
        lengths = torch.tensor([len(each.f0) for each in examples], device=f0.device)
        valid = (torch.arange(f0.shape[1], device=f0.device) < lengths[:, None])[:, :, None]  # as kernels want it
        noise = pad(list(noises), batch_first=True)
        timbre = torch.stack([each.timbre for each in examples])
        steered = network.row(timbre, torch.stack([each.statistics for each in examples]))
        hidden = network.hidden(features, f0, steered, valid)
        transform = network.transform
        source, noise = transform.analyse(pulse_train(harmonic_phase(f0), f0)), transform.analyse(noise)
        predictable, noisy = (
            transform.synthesise(spectrum * valid[..., None]) for spectrum in network.spectra(hidden, source, noise)
        )
        return [
            (whole[: HOP * n], part[: HOP * n])
            for whole, part, n in zip(predictable + noisy, predictable, lengths.tolist(), strict=True)
        ]

    def _compare(self, example: Example, wave: Tensor, predictable: Tensor) -> Tensor:
        target = example.samples.float()
        levels = [self._log_mel(each) for each in (wave, target)]
        distance = (levels[0] - levels[1]).abs().mean(-1)  # [frames]
        middle = (torch.arange(len(distance), device=target.device) * mel.HOP + mel.WINDOW // 2) // HOP
        voiced = (example.f0[middle.clamp(max=len(example.f0) - 1)] > 10).float()
        error = (target - predictable).square().sum()
        power, own = target.square().sum().clamp(min=1e-9), wave.square().sum().clamp(min=1e-9)
        return torch.stack(
            [
                distance.mean(),
                10 * torch.log10(power / error.clamp(min=1e-9)),
                10 * torch.log10(own / power),
                (distance * voiced).sum() / voiced.sum().clamp(min=1),
                voiced.mean(),
                (distance * (1 - voiced)).sum() / (1 - voiced).sum().clamp(min=1),
            ]
        )

    def _log_mel(self, wave: Tensor) -> Tensor:  # [n] -> [frames, 80] dB
        power = self._losses.spectrum(wave[None], mel.WINDOW).square().sum(-1)
        return 10 * torch.log10(self._losses.mel_power(power, mel.WINDOW)[0] + mel.FLOOR)


def _noise(n: int, seed: int, device: torch.device) -> Tensor:
    noise: Tensor = normal(torch.tensor(seed, device=device), torch.arange(n, device=device))
    return noise
