"""The voice that a wave seems to have: the embedding of Resemblyzer, with its weights, at our sampling rate.

Resemblyzer reads 40 mel powers of 25 ms each 10 ms, at 16 kHz. At 24 kHz a window of 25 ms has its bins at the same
frequencies, only more of them, so the lowest 201 with the same bands are what it expects, without resampling.
It is the model by which `training.verify` compares speakers.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.light import RealFFT
from tutti.speech import SAMPLE_RATE

THEIR_RATE = 16_000
WINDOW, HOP = SAMPLE_RATE // 40, SAMPLE_RATE // 100
BINS = THEIR_RATE // 80 + 1
BANDS, WIDTH, LAYERS = 40, 256, 3
FRAMES, STRIDE = 160, 77  # of a part that is embedded at once, and between the parts of a longer row
TARGET_DB = -30.0  # what is quieter is raised to this level before it is embedded


class SpeakerEncoder(nn.Module):
    """Waves -> embeddings of length one. Its weights never change."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(BANDS, WIDTH, LAYERS, batch_first=True)
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("bands", torch.rand(BINS, BANDS) / BINS)
        self.register_buffer("window", torch.hann_window(WINDOW) / (SAMPLE_RATE / THEIR_RATE), persistent=False)
        self.requires_grad_(False)  # but in training mode: cuDNN has no gradients otherwise

    bands: Tensor
    window: Tensor

    @staticmethod
    def read(path: Path) -> "SpeakerEncoder":
        encoder = SpeakerEncoder()
        with np.load(path, allow_pickle=False) as archive:
            state = {name: torch.from_numpy(archive[name].astype(np.float32)) for name in archive.files}
        encoder.load_state_dict(state)
        return encoder

    def mels(self, wave: Tensor) -> Tensor:  # [B, S] -> [B, frames, 40]
        frames = wave.unfold(1, WINDOW, HOP) * self.window
        spectrum: Tensor = RealFFT.apply(frames)  # type: ignore[no-untyped-call]
        return spectrum[:, :, :BINS].square().sum(-1) @ self.bands

    def forward(self, wave: Tensor) -> Tensor:  # [B, S] -> [B, 256]
        return self.embed(self.mels(wave))

    def embed(self, mels: Tensor) -> Tensor:  # [B, frames, 40] -> [B, 256]
        outputs, _ = self.lstm(mels)
        return F.normalize(F.relu(self.linear(outputs[:, -1])), dim=1)

    def distances(self, wave: Tensor, target: Tensor) -> Tensor:  # twice [B, S] -> [B]
        """One less the similarity; both are raised alike, by what the target lacks."""
        gain = raising_gain(target)
        one, other = self(torch.cat([wave * gain, target * gain])).chunk(2)
        return 1 - (one * other.detach()).sum(1)

    @torch.no_grad()
    def similarities(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Of whole rows, about as `training.verify` has it (which also cuts out silence): the mean over their parts."""
        mels, counts = [], []
        for wave in (wave for pair in pairs for wave in pair):
            parts = self._parts(wave)
            mels.append(parts)
            counts.append(len(parts))
        sums = [each.sum(0) for each in self.embed(torch.cat(mels)).split(counts)]
        one, other = F.normalize(torch.stack(sums), dim=1).view(len(pairs), 2, WIDTH).unbind(1)
        return (one * other).sum(1)

    def _parts(self, wave: Tensor) -> Tensor:  # [S] -> [parts, 160, 40]
        wave = F.pad(wave * raising_gain(wave[None])[0], (WINDOW // 2, WINDOW // 2))[None]
        mels = self.mels(F.pad(wave, (0, max(0, FRAMES * HOP + WINDOW - wave.shape[1]))))[0]
        return mels.unfold(0, FRAMES, STRIDE).transpose(1, 2)


def raising_gain(wave: Tensor) -> Tensor:  # [B, S] -> [B, 1]
    power = wave.detach().square().mean(1, keepdim=True)
    return (10 ** (TARGET_DB / 20) / (power + 1e-10).sqrt()).clamp(min=1.0)


def write_encoder(path: Path) -> None:
    """Take weights and bands from the installed package, in fp16."""
    import librosa
    from resemblyzer import VoiceEncoder

    state = cast(nn.Module, VoiceEncoder("cpu", verbose=False)).state_dict()
    arrays = {name: tensor.numpy() for name, tensor in state.items() if name.startswith(("lstm.", "linear."))}
    arrays["bands"] = librosa.filters.mel(sr=THEIR_RATE, n_fft=THEIR_RATE // 40, n_mels=BANDS).T
    np.savez(path, allow_pickle=False, **{name: array.astype(np.float16) for name, array in arrays.items()})
