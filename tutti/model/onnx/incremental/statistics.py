"""Estimate the statistics of a whole row from a few weighted frames of it.

The generator's norms need the mean and the variance of each channel over the whole row. Before the whole row was
generated, a few representative frames stand for it, chosen and weighted so that what goes into the generator has the
same means and variances over them as over the row.
"""

import numpy as np
from numpy.typing import NDArray

from tutti.model.spans import EXACT_SPANS

FIRST_FRAMES, CONTEXT_FRAMES = EXACT_SPANS.first, EXACT_SPANS.context
# Of representatives, contiguous pieces: a larger share (EXACT_SPANS.sampled) is closer to the whole row, and slower.
PIECE, EDGE = 8, 1  # frames of a piece; those at its edges have a wrong neighbour, so their weight is zero
# Frames at the row's ends, up to twenty times as strong inside the generator as others: each counts for itself alone.
HEAD, TAIL = 3, 10

LEAK = 0.1  # slope of the generator's LeakyReLU
RANK = 64  # principal components kept
OVERSAMPLING, POWER_ITERATIONS = 16, 2  # of the randomised SVD
RIDGE = 0.03  # pulls the weights towards equal ones
STEPS = 400  # of the projected gradient

Floats = NDArray[np.float64]


def representatives(
    decoded: NDArray[np.float32], source: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Representative frames, the first span and its context in front, and the weight of each; they sum to one.

    decoded [1, 512, 2T], source [1, 22, 120T + 1].
    """
    moments = _frame_moments(decoded, source)  # [T, 2 * (RANK + 11)]
    n_frames = len(moments)
    starts = _choose_pieces(moments)
    weighted = np.concatenate([np.arange(start + EDGE, start + PIECE - EDGE) for start in starts])
    weights = np.zeros(n_frames)
    weights[:FIRST_FRAMES] = weights[EDGE - TAIL :] = 1 / n_frames
    weights[weighted] = (1 - weights.sum()) / len(weighted)
    pieces = (np.arange(start, start + PIECE) for start in starts)
    frames = np.concatenate([np.arange(FIRST_FRAMES + CONTEXT_FRAMES), *pieces, np.arange(n_frames - TAIL, n_frames)])
    return frames, _fit_weights(moments[frames], moments.mean(0), weights[frames])


def select_frames(
    decoded: NDArray[np.float32], source: NDArray[np.float32], frames: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The generator's inputs at these frames, concatenated."""
    halves = (2 * frames[:, None] + np.arange(2)).ravel()
    hops = np.append((120 * frames[:, None] + np.arange(120)).ravel(), 120 * frames[-1] + 120)
    return np.ascontiguousarray(decoded[:, :, halves]), np.ascontiguousarray(source[:, :, hops])


def _frame_moments(decoded: NDArray[np.float32], source: NDArray[np.float32]) -> Floats:
    """Principal components and source levels of each frame, and their squares: their means give means and variances."""
    n_frames = decoded.shape[2] // 2
    activated = np.where(decoded[0] > 0, decoded[0], LEAK * decoded[0])
    frames = _standardise(activated.reshape(-1, n_frames, 2).mean(2).T.astype(np.float64))  # [T, 512]
    projected = frames @ _principal_components(frames)
    projected /= np.sqrt((projected[:, -1] ** 2).mean())
    magnitude = source[0, :11, : 120 * n_frames].reshape(11, n_frames, 120).mean(2).T
    values = np.hstack([projected, _standardise(np.log(magnitude + 1e-3).astype(np.float64))])
    moments: Floats = np.hstack([values, 0.5 * values**2])
    return moments


def _principal_components(frames: Floats) -> Floats:
    """The top principal components [512, RANK] by randomised SVD with power iterations, the strongest last."""
    basis = np.random.default_rng(0).standard_normal((frames.shape[1], RANK + OVERSAMPLING))
    for _ in range(POWER_ITERATIONS):
        basis, _ = np.linalg.qr(frames.T @ (frames @ basis))
    projected = frames @ basis
    _, vectors = np.linalg.eigh(projected.T @ projected)
    components: Floats = basis @ vectors[:, -RANK:]
    return components


def _standardise(values: Floats) -> Floats:
    standard: Floats = (values - values.mean(0)) / (values.std(0) + 1e-3)
    return standard


def _n_pieces(n_frames: int) -> int:
    n_sampled = max(EXACT_SPANS.min_sampled, EXACT_SPANS.sampled * n_frames)
    return round((n_sampled - TAIL) / PIECE)


def _choose_pieces(moments: Floats) -> list[int]:
    """Starts of the pieces, chosen greedily: each brings their mean nearest to that of all frames between the ends."""
    n_frames = len(moments)
    sums = np.vstack([np.zeros(moments.shape[1]), np.cumsum(moments, 0)])
    starts = np.arange(FIRST_FRAMES + CONTEXT_FRAMES, n_frames - TAIL - PIECE + 1)
    means = (sums[starts + PIECE - EDGE] - sums[starts + EDGE]) / (PIECE - 2 * EDGE)
    target = moments[FIRST_FRAMES : n_frames - TAIL + EDGE].mean(0)
    free = np.ones(len(starts), bool)
    total = np.zeros(moments.shape[1])
    pieces: list[int] = []
    while len(pieces) < _n_pieces(n_frames) and free.any():
        distance = (((total + means) / (len(pieces) + 1) - target) ** 2).sum(1)
        best = int(np.where(free, distance, np.inf).argmin())
        total += means[best]
        pieces.append(int(starts[best]))
        free &= np.abs(starts - starts[best]) >= PIECE
    return sorted(pieces)


def _fit_weights(moments: Floats, target: Floats, weights: Floats) -> Floats:
    """Fit non-negative weights near the given ones so that the weighted mean of the moments is the target.

    A non-negative ridge regression, solved by projected gradient. The weights at the row's ends stay; all sum to one.
    """
    fitted, inner = weights.copy(), slice(HEAD, len(weights) - TAIL)
    initial, inner_moments = weights[inner], moments[inner]
    ridge = RIDGE * len(weights)
    step = 1 / (np.linalg.norm(moments, 2) ** 2 + ridge)
    for _ in range(STEPS):
        gradient = inner_moments @ (fitted @ moments - target) + ridge * (fitted[inner] - initial)
        fitted[inner] = np.maximum(0, fitted[inner] - step * gradient) * (initial > 0)
    fitted[inner] *= initial.sum() / fitted[inner].sum()
    return fitted
