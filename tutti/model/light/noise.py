"""Noise that is a function of a row's seed and the sample's place in the row: the same in any batch and any window.

A counter-based generator: each sample is a hash of its index, so a window draws its samples without those before it.
Only integer arithmetic and one exact scaling: NumPy and PyTorch agree to the last bit on every device.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

MASK = 0xFFFF_FFFF
HALF = 0xFFFF
# The sum of four uniform 16-bit integers has this mean and standard deviation; it is close to a normal distribution.
MEAN = 2 * HALF
DEVIATION = 2**16 / 3**0.5
SECOND_STREAM = 0x5851_F42D  # separates the two hashes of one sample


def row_seed(durations: NDArray[np.int64], style: NDArray[np.float32]) -> int:
    """The seed of a row's noise, 32 bits: from what is spoken, by whom; the same in every batch."""
    content = np.ascontiguousarray(durations, "<i8").tobytes() + np.ascontiguousarray(style, "<f4").tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=4).digest(), "little")


def normal(seed: Any, index: Any) -> Any:
    """Values of mean 0 and variance 1, float32, for the samples `index` of rows whose seeds broadcast to it.

    Both are arrays of NumPy, uint32 or int64, or tensors of PyTorch, int64.
    """
    mixed = _hash((index + seed * 0x9E37_79B1) & MASK)
    first, second = _hash(mixed ^ seed), _hash(mixed ^ SECOND_STREAM)
    total = (first & HALF) + (first >> 16) + (second & HALF) + (second >> 16)
    return ((total.astype(np.float32) if isinstance(total, np.ndarray) else total.float()) - MEAN) * (1 / DEVIATION)


def _hash(x: Any) -> Any:
    """A bijection of 32-bit integers that changes about half of all bits when one input bit changes."""
    x = ((x >> 16) ^ x) * 0x7FEB_352D & MASK
    x = ((x >> 15) ^ x) * 0x846C_A68B & MASK
    return (x >> 16) ^ x
