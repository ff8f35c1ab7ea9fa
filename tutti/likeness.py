"""A voice like that of a clip: a blend of Kokoro's voices, by what a speaker encoder hears in the clip.

The encoder is Resemblyzer's, in NumPy. From its embedding a linear map (training/likeness.py) tells how much of each of
Kokoro's voices to take, once for the timbre and once for the prosody; a share can be negative.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutti.errors import MissingExtra
from tutti.speech import SAMPLE_RATE, STYLE_SIZE, Samples
from tutti.torch_file import read_tensors

Floats = NDArray[np.float32]

MAP = Path(__file__).with_name("likeness.npz")
SPREAD = (
    1.16  # length of all shares less the mean voice; a voice of Kokoro's has 1.41. Larger is more alike, and hoarser
)
OWN = 0.94  # similarity that another clip of the speaker reaches: the mean of 11 speakers
WINDOW, HOP = SAMPLE_RATE // 40, SAMPLE_RATE // 100
# The encoder hears 16 kHz. At 24 kHz a window of 25 ms has its bins at the same frequencies, only more of them.
ENCODER_RATE, BINS, BANDS = 16_000, 201, 40
PART, STRIDE = 160, 77  # windows that are embedded at once, and between the starts of two such parts
LEVEL = 10 ** (-30 / 20)
SILENCE_DB, BLOCK = 35, 720  # below the loudest 5 % of the blocks, which are cut unless one of the three beside speaks


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """An LSTM."""

    of_input: Floats  # [4 * size, n_inputs]
    of_state: Floats  # [4 * size, size]
    bias: Floats  # [4 * size]

    def __call__(self, inputs: Floats) -> Floats:  # [parts, time, n_inputs] -> [parts, time, size]
        driven = inputs @ self.of_input.T + self.bias
        state = cell = np.zeros((len(inputs), self.of_state.shape[1]), np.float32)
        outputs = []
        for step in range(inputs.shape[1]):
            enter, keep, new, leave = np.split(driven[:, step] + state @ self.of_state.T, 4, axis=1)
            cell = _sigmoid(keep) * cell + _sigmoid(enter) * np.tanh(new)
            state = _sigmoid(leave) * np.tanh(cell)
            outputs.append(state)
        return np.stack(outputs, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class SpeakerEncoder:
    """Speech to a vector of length one, which is alike for clips of one speaker."""

    layers: tuple[Layer, ...]
    weight: Floats  # [n_embedding, size]
    bias: Floats  # [n_embedding]

    @staticmethod
    def of(state: dict[str, NDArray[Any]]) -> "SpeakerEncoder":
        """From the tensors of PyTorch's modules `lstm` and `linear`."""
        lstm = {name.removeprefix("lstm."): value for name, value in state.items() if name.startswith("lstm.")}
        layers = tuple(
            Layer(lstm[f"weight_ih_l{n}"], lstm[f"weight_hh_l{n}"], lstm[f"bias_ih_l{n}"] + lstm[f"bias_hh_l{n}"])
            for n in range(len(lstm) // 4)
        )
        return SpeakerEncoder(layers, state["linear.weight"], state["linear.bias"])

    def __call__(self, samples: Samples) -> Floats:
        return unit(self.embed(parts(mels(spoken(samples)))).mean(axis=0))

    def embed(self, inputs: Floats) -> Floats:  # [parts, time, bands] -> [parts, n_embedding]
        for layer in self.layers:
            inputs = layer(inputs)
        return unit(np.maximum(0, inputs[:, -1] @ self.weight.T + self.bias))


@cache
def speaker_encoder() -> SpeakerEncoder:
    """Return Resemblyzer's encoder from its package, which is not imported."""
    spec = find_spec("resemblyzer")
    if spec is None or spec.origin is None:
        raise MissingExtra("a voice like a clip needs a speaker encoder; run: pip install --no-deps Resemblyzer")
    return SpeakerEncoder.of(read_tensors(Path(spec.origin).with_name("pretrained.pt").read_bytes(), "model_state"))


def blend_like(embedding: Floats, tables: NDArray[np.float32]) -> Floats:  # [256], [54, 510, 256] -> [510, 256]
    """Return the table of a voice like that of an embedding. `tables`: of Kokoro's voices, in their order."""
    fitted = fitted_map()
    shares = fitted["offset"] + embedding @ fitted["map"]
    shares *= SPREAD / np.linalg.norm(shares)
    timbre, prosody = 1 / len(tables) + shares.reshape(2, len(tables)).astype(np.float32)
    half = STYLE_SIZE // 2
    blended = [np.tensordot(timbre, tables[:, :, :half], 1), np.tensordot(prosody, tables[:, :, half:], 1)]
    return np.concatenate(blended, axis=1)


def stock_similarities(embedding: Floats) -> Floats:
    """Return the similarity of each of Kokoro's voices."""
    similarities: Floats = fitted_map()["stock"] @ embedding
    return similarities


def likeness(similarity: float, stock: Floats) -> float:
    """Return how far it is to the speaker: 0 is an average voice of Kokoro's, 1 another clip of the speaker."""
    average = float(stock.mean())
    return (similarity - average) / (OWN - average)


@cache
def fitted_map() -> dict[str, Floats]:
    """`map` [256, 2 * 54] and `offset` [2 * 54]: embedding to shares; `stock` [54, 256]: embeddings of the voices."""
    with np.load(MAP, allow_pickle=False) as archive:
        return {name: archive[name].astype(np.float32) for name in archive.files}


def unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), np.float32)


def spoken(samples: Samples) -> Samples:
    """Return the samples without long silence, at the encoder's level."""
    blocks = samples[: len(samples) // BLOCK * BLOCK].reshape(-1, BLOCK)
    decibels = 10 * np.log10((blocks**2).mean(axis=1) + 1e-12)
    is_loud = decibels > np.percentile(decibels, 95) - SILENCE_DB
    loud: Samples = blocks[np.convolve(is_loud, np.ones(7), "same") > 0].ravel()
    return loud * np.float32(LEVEL / (np.sqrt((loud**2).mean()) + 1e-9))


def mels(samples: Samples) -> Floats:
    """Return the power of 40 bands every 10 ms."""
    padded = np.pad(samples, WINDOW // 2)
    window = np.sin(np.pi * np.arange(WINDOW) / WINDOW) ** 2 * (ENCODER_RATE / SAMPLE_RATE)
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP] * window
    power = np.abs(np.fft.rfft(frames, axis=1)[:, :BINS]) ** 2
    return np.asarray(power @ _bands(), np.float32)


def parts(frames: Floats) -> Floats:  # [time, bands] -> [parts, 160, bands]
    repeated = np.tile(frames, (-(-PART // len(frames)), 1)) if len(frames) < PART else frames
    return np.lib.stride_tricks.sliding_window_view(repeated, PART, axis=0)[::STRIDE].transpose(0, 2, 1)


@cache
def _bands() -> NDArray[np.float64]:  # [bins, bands]
    """Return triangles of equal area on Slaney's mel scale: 3 in 200 Hz up to 1 kHz, then 27 in a factor of 6.4."""
    top = 15 + 27 * np.log(ENCODER_RATE / 2000) / np.log(6.4)
    steps = np.linspace(0, top, BANDS + 2)
    edges = np.where(steps < 15, steps * 200 / 3, 1000 * 6.4 ** ((steps - 15) / 27))
    hz = np.linspace(0, ENCODER_RATE / 2, BINS)[:, None]
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (hz - low) / (middle - low), (high - hz) / (high - middle)
    triangles: NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)
    return triangles


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)), np.float32)
