"""Messages as bytes of a stream between two processes of this package: each pickled, after its length."""

import os
import pickle
import socket
from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from tutti.shared_memory import DESCRIPTOR, SharedPlace, read_shared, shared_place

_HEADER = Struct("<IIq")  # bytes of the pickle, and of its samples; where those lie in a shared file, or one of these
BEHIND = -1  # the samples follow the pickle
WITH_SOCKET = -2  # there are none, but a socket

Parts = list[bytes | memoryview]


class PackedMessage(NamedTuple):
    """A message in bytes: its pickle, its samples, and where they lie if both ends can read them there."""

    body: bytes
    samples: list[memoryview]
    place: SharedPlace | None = None
    carried: socket.socket | None = None  # goes with it

    @property
    def descriptor(self) -> bytes | None:
        """What goes with the first byte, if anything does, as a socket sends it."""
        if self.carried is not None:
            return DESCRIPTOR.pack(self.carried.fileno())
        return None if self.place is None else self.place.packed

    @property
    def parts(self) -> Parts:
        """What is sent: all of it, or without the samples, if the descriptor of their place comes with it."""
        n_samples = sum(map(len, self.samples))
        if self.carried is not None:
            return [_HEADER.pack(len(self.body), 0, WITH_SOCKET), self.body]
        if self.place is None:
            return [_HEADER.pack(len(self.body), n_samples, BEHIND), self.body, *self.samples]
        return [_HEADER.pack(len(self.body), n_samples, self.place.offset), self.body]


class WithSocket(NamedTuple):
    """A message that came with a socket; none: this process has no descriptor left for it."""

    message: Any
    descriptor: int | None


def pack(message: object, *, share: bool = False) -> PackedMessage:
    """A message in bytes: samples in it stay as they lie in memory, without a copy.

    `share`: samples in shared memory are not sent, but their descriptor.
    """
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    assert len(buffers) <= 1, "a message has the samples of one speech"
    samples = [buffer.raw() for buffer in buffers]
    values = samples[0].obj if share and samples and samples[0] else None
    return PackedMessage(body, samples, shared_place(values) if isinstance(values, np.ndarray) else None)


class MessageReader:
    """Turns bytes, as they arrive, into messages. They are unpickled: read only what this package has sent."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._descriptors: deque[int] = deque()  # that arrived, in the order of the messages that need them

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes; a part of one is kept until the rest is there."""
        self._unread += data
        messages, start = [], 0
        with memoryview(self._unread) as unread:
            while len(unread) - start >= _HEADER.size:
                n_body, n_samples, offset = _HEADER.unpack_from(unread, start)
                body_at = start + _HEADER.size
                samples_at = body_at + n_body
                end = samples_at + (n_samples if offset == BEHIND else 0)
                if len(unread) < end:
                    break
                if offset == WITH_SOCKET:
                    descriptor = self._descriptors.popleft() if self._descriptors else None
                    messages.append(WithSocket(pickle.loads(unread[body_at:end]), descriptor))
                    start = end
                    continue
                # Empty samples are sent like others, so that there is always a buffer to ask for.
                samples = bytes(unread[samples_at:end]) if offset == BEHIND else self._shared(n_samples, offset)
                messages.append(pickle.loads(unread[body_at:samples_at], buffers=[samples]))
                start = end
        del self._unread[:start]
        return messages

    def take_descriptors(self, ancillary: Iterable[tuple[int, int, bytes]]) -> None:
        """Keep the descriptors that came with some bytes, before those are fed."""
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._descriptors += (number for (number,) in DESCRIPTOR.iter_unpack(data))

    def close(self) -> None:
        """Close the descriptors of messages that will not come."""
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def _shared(self, n_bytes: int, offset: int) -> bytes:
        if not self._descriptors:
            raise OSError("a descriptor did not arrive: this process has too many open files")
        return read_shared(self._descriptors.popleft(), n_bytes, offset)
