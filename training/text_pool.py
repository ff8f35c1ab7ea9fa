"""Rows of tokens on the device, by length, with what the teacher says of each token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.text_teacher import TextTeacher
from tutti.model.torch.kokoro.masks import RowMask
from tutti.text.vocab import SYMBOLS

STEP = 16  # tokens between two lengths of padded rows
HELD_OUT = 200  # every so many rows of each language is only scored
SPACE = SYMBOLS[" "]
ENDS = [SYMBOLS[symbol] for symbol in ".....?!,…"]  # of a row that was cut
TEACHER_TOKENS = 60_000  # that the teacher gets at once


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Rows of similar length, padded, on the device."""

    tokens: Tensor  # [R, N] uint8
    lengths: Tensor  # [R]
    features: Tensor  # [R, N, 512] fp16, of the teacher

    def take(self, rows: Tensor) -> tuple[Tensor, RowMask, Tensor]:
        tokens = self.tokens[rows].long()
        return tokens, RowMask.of(self.lengths[rows], tokens.shape[1]), self.features[rows].float()


def with_cuts(rows: Sequence[NDArray[np.uint8]], rng: Random) -> list[NDArray[np.uint8]]:
    """The rows, and of every second one a part between two spaces, with an end of its own: texts are cut anywhere."""
    every = list(rows)
    for row in rows:
        spaces = np.flatnonzero(row == SPACE)
        if len(spaces) > 3 and rng.random() < 0.5:
            first, last = sorted(rng.sample(range(len(spaces)), 2))
            inner = row[spaces[first] + 1 : spaces[last]]
            if len(inner) > 2:
                every.append(np.array([0, *inner, rng.choice(ENDS), 0], np.uint8))
    return every


def mixed(rows: Sequence[NDArray[np.uint8]], n: int, rng: Random) -> list[NDArray[np.uint8]]:
    """Sentences of random words: names and words that no text has side by side."""
    words = [word for row in rng.sample(list(rows), min(len(rows), 20_000)) for word in split(row)]
    sentences = []
    for _ in range(n):
        parts: list[int] = []
        for _ in range(rng.choice((1, 2, 3, 5, 8, 12, 20))):
            parts += [*rng.choice(words), SPACE]
        sentences.append(np.array([0, *parts[:-1][:400], rng.choice(ENDS), 0], np.uint8))
    return sentences


def split(row: NDArray[np.uint8]) -> list[list[int]]:
    """The words of a row, without its padding and last mark."""
    parts = np.split(row[1:-2], np.flatnonzero(row[1:-2] == SPACE))
    return [each for part in parts if (each := [int(token) for token in part if token != SPACE])]


class TextPool:
    """All rows, in groups of equal padded length; a batch comes from one group."""

    def __init__(self, rows: Mapping[str, Sequence[NDArray[np.uint8]]], teacher: TextTeacher, device: torch.device,
                 seed: int) -> None:  # fmt: skip
        rng = Random(seed)
        groups: dict[int, list[NDArray[np.uint8]]] = {}
        for each in rows.values():
            own = [row for i, row in enumerate(each) if i % HELD_OUT]
            for row in (*with_cuts(own, rng), *mixed(own, len(own) // 6, rng)):
                groups.setdefault(-(-len(row) // STEP) * STEP, []).append(row)
        self._groups = [ask(groups[n], n, teacher, device) for n in sorted(groups)]
        sizes = np.array([group.tokens.numel() for group in self._groups], float)
        self._shares = np.cumsum(sizes / sizes.sum())
        self._random = np.random.default_rng(seed)
        self.n_rows, self.n_tokens = sum(len(each.tokens) for each in self._groups), int(sizes.sum())
        self.device = device

    def draw(self, n_tokens: int) -> tuple[Tensor, RowMask, Tensor]:
        """Random rows of one group: tokens, mask, the teacher's features."""
        group = self._groups[int(np.searchsorted(self._shares, self._random.random()))]
        n = max(4, n_tokens // group.tokens.shape[1])
        return group.take(torch.randint(len(group.tokens), (n,), device=self.device))

    def deviation(self) -> Tensor:  # [512]
        """Of the teacher's features, over some tokens."""
        _, mask, features = self.draw(TEACHER_TOKENS)
        return features[mask.valid[:, :, 0]].std(0).clamp(min=1e-2)


def ask(rows: Sequence[NDArray[np.uint8]], n: int, teacher: TextTeacher, device: torch.device) -> TokenRows:
    """Pad rows to `n` tokens and let the teacher read them."""
    padded = np.zeros((len(rows), n), np.uint8)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    tokens = torch.from_numpy(padded).to(device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    size = max(1, TEACHER_TOKENS // n)
    features = [
        teacher.features(part.long(), RowMask.of(length, n)).half()
        for part, length in zip(tokens.split(size), lengths.split(size), strict=True)
    ]
    return TokenRows(tokens, lengths, torch.cat(features))
