"""How an unknown word may sound: a small recurrent network that reads letters and was trained on the dictionaries."""

import re
from functools import cached_property
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALPHABET = "abcdefghijklmnopqrstuvwxyz'"  # id 0 is no letter
STYLES = ("us_gold", "us_silver", "gb_gold", "gb_silver")  # the dictionaries it learned from
SLOTS = 2  # places for sound that each letter has; "x" fills both
PHONE = re.compile(r"[ˈˌ]?[AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻᵊ]ː?|.")  # a stress belongs to its vowel

BLAS_THREADS_FROM = 9216  # numbers in a matrix, by OpenBLAS's own rule

Matrix = NDArray[np.float32]


class _Layer(NamedTuple):
    """One GRU in both directions; gates in the order reset, update, new."""

    w_in: Matrix  # [2, chunks, I, 3H / chunks]
    w_hidden: Matrix  # [2, chunks, H, 3H / chunks]
    b_in: Matrix  # [2, 1, 3H]
    b_hidden: Matrix  # [2, 1, 3H]

    def __call__(self, x: Matrix) -> Matrix:  # x [T, I] -> [T, 2H]
        n, size = len(x), self.w_hidden.shape[2]
        inputs = _product(np.stack([x, x[::-1]]), self.w_in) + self.b_in  # [2, T, 3H]
        out = np.empty((2, n, size), np.float32)
        hidden = np.zeros((2, 1, size), np.float32)
        for t in range(n):
            here = inputs[:, t : t + 1]
            recurrent = _product(hidden, self.w_hidden) + self.b_hidden
            gates = 0.5 + 0.5 * np.tanh(0.5 * (here[..., : 2 * size] + recurrent[..., : 2 * size]))  # a stable sigmoid
            new = np.tanh(here[..., 2 * size :] + gates[..., :size] * recurrent[..., 2 * size :])
            hidden = new + gates[..., size:] * (hidden - new)
            out[:, t] = hidden[:, 0]
        return np.concatenate([out[0], out[1, ::-1]], axis=1)


def _product(x: Matrix, chunked: Matrix) -> Matrix:  # [..., T, I] by [..., chunks, I, C] -> [..., T, chunks * C]
    """A matrix product in pieces too small for BLAS to wake its threads, which would fight the model for the cores."""
    y: Matrix = x[..., None, :, :] @ chunked
    return y.swapaxes(-3, -2).reshape(*x.shape[:-1], -1)


def _chunked(weight: Matrix) -> Matrix:  # [..., O, I] -> [..., chunks, I, O / chunks]
    n_out, n_in = weight.shape[-2:]
    width = max(c for c in range(1, n_out + 1) if n_out % c == 0 and (c * n_in < BLAS_THREADS_FROM or c == 1))
    return np.ascontiguousarray(weight.reshape(*weight.shape[:-2], n_out // width, width, n_in).swapaxes(-1, -2))


class Letters:
    """The guesser of one accent. Loads its numbers when the first unknown word comes."""

    def __init__(self, code: str) -> None:
        self.style = STYLES.index("gb_gold" if code == "en-gb" else "us_gold")

    def guess(self, word: str) -> str:
        """Phonemes of a word of plain letters, at its best path; other characters are ignored."""
        ids = [ALPHABET.index(letter) + 1 for letter in word.lower() if letter in ALPHABET]
        if not ids:
            return ""
        net = self._net
        x = np.concatenate([net.letters[[0, *ids, 0]], np.repeat(net.styles[[self.style]], len(ids) + 2, 0)], axis=1)
        for layer in net.layers:
            x = layer(x)
        scores = (_product(x, net.w_out) + net.b_out).reshape(-1, len(net.phones))  # [T * SLOTS, phones]
        best = scores.argmax(1)
        heard = best[np.concatenate([[True], best[1:] != best[:-1]])]  # repeats are one sound, phone 0 is silence
        return _one_primary("".join(net.phones[i] for i in heard if i))

    @cached_property
    def _net(self) -> "_Net":
        return _load()


class _Net(NamedTuple):
    letters: Matrix
    styles: Matrix
    layers: tuple[_Layer, ...]
    w_out: Matrix
    b_out: Matrix
    phones: tuple[str, ...]


def _one_primary(phonemes: str) -> str:
    """A word has one main stress: the first found keeps it."""
    head, mark, tail = phonemes.partition("ˈ")
    return head + mark + tail.replace("ˈ", "ˌ")


def _load() -> _Net:
    with (
        resources.files("tutti.text.g2p").joinpath("data/letters.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        numbers = {name: stored[name] for name in stored.files}

    def matrix(name: str) -> Matrix:  # bytes with a scale for each row
        weight: Matrix = numbers[name].astype(np.float32) * numbers[f"{name}.scale"].astype(np.float32)
        return weight

    def layer(i: int) -> _Layer:
        pick = [[matrix(f"gru.{kind}_l{i}{way}") for way in ("", "_reverse")] for kind in ("weight_ih", "weight_hh")]
        bias = [[matrix(f"gru.{kind}_l{i}{way}") for way in ("", "_reverse")] for kind in ("bias_ih", "bias_hh")]
        weights = [_chunked(np.stack(pair)) for pair in pick]
        return _Layer(weights[0], weights[1], np.stack(bias[0])[:, None], np.stack(bias[1])[:, None])

    return _Net(
        matrix("letters.weight"),
        matrix("styles.weight"),
        (layer(0), layer(1)),
        _chunked(matrix("out.weight")),
        matrix("out.bias"),
        tuple(str(phone) for phone in numbers["phones"]),
    )
