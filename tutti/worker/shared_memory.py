"""Samples handed from one process to another: written once, then mapped by the reader.

The memory has no name, only a descriptor: the system frees it when the last process that maps it has let go or died, so
nothing can be left behind, and the small /dev/shm of a container sets no limit.
"""

import mmap
import os
import sys
import tempfile
from collections.abc import Sequence

import numpy as np

from tutti.speech import Samples

_BYTES = np.dtype(np.float32).itemsize


def put(rows: Sequence[Samples]) -> int:
    """Write the rows one after the other into new memory; return its descriptor."""
    shelf = _nameless()
    try:
        for row in rows:
            left = np.ascontiguousarray(row, np.float32).view(np.uint8).data
            while left:
                left = left[os.write(shelf, left) :]
    except BaseException:
        os.close(shelf)
        raise
    return shelf


def take(shelf: int, n_samples: Sequence[int]) -> list[Samples]:
    """The rows that were put there, uncopied: the memory is free again when the last of them is collected."""
    total = sum(n_samples)
    # A map keeps a duplicate of its descriptor open; from 3.13 on it need not.
    no_descriptor = {"trackfd": False} if sys.version_info >= (3, 13) else {}
    held = mmap.mmap(shelf, total * _BYTES, **no_descriptor) if total else b""
    rows: list[Samples] = []
    start = 0
    for n in n_samples:
        rows.append(np.frombuffer(held, np.float32, n, start * _BYTES) if n else np.zeros(0, np.float32))
        start += n
    return rows


def _nameless() -> int:
    if sys.platform == "linux":
        return os.memfd_create("tutti")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
