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
from math import ceil
from typing import NamedTuple

import numpy as np

from tutti.process.shared_memory import SharedMemory
from tutti.speech import Samples, is_pcm

_HEADER_BYTES = 8
_ALIGNMENT = 4  # bytes, of each row in shared memory


class Channel:
    """One end: any thread may send, one receives. Both ends run this package, so messages may be pickled."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._send_lock = threading.Lock()
        end.set_inheritable(False)
        # Calls wait for it by themselves: a timeout of the socket would hold for those of other threads, too.
        end.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: object, descriptor: int | None = None, timeout_s: float | None = None) -> None:
        """Raises TimeoutError when the other end does not read, OSError when it is closed.

        After a TimeoutError in the middle of a message the channel is shut down: the rest can no longer be told from
        the next one.
        """
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        rest = memoryview(len(body).to_bytes(_HEADER_BYTES, "little") + body)
        n_bytes = len(rest)
        with self._send_lock:
            deadline_s = _deadline_s(timeout_s)
            while rest:
                try:
                    if descriptor is None or len(rest) < n_bytes:  # it goes with the first bytes
                        rest = rest[self._socket.send(rest) :]
                    else:
                        rest = rest[socket.send_fds(self._socket, [rest], [descriptor]) :]
                except BlockingIOError:
                    if not self._is_ready(select.POLLOUT, deadline_s):
                        if len(rest) < n_bytes:
                            self.shut_down()
                        raise TimeoutError("the other end does not read") from None

    def receive(self, timeout_s: float | None = None) -> tuple[object, int | None]:
        """The next message and its descriptor, which the caller must close; EOFError when the other end is closed."""
        deadline_s = _deadline_s(timeout_s)
        header, descriptors = b"", list[int]()
        while len(header) < _HEADER_BYTES:
            self._wait_for_bytes(deadline_s)
            part, part_descriptors, _, _ = socket.recv_fds(self._socket, _HEADER_BYTES - len(header), 1)
            if not part:
                raise EOFError("the other end is closed")
            header, descriptors = header + part, descriptors + part_descriptors
        body = memoryview(bytearray(int.from_bytes(header, "little")))
        rest = body
        while rest:
            self._wait_for_bytes(deadline_s)
            n_bytes = self._socket.recv_into(rest)
            if not n_bytes:
                raise EOFError("the other end is closed")
            rest = rest[n_bytes:]
        return pickle.loads(body), descriptors[0] if descriptors else None

    def readable(self) -> bool:
        """Whether a message waits to be received."""
        return self._is_ready(select.POLLIN, 0.0)

    def has_room(self) -> bool:
        """Whether a message of some kilobytes can be sent without waiting; only Linux promises it."""
        return self._is_ready(select.POLLOUT, 0.0)

    def shut_down(self) -> None:
        """End the hand-over for both ends: whoever receives gets an EOFError."""
        with suppress(OSError):  # the other end has done it
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _wait_for_bytes(self, deadline_s: float | None) -> None:
        if not self._is_ready(select.POLLIN, deadline_s):
            raise TimeoutError("the other end does not send")

    def _is_ready(self, event: int, deadline_s: float | None) -> bool:
        """Wait until the socket can be used, or has failed; False if that takes too long."""
        poll = select.poll()
        poll.register(self._socket, event)
        left_s = None if deadline_s is None else max(deadline_s - time.monotonic(), 0.0)
        return bool(poll.poll(None if left_s is None else ceil(1000 * left_s)))


def _deadline_s(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else time.monotonic() + timeout_s


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
