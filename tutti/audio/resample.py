"""Streaming resampling from the model's 24 kHz, with no delay at the start and no loss at the end."""

from typing import Protocol

import numpy as np

from tutti.speech import SAMPLE_RATE, Samples

NO_SAMPLES: Samples = np.zeros(0, dtype=np.float32)


class Resampler(Protocol):
    """The concatenated outputs of `resample` and `flush` do not depend on the chunks of the input."""

    def resample(self, samples: Samples) -> Samples: ...

    def flush(self) -> Samples: ...


def resampler(to_rate: int) -> Resampler:
    """A resampler from 24 kHz to `to_rate`; the output is `n_resampled(n, to_rate)` samples long."""
    return NoResampler() if to_rate == SAMPLE_RATE else SoxrResampler(to_rate)


def n_resampled(n_samples: int, to_rate: int) -> int:
    """How many samples `n_samples` at 24 kHz become, halves rounded up."""
    return (2 * n_samples * to_rate + SAMPLE_RATE) // (2 * SAMPLE_RATE)


class NoResampler:
    """Passes samples through."""

    def resample(self, samples: Samples) -> Samples:
        return samples

    def flush(self) -> Samples:
        return NO_SAMPLES


class SoxrResampler:
    """libsoxr at high quality: linear phase, so that word times stay true."""

    def __init__(self, to_rate: int) -> None:
        from soxr import ResampleStream  # type: ignore[import-untyped]

        self._to_rate = to_rate
        self._stream = ResampleStream(SAMPLE_RATE, to_rate, 1, dtype="float32", quality="HQ")
        self._n_in = 0
        self._n_out = 0

    def resample(self, samples: Samples) -> Samples:
        out: Samples = self._stream.resample_chunk(np.ascontiguousarray(samples, dtype=np.float32))
        self._n_in += len(samples)
        self._n_out += len(out)
        return out

    def flush(self) -> Samples:
        # libsoxr rounds its ratio, so it may differ by a sample; our count must hold, since it is written in headers.
        out: Samples = self._stream.resample_chunk(np.zeros(SAMPLE_RATE // 1000, np.float32), last=True)
        return out[: n_resampled(self._n_in, self._to_rate) - self._n_out]
