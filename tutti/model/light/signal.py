"""The signals around the light network: a pulse train of the pitch, and short-time Fourier transforms.

Every value depends only on its row and its place in the row, never on a window or a batch.
"""

from typing import NamedTuple

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
BLOCK = 32  # steps, whole vectors of rows: their spectra fit into the cache of a core
# The outputs of the network's head in their order, each of BINS.
HEAD = ("harmonic_magnitude", "harmonic_phase", "noise_magnitude", "free_magnitude", "free_phase")

Floats = NDArray[np.float32]
HANN: Floats = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
SYNTHESIS: Floats = HANN / WINDOW_POWER


class Spectra(NamedTuple):
    """What the network predicts for each step: the magnitude and the phase of the filter on the pulses and of what is
    added, the magnitude of the filter on the noise.
    """

    magnitudes: Floats  # [n, 3, BINS] pulses, added, noise
    phases: Floats  # [n, 2, BINS] pulses, added


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
    voiced = ~(f0 <= VOICED_HZ)  # also what is no number: a broken row must not become speech
    samples = np.zeros((len(f0), HOP), np.float32)
    samples[voiced] = _voiced_pulses(f0[voiced, None], phase[voiced, None], next_f0[voiced, None])
    return samples.reshape(-1)


def _voiced_pulses(f0: Floats, phase: Floats, next_f0: Floats) -> Floats:  # [n, 1] each -> [n, 300]
    place = (np.arange(HOP, dtype=np.float32) + np.float32(0.5)) / HOP - np.float32(0.5)
    step = np.where(place < 0, f0, next_f0) * np.float32(HOP / SAMPLE_RATE)  # turns
    turns = phase + place * step
    half_angle = np.float32(np.pi) * (turns - np.floor(turns))
    n_harmonics = np.floor(np.float32(TOP_HZ) / np.maximum(f0, np.float32(LOWEST_HZ)))
    sine = np.sin(half_angle)
    # Dirichlet's kernel: the sum of all harmonics in closed form.
    kernel = np.sin(n_harmonics * half_angle) * np.cos((n_harmonics + 1) * half_angle)
    train = np.broadcast_to(n_harmonics, sine.shape).copy()  # its limit
    np.divide(kernel, sine, out=train, where=np.abs(sine) >= NEAR)
    train /= np.sqrt(n_harmonics)
    return train


def speak(predicted: Spectra, sources: Floats) -> Samples:  # [n, ...], [2, 300 (n + 2 REACH)] -> [300 n]
    """Filter pulses and noise and add the free part; in blocks of steps that stay in the processor's cache.

    The first and the last REACH steps lack their neighbours' share, but at the ends of a row.
    """
    n, first = len(predicted.phases), REACH * HOP - EDGE
    windows = np.lib.stride_tricks.sliding_window_view(sources[:, first:-first], WINDOW, 1)[:, ::HOP]
    wave = np.zeros((n + OVERLAP - 1, HOP), np.float32)
    for start in range(0, n, BLOCK):
        block = slice(start, min(start + BLOCK, n))
        spectra = combine(Spectra(predicted.magnitudes[block], predicted.phases[block]), *analyse(windows[:, block]))
        frames = np.fft.irfft(spectra, WINDOW)[: block.stop - start] * SYNTHESIS
        for i in reversed(range(OVERLAP)):  # so each sample is the sum of its frames from the first to the last
            wave[start + i : block.stop + i] += frames[:, i * HOP : (i + 1) * HOP]
    return wave.reshape(-1)[EDGE : EDGE + n * HOP]


def analyse(windows: Floats) -> NDArray[np.complex64]:  # [2, n, WINDOW] -> [2, n, BINS]
    n = windows.shape[1]
    padded = np.zeros((2, _whole_vectors(n), WINDOW), np.float32)
    np.multiply(windows, HANN, out=padded[:, :n])
    spectra = np.fft.rfft(padded.reshape(-1, WINDOW)).astype(np.complex64, copy=False)
    return spectra.reshape(2, -1, BINS)[:, :n]


def combine(
    predicted: Spectra, pulses: NDArray[np.complex64], noise: NDArray[np.complex64]
) -> NDArray[np.complex64]:  # -> [whole vectors of n, BINS]
    """The spectrum of the speech: filtered pulses, filtered noise and the free part."""
    (n, _, _), magnitudes = predicted.phases.shape, predicted.magnitudes
    polar = np.empty(predicted.phases.shape, np.complex64)
    np.multiply(magnitudes[:, :2], np.cos(predicted.phases), out=polar.real)
    np.multiply(magnitudes[:, :2], np.sin(predicted.phases), out=polar.imag)
    spectrum = np.zeros((_whole_vectors(n), BINS), np.complex64)
    np.multiply(polar[:, 0], pulses, out=spectrum[:n])
    spectrum[:n] += magnitudes[:, 2] * noise
    spectrum[:n] += polar[:, 1]
    return spectrum


def _whole_vectors(n: int) -> int:
    """NumPy transforms the rows that do not fill a SIMD vector by other instructions, and so with other rounding."""
    return n + -n % SIMD_ROWS
