"""A teacher that hums: harmonics whose loudness follows the features, so a small student can learn it."""

from collections.abc import Iterator, Sequence

import torch

from training.rows import VoiceTables
from training.teacher import Example
from tutti.model.light.signal import HOP
from tutti.model.torch.light import FEATURES, TIMBRE, harmonic_phase, pulse_train, row_statistics
from tutti.speech import Utterance

WORDS = {"a": ["wˈʌn", "tˈu", "θɹˈi"] * 10, "e": ["ˈuno", "dˈos"] * 10}


def example(n_steps: int, seed: int, n_features: int = FEATURES, n_hidden: int = 0) -> Example:
    generator = torch.Generator().manual_seed(seed)
    f0 = torch.full((n_steps,), 100.0 + 10 * (seed % 10))
    f0[: n_steps // 4] = 0
    features = torch.randn(n_steps, n_features, generator=generator) * 0.1
    loudness = 0.05 + 0.02 * torch.sin(torch.arange(n_steps) / 5)
    features[:, 0] = loudness * 20
    wave = pulse_train(harmonic_phase(f0[None]), f0[None])[0].view(n_steps, HOP) * loudness[:, None]
    timbre, valid = torch.randn(TIMBRE, generator=generator), torch.ones(1, n_steps, 1, dtype=torch.bool)
    statistics = row_statistics(features[None], f0[None], valid)[0]
    hidden = features[:, :1].expand(-1, n_hidden)
    return Example(features.half(), f0, timbre, wave.flatten().half(), statistics, hidden.half())


class HummingTeacher:
    def __init__(self, n_features: int = FEATURES, n_hidden: int = 0) -> None:
        self._sizes = n_features, n_hidden

    def speak(self, rows: Sequence[Utterance]) -> Iterator[list[Example]]:
        for i, row in enumerate(rows):
            yield [example(40 + 4 * len(row.tokens), i, *self._sizes)]


def silent_voices() -> VoiceTables:
    import numpy as np

    return VoiceTables(("af_heart", "ef_dora"), np.ones((2, 510, 256), np.float32))
