"""Shared by the audio tests: test signals, ways to cut them into chunks, and PyAV as the decoder."""

import io

import av
import numpy as np
from hypothesis import strategies as st

from tutti.audio import FORMATS, encoder
from tutti.speech import SAMPLE_RATE, Samples

RAW = {"pcm": "s16le", "mulaw": "mulaw", "alaw": "alaw"}  # raw samples, by FFmpeg's names
EXPLICIT = {"mp3": "mp3", "aac": "aac"}  # too short to detect; a player has the content type

cuts = st.lists(st.integers(0, 3_000), max_size=12)


def tone(n_samples: int, hz: float = 440.0, level: float = 0.5) -> Samples:
    return (level * np.sin(2 * np.pi * hz * np.arange(n_samples) / SAMPLE_RATE)).astype(np.float32)


def noise(n_samples: int, seed: int = 0) -> Samples:
    return np.random.default_rng(seed).uniform(-0.9, 0.9, n_samples).astype(np.float32)


def chunks(samples: Samples, sizes: list[int]) -> list[Samples]:
    """The samples cut into chunks of these sizes; the last chunk is the rest."""
    return np.split(samples, np.minimum(np.cumsum(sizes, dtype=int), len(samples)))


def encode(format: str, parts: list[Samples], *, sample_rate: int | None = None, n_samples: int | None = None) -> bytes:
    stream = encoder(format, sample_rate=sample_rate, n_samples=n_samples)
    return b"".join([*(stream.encode(part) for part in parts), stream.flush()])


def decode(format: str, data: bytes, sample_rate: int | None = None) -> tuple[Samples, int]:
    """The decoded samples as floats, and their sample rate."""
    if format in RAW:
        if not data:  # FFmpeg refuses an empty file, but it is valid for a raw format
            return np.zeros(0, np.float32), sample_rate or FORMATS[format].default_rate
        rate = str(sample_rate or FORMATS[format].default_rate)
        container = av.open(io.BytesIO(data), format=RAW[format], options={"sample_rate": rate})
    else:
        container = av.open(io.BytesIO(data), format=EXPLICIT.get(format))
    with container:
        assert container.streams.audio[0].channels == 1
        decoded_rate = container.streams.audio[0].rate
        decoded = [as_float(frame.to_ndarray().reshape(-1)) for frame in container.decode(audio=0)]
    return np.concatenate([np.zeros(0, np.float32), *decoded]), decoded_rate


def as_float(samples: np.ndarray) -> Samples:
    return samples.astype(np.float32) / (32768 if samples.dtype == np.int16 else 1)


def level(samples: Samples) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
