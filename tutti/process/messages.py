"""Messages as bytes of a stream between two processes of this package: each pickled, after its length."""

import os
import pickle
import socket
from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from tutti.process.shared_memory import DESCRIPTOR, SharedPlace, read_shared, shared_place

_HEADER = Struct("<IIq")  # bytes of the pickle, and of its samples; where those lie in a shared file, or one of these
BEHIND = -1  # the samples follow the pickle
WITH_DESCRIPTOR = -2  # there are none, but a descriptor
WITHOUT_DESCRIPTOR = -3  # the same, but it could not be sent
LOST = -1  # instead of a descriptor that cannot be sent

Parts = list[bytes | memoryview]


class PackedMessage(NamedTuple):
    """A message in bytes: its pickle, its samples, and where they lie if both ends can read them there."""

    body: bytes
    samples: list[memoryview]
    place: SharedPlace | None = None
    carried: int | None = None  # a descriptor that goes with it

    @property
    def descriptor(self) -> bytes | None:
        """What goes with the first byte, if anything does, as a socket sends it."""
        if self.carried is not None:
            return None if self.carried == LOST else DESCRIPTOR.pack(self.carried)
        return None if self.place is None else self.place.packed

    @property
    def parts(self) -> Parts:
        """What is sent: all of it, or without the samples, if the descriptor of their place comes with it."""
        n_samples = sum(map(len, self.samples))
        if self.carried is not None:
            kind = WITHOUT_DESCRIPTOR if self.carried == LOST else WITH_DESCRIPTOR
            return [_HEADER.pack(len(self.body), 0, kind), self.body]
        if self.place is None:
            return [_HEADER.pack(len(self.body), n_samples, BEHIND), self.body, *self.samples]
        return [_HEADER.pack(len(self.body), n_samples, self.place.offset), self.body]


class WithDescriptor(NamedTuple):
    """A message that came with a descriptor, which its receiver closes; none: this process has too many open files."""

    message: Any
    descriptor: int | None


def pack(message: object, *, share: bool = False, carried: int | None = None) -> PackedMessage:
    """A message in bytes: samples in it stay as they lie in memory, without a copy.

    `share`: samples in shared memory are not sent, but their descriptor. `carried`: a descriptor that goes with the
    message, which then carries nothing else. Of several arrays all but the first are copied.
    """
    buffers: list[pickle.PickleBuffer] = []

    def is_copied(buffer: pickle.PickleBuffer) -> bool:
        if buffers or carried is not None:
            return True
        buffers.append(buffer)
        return False

    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=is_copied)
    samples = [buffer.raw() for buffer in buffers]
    values = samples[0].obj if share and samples and samples[0] else None
    place = shared_place(values) if isinstance(values, np.ndarray) else None
    return PackedMessage(body, samples, place, carried)


class MessageReader:
    """Turns bytes, as they arrive, into messages. They are unpickled: read only what this package has sent."""

    def __init__(self) -> None:
        self._unread = bytearray()
        # That arrived, in the order of the messages that need them; none: one was lost on its way.
        self._descriptors: deque[int | None] = deque()

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
                if offset in (WITH_DESCRIPTOR, WITHOUT_DESCRIPTOR):
                    descriptor = self._next_descriptor() if offset == WITH_DESCRIPTOR else None
                    messages.append(WithDescriptor(pickle.loads(unread[body_at:end]), descriptor))
                    start = end
                    continue
                # Empty samples are sent like others, so that there is always a buffer to ask for.
                samples = bytes(unread[samples_at:end]) if offset == BEHIND else self._shared(n_samples, offset)
                messages.append(pickle.loads(unread[body_at:samples_at], buffers=[samples]))
                start = end
        del self._unread[:start]
        return messages

    def take_descriptors(self, ancillary: Iterable[tuple[int, int, bytes]], flags: int) -> None:
        """Keep the descriptors that came with some bytes, before those are fed."""
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._descriptors += (number for (number,) in DESCRIPTOR.iter_unpack(data))
        if flags & socket.MSG_CTRUNC:  # each read ends at a descriptor, so it was the only one
            self._descriptors.append(None)

    def close(self) -> None:
        """Close the descriptors of messages that will not come."""
        while self._descriptors:
            close_descriptor(self._descriptors.popleft())

    def _next_descriptor(self) -> int | None:
        return self._descriptors.popleft() if self._descriptors else None

    def _shared(self, n_bytes: int, offset: int) -> bytes:
        descriptor = self._next_descriptor()
        if descriptor is None:
            raise OSError("a descriptor did not arrive: this process has too many open files")
        return read_shared(descriptor, n_bytes, offset)


def close_descriptor(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
