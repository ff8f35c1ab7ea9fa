"""Neural G2P for unknown English words: a small bidirectional GRU with CTC decoding, trained on the dictionaries."""

import re
from functools import cached_property
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALPHABET = "abcdefghijklmnopqrstuvwxyz'"  # id 0 is the edge of a word
STYLES = ("us_gold", "us_silver", "gb_gold", "gb_silver")  # the dictionaries it was trained on, an input of the network
SLOTS = 2  # outputs for each letter; "x" needs both
PHONE = re.compile(r"[ˈˌ]?[AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻᵊ]ː?|.")  # a vowel with its stress, or one symbol

BLAS_THREADS_FROM = 9216  # elements of a matrix from which OpenBLAS uses threads

Matrix = NDArray[np.float32]


class _GruLayer(NamedTuple):
    """One bidirectional GRU layer; gates in the order reset, update, new."""

    w_in: Matrix  # [2, blocks, I, 3H / blocks]
    w_hidden: Matrix  # [2, blocks, H, 3H / blocks]
    b_in: Matrix  # [2, 1, 3H]
    b_hidden: Matrix  # [2, 1, 3H]

    def __call__(self, x: Matrix) -> Matrix:  # x [T, I] -> [T, 2H]
        n, size = len(x), self.w_hidden.shape[2]
        inputs = _product(np.stack([x, x[::-1]]), self.w_in) + self.b_in  # [2, T, 3H]
        out = np.empty((2, n, size), np.float32)
        hidden = np.zeros((2, 1, size), np.float32)
        for t in range(n):
            current = inputs[:, t : t + 1]
            recurrent = _product(hidden, self.w_hidden) + self.b_hidden
            gates = 0.5 + 0.5 * np.tanh(0.5 * (current[..., : 2 * size] + recurrent[..., : 2 * size]))  # sigmoid
            new = np.tanh(current[..., 2 * size :] + gates[..., :size] * recurrent[..., 2 * size :])
            hidden = new + gates[..., size:] * (hidden - new)
            out[:, t] = hidden[:, 0]
        return np.concatenate([out[0], out[1, ::-1]], axis=1)


def _product(x: Matrix, blocks: Matrix) -> Matrix:  # [..., T, I] by [..., blocks, I, C] -> [..., T, blocks * C]
    """Multiply in blocks too small for BLAS threads, which would take cores from the model."""
    y: Matrix = x[..., None, :, :] @ blocks
    return y.swapaxes(-3, -2).reshape(*x.shape[:-1], -1)


def _to_blocks(weight: Matrix) -> Matrix:  # [..., O, I] -> [..., blocks, I, O / blocks]
    n_out, n_in = weight.shape[-2:]
    width = max(c for c in range(1, n_out + 1) if n_out % c == 0 and (c * n_in < BLAS_THREADS_FROM or c == 1))
    return np.ascontiguousarray(weight.reshape(*weight.shape[:-2], n_out // width, width, n_in).swapaxes(-1, -2))


class NeuralG2P:
    """The network for one accent. Loads its weights with the first unknown word."""

    def __init__(self, code: str) -> None:
        self.style = STYLES.index("gb_gold" if code == "en-gb" else "us_gold")

    def guess(self, word: str) -> str:
        """Return the phonemes of a word by greedy CTC decoding; characters outside ALPHABET are ignored."""
        ids = [ALPHABET.index(letter) + 1 for letter in word.lower() if letter in ALPHABET]
        if not ids:
            return ""
        weights = self._weights
        x = np.concatenate(
            [weights.letters[[0, *ids, 0]], np.repeat(weights.styles[[self.style]], len(ids) + 2, 0)], axis=1
        )
        for layer in weights.layers:
            x = layer(x)
        scores = (_product(x, weights.w_out) + weights.b_out).reshape(-1, len(weights.phones))  # [T * SLOTS, phones]
        best = scores.argmax(1)
        collapsed = best[np.concatenate([[True], best[1:] != best[:-1]])]  # merge repeats; 0 is the blank
        return _keep_first_stress("".join(weights.phones[i] for i in collapsed if i))

    @cached_property
    def _weights(self) -> "_Weights":
        return _load()


class _Weights(NamedTuple):
    letters: Matrix
    styles: Matrix
    layers: tuple[_GruLayer, ...]
    w_out: Matrix
    b_out: Matrix
    phones: tuple[str, ...]


def _keep_first_stress(phonemes: str) -> str:
    """Keep the first primary stress; the others become secondary."""
    head, mark, tail = phonemes.partition("ˈ")
    return head + mark + tail.replace("ˈ", "ˌ")


def _load() -> _Weights:
    with (
        resources.files("tutti.text.g2p").joinpath("data/letters.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as weights,
    ):
        arrays = {name: weights[name] for name in weights.files}

    def matrix(name: str) -> Matrix:  # int8 with a scale for each row
        weight: Matrix = arrays[name].astype(np.float32) * arrays[f"{name}.scale"].astype(np.float32)
        return weight

    def layer(i: int) -> _GruLayer:
        def both_directions(kind: str) -> Matrix:
            return np.stack([matrix(f"gru.{kind}_l{i}{direction}") for direction in ("", "_reverse")])

        return _GruLayer(
            _to_blocks(both_directions("weight_ih")),
            _to_blocks(both_directions("weight_hh")),
            both_directions("bias_ih")[:, None],
            both_directions("bias_hh")[:, None],
        )

    return _Weights(
        matrix("letters.weight"),
        matrix("styles.weight"),
        (layer(0), layer(1)),
        _to_blocks(matrix("out.weight")),
        matrix("out.bias"),
        tuple(str(phone) for phone in arrays["phones"]),
    )
