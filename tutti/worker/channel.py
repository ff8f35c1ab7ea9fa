"""Hand-over between two processes: messages over a socket, samples through shared memory.

The shared memory has no name, only a descriptor that travels with a message. The system frees it when the last process
that maps it has released it or died, so nothing is left behind, and the small /dev/shm of a container is no limit.
"""

import os
import pickle
import select
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from tutti.shared_memory import SharedMemory
from tutti.speech import Samples, is_pcm

_HEADER_BYTES = 8
_ALIGNMENT = 4  # bytes, of each row in shared memory


class Channel:
    """One end: any thread may send, one receives. Both ends run this package, so messages may be pickled."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._send_lock = threading.Lock()
        end.set_inheritable(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: object, descriptor: int | None = None, timeout_s: float | None = None) -> None:
        """Raises TimeoutError when the other end does not read, OSError when it is closed."""
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        header = len(body).to_bytes(_HEADER_BYTES, "little")
        with self._send_lock:
            self._socket.settimeout(timeout_s)
            data = memoryview(header + body)
            sent = socket.send_fds(self._socket, [data], [descriptor]) if descriptor is not None else 0
            self._socket.sendall(data[sent:])

    def receive(self, timeout_s: float | None = None) -> tuple[object, int | None]:
        """The next message and its descriptor, which the caller must close; EOFError when the other end is closed."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        header, descriptors = b"", list[int]()
        while len(header) < _HEADER_BYTES:
            self._set_timeout(deadline_s)
            part, part_descriptors, _, _ = socket.recv_fds(self._socket, _HEADER_BYTES - len(header), 1)
            if not part:
                raise EOFError("the other end is closed")
            header, descriptors = header + part, descriptors + part_descriptors
        body = memoryview(bytearray(int.from_bytes(header, "little")))
        rest = body
        while rest:
            self._set_timeout(deadline_s)
            n_bytes = self._socket.recv_into(rest)
            if not n_bytes:
                raise EOFError("the other end is closed")
            rest = rest[n_bytes:]
        return pickle.loads(body), descriptors[0] if descriptors else None

    def readable(self) -> bool:
        """Whether a message waits to be received."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def shut_down(self) -> None:
        """End the hand-over for both ends: whoever receives gets an EOFError."""
        with suppress(OSError):  # the other end has done it
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _set_timeout(self, deadline_s: float | None) -> None:
        self._socket.settimeout(None if deadline_s is None else max(deadline_s - time.monotonic(), 1e-3))


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
            rest = np.ascontiguousarray(row, format.dtype).view(np.uint8).data
            n_padding = format.n_bytes - len(rest)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
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
