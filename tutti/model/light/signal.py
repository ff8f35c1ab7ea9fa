"""The signals around the light network: a pulse train of the pitch, and short-time Fourier transforms.

Every value depends only on its row and its place in the row, never on a window or a batch.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tutti.speech import SAMPLE_RATE, Samples

HOP = 300  # samples of a step; two steps a frame
WINDOW = 1200  # samples of a Fourier transform
BINS = WINDOW // 2 + 1
OVERLAP = WINDOW // HOP
EDGE = (WINDOW - HOP) // 2  # samples of a transform before the step that it belongs to, and after it
REACH = 2  # steps on both sides whose spectra reach into a step, and whose samples reach into a spectrum
CONTEXT_STEPS = 27 + REACH  # of the row that decide a step's samples, on both sides: 9 convolutions of 7 taps
VOICED_HZ = 10.0
REFERENCE_HZ = 200.0  # the pitch that the network sees as zero
TOP_HZ, LOWEST_HZ = 11_000.0, 50.0  # harmonics of the pulse train end at TOP_HZ; lower pitches count as LOWEST_HZ there
NEAR = 1e-3  # below this sine the pulse train takes its limit
MAX_LOG_MAGNITUDE = 6.0
WINDOW_POWER = np.float32(1.5)  # sum of the squared windows at each sample
SIMD_ROWS = 16  # numbers of fp32 in the widest SIMD vector

Floats = NDArray[np.float32]
Numbers = TypeVar("Numbers", NDArray[np.float32], NDArray[np.complex64])
HANN: Floats = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)


class Spectra(NamedTuple):
    """What the network predicts for each step, each [n, BINS]."""

    harmonic_magnitude: Floats  # of the filter on the pulse train
    harmonic_phase: Floats
    noise_magnitude: Floats  # of the filter on the noise
    free_magnitude: Floats  # of what is added
    free_phase: Floats


def pitch_phase(f0: Floats) -> Floats:  # [n] Hz -> [n] turns
    """The phase of the pitch in the middle of each step, as in Kokoro's own source."""
    turns = np.cumsum(f0.astype(np.float64) * (HOP / SAMPLE_RATE))
    return (turns - np.floor(turns)).astype(np.float32)


def pitch_inputs(f0: Floats) -> Floats:  # [n] Hz -> [2, n]
    """What the network sees of the pitch: voiced or not, and its logarithm."""
    voiced = f0 > VOICED_HZ
    log_pitch = np.log(np.where(voiced, f0, REFERENCE_HZ) / np.float32(REFERENCE_HZ))
    return np.stack([voiced.astype(np.float32), log_pitch.astype(np.float32)])


def pulses(f0: Floats, phase: Floats, next_f0: Floats) -> Samples:  # [n] each -> [300 n]
    """A pulse train with all harmonics up to TOP_HZ in equal strength; silent where there is no voice."""
    place = ((np.arange(HOP, dtype=np.float32) + np.float32(0.5)) / HOP - np.float32(0.5))[None]
    turns_per_hz = np.float32(HOP / SAMPLE_RATE)
    step = np.where(place < 0, f0[:, None], next_f0[:, None]) * turns_per_hz  # [n, 300] turns
    turns = phase[:, None] + place * step
    half_angle = np.float32(np.pi) * (turns - np.floor(turns))
    n_harmonics = np.floor(np.float32(TOP_HZ) / np.maximum(f0, np.float32(LOWEST_HZ)))[:, None]
    sine = np.sin(half_angle)
    near = np.abs(sine) < NEAR
    # Dirichlet's kernel: the sum of all harmonics in closed form.
    kernel = np.sin(n_harmonics * half_angle) * np.cos((n_harmonics + 1) * half_angle)
    train = np.where(near, n_harmonics, kernel / np.where(near, np.float32(1), sine))
    gain = np.where(f0 > VOICED_HZ, np.float32(1), np.float32(0))[:, None] / np.sqrt(n_harmonics)
    samples: Samples = (train * gain).astype(np.float32).reshape(-1)
    return samples


def analyse(wave: Samples) -> NDArray[np.complex64]:  # [300 (n + 2 REACH)] -> [n, BINS]
    """Spectra of n steps, from the samples of these steps and of REACH steps on both sides."""
    first = REACH * HOP - EDGE
    windows = np.lib.stride_tricks.sliding_window_view(wave[first : len(wave) - first], WINDOW)[::HOP]
    spectra = np.fft.rfft(_pad_rows(windows * HANN))
    return spectra[: len(windows)].astype(np.complex64, copy=False)


def combine(
    predicted: Spectra, harmonics: NDArray[np.complex64], noise: NDArray[np.complex64]
) -> NDArray[np.complex64]:
    """The spectrum of the speech: filtered pulses, filtered noise and the free part, [n, BINS]."""
    spectrum = predicted.noise_magnitude * noise
    spectrum += polar(predicted.harmonic_magnitude, predicted.harmonic_phase) * harmonics
    spectrum += polar(predicted.free_magnitude, predicted.free_phase)
    return spectrum


def polar(magnitude: Floats, phase: Floats) -> NDArray[np.complex64]:
    value = np.empty(magnitude.shape, np.complex64)
    value.real = magnitude * np.cos(phase)
    value.imag = magnitude * np.sin(phase)
    return value


def synthesise(spectra: NDArray[np.complex64]) -> Samples:  # [n, BINS] -> [300 n]
    """Overlap-add. The first and the last REACH steps lack their neighbours' share, but at the ends of a row."""
    n = len(spectra)
    frames = np.fft.irfft(_pad_rows(spectra), WINDOW)[:n]
    parts = (frames * (HANN / WINDOW_POWER)).reshape(n, OVERLAP, HOP)
    wave = np.zeros((n + OVERLAP - 1, HOP), np.float32)
    for i in range(OVERLAP):
        wave[i : i + n] += parts[:, i]
    return wave.reshape(-1)[EDGE : EDGE + n * HOP]


def _pad_rows(rows: Numbers) -> Numbers:  # [n, k]
    """Fill up with zeros to whole SIMD vectors of rows.

    NumPy transforms the rows that do not fill a vector by other instructions, and so with other rounding errors.
    """
    return np.pad(rows, ((0, -len(rows) % SIMD_ROWS), (0, 0)))
