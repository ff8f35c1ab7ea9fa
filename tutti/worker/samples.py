"""The samples of rows on their way out of a worker's process: through shared memory.

The shared memory has no name, only a descriptor that travels with a message. The system frees it when the last process
that maps it has released it or died, so nothing is left behind, and the small /dev/shm of a container is no limit.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tutti.process.shared_memory import SharedMemory
from tutti.speech import Samples, is_pcm

_ALIGNMENT = 4  # bytes, of each row in shared memory


class RowFormat(NamedTuple):
    """How the samples of a row lie in shared memory."""

    n_samples: int
    is_pcm: bool = False  # 16-bit integers, else 32-bit floats

    @staticmethod
    def of(row: Samples) -> "RowFormat":
        return RowFormat(len(row), is_pcm(row))

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(np.int16 if self.is_pcm else np.float32)

    @property
    def n_bytes(self) -> int:
        return -(-self.n_samples * self.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT


def write_samples(rows: Sequence[Samples]) -> int:
    """Write the rows one after the other into new shared memory; return its descriptor."""
    descriptor = _unnamed_file()
    try:
        for row in rows:
            format = RowFormat.of(row)
            data = np.ascontiguousarray(row, format.dtype).view(np.uint8).data
            n_padding = format.n_bytes - len(data)
            while data:
                data = data[os.write(descriptor, data) :]
            if n_padding:
                os.write(descriptor, bytes(n_padding))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def map_samples(descriptor: int, formats: Sequence[RowFormat]) -> list[Samples]:
    """Map the rows without a copy; the memory is freed when the last of them is collected."""
    total = sum(format.n_bytes for format in formats)
    memory = SharedMemory.of(descriptor, total) if total else b""
    rows: list[Samples] = []
    start = 0
    for format in formats:
        n = format.n_samples
        rows.append(np.frombuffer(memory, format.dtype, n, start) if n else np.zeros(0, format.dtype))
        start += format.n_bytes
    return rows


def _unnamed_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("tutti")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
