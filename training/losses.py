"""How far a wave is from the teacher's.

- `mel_db`: the very measure of `tutti verify`, at its resolution, and the same at three others.
- `magnitude`: each bin's level, and the shape of the loud ones.
- `predictable`: the part without noise against the wave: the squared error, and the same after compression of
  magnitudes, so that quiet harmonics count. Where the teacher cannot be predicted, its mean is zero, and the noise
  has to fill what is missing.
- `level_db`: the mean power of a quarter of a second in each band. Noise of the right power is not the noise of the
  least distance, which is too quiet; this term holds its level.
- `row_level_db`: the power of the whole segment, as `training.verify` has it of whole rows. Its gate is the worst row,
  so an error of half a decibel pulls nearly three times as hard as one of a tenth.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.light import RealFFT, split_frames
from tutti.speech import SAMPLE_RATE
from tutti.verify import mel

RESOLUTIONS = {2048: 128, 1024: mel.BANDS, 512: 64, 256: 40}  # window: mel bands
COMPLEX_WINDOWS = (1024, 256)
COMPRESSION = 0.35  # |S| becomes |S| ** 0.3
LEVEL_FRAMES = 24  # of the verify resolution, pooled by `level_db`
POWER_FLOOR = 1e-5  # of a sample, 25 dB below speech: a segment of silence has no level to hold
LEVEL_CURVE = 4.0  # of the squared error of a level; larger: the worst rows count more, the usual ones less
DB_PER_NEPER = 20 / np.log(10)


@dataclass(frozen=True, slots=True)
class LossWeights:
    mel: float = 1.0
    other_mels: float = 0.4  # each of three
    magnitude: float = 1.0
    squared: float = 2.0
    compressed: float = 1.0
    level: float = 0.5
    row_level: float = 0.4
    speaker: float = 8.0  # of the distance that `SpeakerEncoder` finds; it is added in a step, not here


def mel_bands(window: int, n_bands: int) -> Tensor:  # [window / 2 + 1, n_bands]
    """The triangular bands of `tutti verify`."""
    scale = 2595 * np.log10(1 + np.fft.rfftfreq(window, 1 / SAMPLE_RATE) / 700)
    edges = np.linspace(0, scale[-1], n_bands + 2)
    rising = (scale[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - scale[:, None]) / (edges[2:] - edges[1:-1])
    return torch.tensor(np.clip(np.minimum(rising, falling), 0, None), dtype=torch.float32)


class Losses(nn.Module):
    """The loss of a batch of waves; its windows and bands are buffers, to lie on the same device."""

    def __init__(self, weights: LossWeights) -> None:
        super().__init__()
        self.weights = weights
        for window, n_bands in RESOLUTIONS.items():
            shape = np.hanning(window) if window == mel.WINDOW else np.hanning(window + 1)[:-1]
            self.register_buffer(f"window{window}", torch.tensor(shape, dtype=torch.float32), persistent=False)
            self.register_buffer(f"bands{window}", mel_bands(window, n_bands), persistent=False)

    def spectrum(self, wave: Tensor, window: int) -> Tensor:  # [B, S] -> [B, F, window / 2 + 1, 2]
        hop = window // 4
        frames = split_frames(wave[:, : wave.shape[1] // hop * hop], hop) * self.get_buffer(f"window{window}")
        spectrum: Tensor = RealFFT.apply(frames)
        return spectrum

    def mel_power(self, power: Tensor, window: int) -> Tensor:  # [B, F, bins] -> [B, F, bands]
        return power @ self.get_buffer(f"bands{window}")

    def forward(self, wave: Tensor, predictable: Tensor, target: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Three times [B, S] -> the loss, and its parts for the log."""
        parts: dict[str, Tensor] = {}
        others, magnitudes, compressed = [], [], []
        for window in RESOLUTIONS:
            floor = mel.FLOOR * window / mel.WINDOW
            actual_spectrum, target_spectrum = self.spectrum(wave, window), self.spectrum(target, window)
            actual, expected = _power(actual_spectrum), _power(target_spectrum)
            actual_mel, expected_mel = self.mel_power(actual, window), self.mel_power(expected, window)
            distance = (_db(actual_mel, floor) - _db(expected_mel, floor)).abs().mean()
            if window == mel.WINDOW:
                parts["mel_db"] = distance
                pooled = [_db(_pool(power), floor) for power in (actual_mel, expected_mel)]
                parts["level_db"] = (pooled[0] - pooled[1]).abs().mean()
            else:
                others.append(distance)
            magnitudes.append(_magnitude_distance(actual, expected, floor / 100))
            if window in COMPLEX_WINDOWS:
                compressed.append(_compressed_distance(self.spectrum(predictable, window), target_spectrum, floor))
        parts["other_mels_db"] = torch.stack(others).mean()
        parts["magnitude"] = torch.stack(magnitudes).mean()
        parts["compressed"] = torch.stack(compressed).mean()
        parts["squared"] = (predictable - target).square().mean() / target.square().mean().clamp(min=1e-7)
        row_level = _db(wave.square().mean(1), POWER_FLOOR) - _db(target.square().mean(1), POWER_FLOOR)
        parts["row_level_db"] = row_level.abs().mean()
        w = self.weights
        loss = (
            w.mel * parts["mel_db"]
            + w.other_mels * len(others) * parts["other_mels_db"]
            + w.magnitude * parts["magnitude"]
            + w.compressed * parts["compressed"]
            + w.squared * parts["squared"]
            + w.level * parts["level_db"]
            + w.row_level * (parts["row_level_db"] + LEVEL_CURVE * row_level.square().mean())
        )
        return loss, {name: part.detach() for name, part in parts.items()}


def _power(spectrum: Tensor) -> Tensor:  # [..., 2] -> [...]
    return spectrum.square().sum(-1)


def _db(power: Tensor, floor: float) -> Tensor:
    return 10 * torch.log10(power + floor)


def _pool(power: Tensor) -> Tensor:  # [B, F, bands] -> the mean power over some frames
    return F.avg_pool1d(power.transpose(1, 2), LEVEL_FRAMES, LEVEL_FRAMES // 2, ceil_mode=False)


def _magnitude_distance(actual: Tensor, expected: Tensor, floor: float) -> Tensor:
    """Nepers of each bin, and the error of magnitudes relative to all of them."""
    logarithmic = 0.5 * (torch.log(actual + floor) - torch.log(expected + floor)).abs().mean()
    loud = torch.sqrt(actual + floor) - torch.sqrt(expected + floor)
    return logarithmic + torch.sqrt(loud.square().mean() / expected.mean().clamp(min=1e-6) + 1e-8)


def _compressed_distance(actual: Tensor, expected: Tensor, floor: float) -> Tensor:
    """Squared error of complex values with compressed magnitudes, relative to the expected ones."""
    a, b = (each / (_power(each) + floor)[..., None].pow(COMPRESSION) for each in (actual, expected))
    return (a - b).square().mean() / b.square().mean().clamp(min=1e-6)
