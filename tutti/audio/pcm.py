"""The formats that need no codec: 16-bit samples, raw or in a WAV file, and mu-law and A-law of G.711."""

import struct
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tutti.speech import FULL_SCALE, Int16Samples, Samples, is_pcm

UNKNOWN_SIZE = 0xFFFFFFFF  # players read it as "until the stream ends"
WAV_HEADER_BYTES = 44


def to_int16(samples: Samples | Int16Samples) -> Int16Samples:
    """Samples within [-1, 1] as 16-bit integers, symmetric around zero; integers stay as they are."""
    integers: Int16Samples = samples if is_pcm(samples) else np.rint(samples * np.float32(FULL_SCALE)).astype("<i2")
    return integers


class Pcm:
    """Raw s16le."""

    def encode(self, samples: Samples) -> bytes:
        return to_int16(samples).tobytes()

    def flush(self) -> bytes:
        return b""


class Wav:
    """One header, then s16le."""

    def __init__(self, sample_rate: int, n_samples: int | None) -> None:
        self._header = wav_header(sample_rate, n_samples)

    def encode(self, samples: Samples) -> bytes:
        header, self._header = self._header, b""
        return header + to_int16(samples).tobytes()

    def flush(self) -> bytes:
        header, self._header = self._header, b""
        return header


def wav_header(sample_rate: int, n_samples: int | None) -> bytes:
    """The 44 bytes before mono 16-bit samples: the sizes if known and under 4 GiB, else "unknown"."""
    data_bytes = UNKNOWN_SIZE if n_samples is None else 2 * n_samples
    riff_bytes = WAV_HEADER_BYTES - 8 + data_bytes
    if riff_bytes >= UNKNOWN_SIZE:
        riff_bytes = data_bytes = UNKNOWN_SIZE
    layout = struct.pack("<HHIIHH", 1, 1, sample_rate, 2 * sample_rate, 2, 16)  # PCM, mono, rates, frame bytes, bits
    return struct.pack("<4sI4s4sI16s4sI", b"RIFF", riff_bytes, b"WAVE", b"fmt ", 16, layout, b"data", data_bytes)


class G711:
    """One byte a sample, by a lookup table."""

    def __init__(self, law: NDArray[np.uint8]) -> None:
        self._law = law

    def encode(self, samples: Samples) -> bytes:
        return self._law[to_int16(samples).view(np.uint16)].tobytes()

    def flush(self) -> bytes:
        return b""


@cache
def mulaw_table() -> NDArray[np.uint8]:  # [65536], indexed by the sample's 16 bits read as unsigned
    """mu-law: 14-bit magnitude plus 33 as a float of 3 exponent and 4 mantissa bits, all bits inverted."""
    negative, magnitude = _sign_and_magnitude()
    biased = np.minimum((magnitude >> 2) + 33, 0x1FFF)
    exponent = _bit_length(biased) - 6  # the bias makes the smallest number 6 bits long
    mantissa = (biased >> (exponent + 1)) & 0xF
    code: NDArray[np.int64] = ~(negative << 7 | exponent << 4 | mantissa)
    return code.astype(np.uint8)


@cache
def alaw_table() -> NDArray[np.uint8]:  # [65536], indexed by the sample's 16 bits read as unsigned
    """A-law: 12-bit magnitude as a float whose lowest exponent is denormal, even bits inverted."""
    negative, magnitude = _sign_and_magnitude()
    level = magnitude >> 4
    exponent = np.maximum(_bit_length(level) - 4, 0)
    mantissa = (level >> np.maximum(exponent - 1, 0)) & 0xF
    code: NDArray[np.int64] = ((1 - negative) << 7 | exponent << 4 | mantissa) ^ 0x55
    return code.astype(np.uint8)


def _sign_and_magnitude() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every 16-bit sample; negative ones by complement, as the ITU's reference does, so -32768 fits."""
    sample = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int64)
    negative = (sample < 0).astype(np.int64)
    return negative, np.where(sample < 0, ~sample, sample)


def _bit_length(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.frexp(numbers)[1].astype(np.int64)
