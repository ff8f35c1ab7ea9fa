"""A row that sounds stretch by stretch: where it may be cut, and which of its frames speak for all of them.

The generator's norms look at the whole row. Before the whole row has sounded, a few frames stand for it, chosen and
weighed so that what goes into the generator has, over them, the same means and spreads as over the row.
"""

from math import inf

import numpy as np
from numpy.typing import NDArray

# Numbers in which stretches are as good as the whole. In int8 each has its own range of numbers: a join is heard.
EARLY = frozenset(("fp32",))
FIRST = 40  # frames that sound at once, one second, of which Kokoro is silent for about a third
CONTEXT = 4  # frames on each side that the generator hears; further away nothing changes a sample by 1e-4
LOOK_BACK = 14  # frames in which a stretch may end sooner, where it is quieter
WORTH = 200  # frames: a shorter row is nearly done when its first stretch is
SHARE = 0.17  # of a row's frames that are heard to know the rest
AT_LEAST = 7  # pieces
PIECE, EDGE = 8, 1  # frames of each piece; those at its edges hear a wrong neighbour, so they do not count
# Frames at the row's ends, up to twenty times as strong inside the generator as others: each stands for itself alone.
HEAD, END = 3, 10
DECODER = 0.06  # what the part before the generator costs, as a share of the vocoder

LEAK = 0.1  # of what is below zero, as the generator hears it
ANGLES = 64  # directions in which the row is looked at
SPARE, TURNS = 16, 2  # directions more, and looks, to find them
PULL = 0.03  # towards equal weights
STEPS = 400

Floats = NDArray[np.float64]


def n_heard(n_frames: int) -> int:
    """Frames that the first stretch costs beside its own: those that speak for the row, and the decoder over all."""
    return CONTEXT + PIECE * _n_pieces(n_frames) + END + round(DECODER * n_frames)


def stretches(n_frames: int, growth: float, most: float = inf) -> list[tuple[int, int]]:
    """Where a row of so many frames is cut: a short first stretch, then each longer than the one before by `growth`.

    Frames from, and up to; together all of them, none much longer than `most`. A row that is not worth it stays whole.
    """
    if n_frames < WORTH:
        return [(0, n_frames)]
    ends = [FIRST]
    length = min(FIRST * growth, most)
    while n_frames - ends[-1] > 1.5 * length:
        ends.append(ends[-1] + round(length))
        length = min(length * growth, most)
    return list(zip([0, *ends], [*ends, n_frames], strict=True))


def quiet_end(energy: NDArray[np.float32], start: int, end: int) -> int:
    """Where a stretch that should end here had better end: at the quietest place a little before. energy [2T].

    The end of the row stays where it is.
    """
    if 2 * end == len(energy):
        return end
    places = range(end, max(start, end - LOOK_BACK - 1), -1)
    return min(places, key=lambda place: float(energy[max(0, 2 * place - 3) : 2 * place + 3].max()))


def representatives(
    decoded: NDArray[np.float32], source: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Frames, the first stretch and its context in front, and how much of the row each of them stands for.

    decoded [1, 512, 2T], source [1, 22, 120T + 1].
    """
    views = _views(decoded, source)  # [T, 2 * (ANGLES + 11)]
    n_frames = len(views)
    starts = _pieces(views)
    counted = np.concatenate([np.arange(start + EDGE, start + PIECE - EDGE) for start in starts])
    weights = np.zeros(n_frames)
    weights[:FIRST] = weights[EDGE - END :] = 1 / n_frames
    weights[counted] = (1 - weights.sum()) / len(counted)
    pieces = (np.arange(start, start + PIECE) for start in starts)
    index = np.concatenate([np.arange(FIRST + CONTEXT), *pieces, np.arange(n_frames - END, n_frames)])
    return index, _matched(views[index], views.mean(0), weights[index])


def cut_out(
    decoded: NDArray[np.float32], source: NDArray[np.float32], frames: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What the generator reads at these frames, one after the other."""
    twice = (2 * frames[:, None] + np.arange(2)).ravel()
    hops = np.append((120 * frames[:, None] + np.arange(120)).ravel(), 120 * frames[-1] + 120)
    return np.ascontiguousarray(decoded[:, :, twice]), np.ascontiguousarray(source[:, :, hops])


def _views(decoded: NDArray[np.float32], source: NDArray[np.float32]) -> Floats:
    """Each frame from its most telling sides, and the squares of that: means of these are means and spreads."""
    n_frames = decoded.shape[2] // 2
    passed = np.where(decoded[0] > 0, decoded[0], LEAK * decoded[0])
    frames = _standard(passed.reshape(-1, n_frames, 2).mean(2).T.astype(np.float64))  # [T, 512]
    seen = frames @ _sides(frames)
    seen /= np.sqrt((seen[:, -1] ** 2).mean())
    loud = source[0, :11, : 120 * n_frames].reshape(11, n_frames, 120).mean(2).T
    both = np.hstack([seen, _standard(np.log(loud + 1e-3).astype(np.float64))])
    views: Floats = np.hstack([both, 0.5 * both**2])
    return views


def _sides(frames: Floats) -> Floats:
    """The directions in which frames differ most, the last the most telling: found by turning random ones to them."""
    sides = np.random.default_rng(0).standard_normal((frames.shape[1], ANGLES + SPARE))
    for _ in range(TURNS):
        sides, _ = np.linalg.qr(frames.T @ (frames @ sides))
    seen = frames @ sides
    _, turned = np.linalg.eigh(seen.T @ seen)
    found: Floats = sides @ turned[:, -ANGLES:]
    return found


def _standard(values: Floats) -> Floats:
    standard: Floats = (values - values.mean(0)) / (values.std(0) + 1e-3)
    return standard


def _n_pieces(n_frames: int) -> int:
    return max(AT_LEAST, round((SHARE * n_frames - END) / PIECE))


def _pieces(views: Floats) -> list[int]:
    """Where the pieces start: each is the one that brings their mean nearest to that of all frames between the ends."""
    n_frames = len(views)
    sums = np.vstack([np.zeros(views.shape[1]), np.cumsum(views, 0)])
    starts = np.arange(FIRST + CONTEXT, n_frames - END - PIECE + 1)
    means = (sums[starts + PIECE - EDGE] - sums[starts + EDGE]) / (PIECE - 2 * EDGE)
    wanted = views[FIRST : n_frames - END + EDGE].mean(0)
    free = np.ones(len(starts), bool)
    total = np.zeros(views.shape[1])
    found: list[int] = []
    while len(found) < _n_pieces(n_frames) and free.any():
        far = (((total + means) / (len(found) + 1) - wanted) ** 2).sum(1)
        best = int(np.where(free, far, np.inf).argmin())
        total += means[best]
        found.append(int(starts[best]))
        free &= np.abs(starts - starts[best]) >= PIECE
    return sorted(found)


def _matched(views: Floats, whole: Floats, weights: Floats) -> Floats:
    """Weights near the given ones, none negative, by which the mean of the views is the row's; its ends keep theirs.

    They sum to one.
    """
    found, between = weights.copy(), slice(HEAD, len(weights) - END)
    start, seen = weights[between], views[between]
    pull = PULL * len(weights)
    step = 1 / (np.linalg.norm(views, 2) ** 2 + pull)
    for _ in range(STEPS):
        slope = seen @ (found @ views - whole) + pull * (found[between] - start)
        found[between] = np.maximum(0, found[between] - step * slope) * (start > 0)
    found[between] *= start.sum() / found[between].sum()
    return found
