"""Streaming encoders: `encoder("mp3")`, `encode(samples)` for each chunk, `flush()` at the end."""

from typing import Protocol

import numpy as np

from tutti.audio.formats import Format, find_format
from tutti.audio.resample import n_resampled, resampler
from tutti.errors import ModelFailed
from tutti.speech import FULL_SCALE, SAMPLE_RATE, Samples, is_pcm

PCM_FORMATS = ("pcm", "wav")  # made of 16-bit samples as they are


class Encoder(Protocol):
    """24 kHz samples in, bytes out as early as the format allows; the bytes do not depend on the input's chunks."""

    content_type: str
    sample_rate: int
    n_clipped: int  # samples above full scale so far

    def encode(self, samples: Samples) -> bytes: ...

    def flush(self) -> bytes: ...


class Codec(Protocol):
    """One format at its own rate; it gets only finite samples within [-1, 1]."""

    def encode(self, samples: Samples) -> bytes: ...

    def flush(self) -> bytes: ...


def encoder(format: str, *, sample_rate: int | None = None, n_samples: int | None = None) -> Encoder:
    """An encoder for one stream; `n_samples` (at 24 kHz, all of them), if known, is written into headers."""
    audio_format = find_format(format)
    return StreamEncoder(audio_format, audio_format.rate(sample_rate), n_samples)


def true_header(format: str, *, sample_rate: int | None, n_samples: int) -> bytes:
    """The header to write over the start of a streamed file once its length is known; empty if it has no length."""
    return encoder(format, sample_rate=sample_rate, n_samples=n_samples).encode(np.zeros(0, np.float32))


class StreamEncoder:
    """Checks, resamples, clips and encodes the samples of one stream."""

    def __init__(self, format: Format, sample_rate: int, n_samples: int | None) -> None:
        self.content_type = format.content_type(sample_rate)
        self.sample_rate = sample_rate
        self.n_clipped = 0
        self._resampler = resampler(sample_rate)
        self._codec = codec(
            format.name, sample_rate, None if n_samples is None else n_resampled(n_samples, sample_rate)
        )
        self._takes_pcm = format.name in PCM_FORMATS and sample_rate == SAMPLE_RATE
        self._n_announced = n_samples
        self._n_in = 0
        self._flushed = False

    def encode(self, samples: Samples) -> bytes:
        if self._flushed:
            raise ValueError("this stream was flushed; create a new encoder")
        if not is_pcm(samples) and not np.isfinite(samples).all():
            raise ModelFailed("the model made samples that are not finite; no audio can be written from them")
        self._n_in += len(samples)
        if self._n_announced is not None and self._n_in > self._n_announced:
            raise ValueError(f"{self._n_in} samples came, but {self._n_announced} were announced in the header")
        if is_pcm(samples):
            if self._takes_pcm:
                return self._codec.encode(samples)  # type: ignore[arg-type]
            samples = samples.astype(np.float32) / np.float32(FULL_SCALE)
        return self._codec.encode(self._clip(self._resampler.resample(samples)))

    def flush(self) -> bytes:
        """The rest of the stream; after it the encoder is finished, and a second flush is empty."""
        if self._flushed:
            return b""
        if self._n_announced is not None and self._n_in != self._n_announced:
            raise ValueError(f"only {self._n_in} samples came of {self._n_announced} that were announced in the header")
        self._flushed = True
        return self._codec.encode(self._clip(self._resampler.flush())) + self._codec.flush()

    def _clip(self, samples: Samples) -> Samples:
        # After resampling, which may itself exceed full scale.
        n_clipped = int(np.count_nonzero(np.abs(samples) > 1))
        self.n_clipped += n_clipped
        return np.clip(samples, -1, 1) if n_clipped else samples


def codec(name: str, sample_rate: int, n_samples: int | None) -> Codec:
    """The codec of a format; `n_samples` is counted at `sample_rate`."""
    from tutti.audio import pcm

    match name:
        case "pcm":
            return pcm.Pcm()
        case "wav":
            return pcm.Wav(sample_rate, n_samples)
        case "mulaw":
            return pcm.G711(pcm.mulaw_table())
        case "alaw":
            return pcm.G711(pcm.alaw_table())

    from tutti.audio import compressed  # loads FFmpeg

    match name:
        case "mp3":
            return compressed.Mp3(sample_rate)
        case "aac":
            return compressed.Aac(sample_rate)
        case "flac":
            return compressed.Flac(sample_rate, n_samples)
        case "opus":
            return compressed.Opus(sample_rate)
    raise LookupError(f"format {name!r} is in the table but has no codec")
