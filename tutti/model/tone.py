"""A stand-in for Kokoro that needs no weights: each token is a tone of its own pitch for a fixed number of frames."""

from collections.abc import Sequence

import numpy as np

from tutti.model.protocol import Model
from tutti.model.validation import check_utterances, finish_samples
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Samples, Span, Utterance

FRAMES_PER_TOKEN = 2


def pitch_hz(token: int) -> float:
    """The pitch of a token; 0 (silence) for the pads at both ends."""
    return 0.0 if token == 0 else 100.0 + 10.0 * token


class ToneModel(Model):
    """Implements the model protocol, so that everything above it can be tested in milliseconds."""

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        return [_frames(row) for row in rows]

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return [finish_samples(row, _samples(row)) for row in rows]


def _frames(row: Utterance) -> Frames:
    durations = np.full(len(row.tokens), max(1, round(FRAMES_PER_TOKEN / row.speed)), np.int64)
    pitches = np.array([pitch_hz(int(token)) for token in row.tokens], np.float32)
    f0 = np.repeat(pitches, durations * 2)
    features = np.zeros((512, int(durations.sum())), np.float32)
    return Frames(durations, features, f0, np.ones_like(f0), row.style, row.pcm_volume)


def _samples(row: Frames) -> Samples:
    hz = np.repeat(row.f0[::2], SAMPLES_PER_FRAME)
    phase = 2 * np.pi * np.cumsum(hz) / SAMPLE_RATE
    whole: Samples = (0.5 * np.sin(phase)).astype(np.float32)
    if isinstance(row, Span):
        return whole[row.start * SAMPLES_PER_FRAME : row.end * SAMPLES_PER_FRAME]
    return whole
