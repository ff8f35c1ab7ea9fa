"""A line between two processes: whole messages over a socket, each with at most one descriptor beside it."""

import pickle
import select
import socket
import threading
import time

_HEADER_BYTES = 8


class Channel:
    """One end: any thread may send, one receives. Both ends are our own code, so messages may be pickled."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()
        end.set_inheritable(False)

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: object, descriptor: int | None = None, timeout_s: float | None = None) -> None:
        """Raises TimeoutError when the other end does not read, OSError when it is gone."""
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        header = len(body).to_bytes(_HEADER_BYTES, "little")
        with self._sending:
            self._end.settimeout(timeout_s)
            sent = socket.send_fds(self._end, [header], [descriptor]) if descriptor is not None else 0
            self._end.sendall(header[sent:] + body)

    def receive(self, timeout_s: float | None = None) -> tuple[object, int | None]:
        """The next message and its descriptor, which is the caller's to close; EOFError when the other end is gone."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        header, descriptors = b"", list[int]()
        while len(header) < _HEADER_BYTES:
            self._wait_at_most(until_s)
            part, came, _flags, _address = socket.recv_fds(self._end, _HEADER_BYTES - len(header), 1)
            if not part:
                raise EOFError("the other end is gone")
            header, descriptors = header + part, descriptors + came
        body = memoryview(bytearray(int.from_bytes(header, "little")))
        left = body
        while left:
            self._wait_at_most(until_s)
            n = self._end.recv_into(left)
            if not n:
                raise EOFError("the other end is gone")
            left = left[n:]
        return pickle.loads(body), descriptors[0] if descriptors else None

    def more(self) -> bool:
        """Whether something has come that was not received yet."""
        return bool(select.select([self._end], [], [], 0)[0])

    def close(self) -> None:
        self._end.close()

    def _wait_at_most(self, until_s: float | None) -> None:
        self._end.settimeout(None if until_s is None else max(until_s - time.monotonic(), 1e-3))
