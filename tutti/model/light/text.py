"""The shape of the text student: a small transformer from phonemes to what Kokoro's predictor reads, for PL-BERT."""

import numpy as np
from numpy.typing import NDArray

HEAD = 64  # channels of an attention head
KERNEL = 7  # tokens that a convolution sees
LONGEST_WAVE = 10_000  # tokens, of the rotary position embedding
MAX_TOKENS = 512  # of a row


def waves() -> tuple[NDArray[np.float32], NDArray[np.float32]]:  # [512, 32] each
    """Cosine and sine of each position, by which pairs of channels are rotated."""
    frequencies = LONGEST_WAVE ** (-np.arange(0, 1, 2 / HEAD))
    angles = np.arange(MAX_TOKENS)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
