"""Messages as bytes of a stream between two processes of this package: each pickled, after its length."""

import pickle
from struct import Struct
from typing import Any

_HEADER = Struct("<II")  # bytes of the pickle, and of the samples behind it


def pack(message: object) -> list[bytes | memoryview]:
    """The bytes of a message, in parts: samples in it are sent as they lie in memory, without a copy."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    samples = [buffer.raw() for buffer in buffers]
    assert len(samples) <= 1, "a message has the samples of one speech"
    return [_HEADER.pack(len(body), sum(map(len, samples))), body, *samples]


class MessageReader:
    """Turns bytes, as they arrive, into messages. They are unpickled: read only what this package has sent."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes; a part of one is kept until the rest is there."""
        self._unread += data
        messages, start = [], 0
        with memoryview(self._unread) as unread:
            while len(unread) - start >= _HEADER.size:
                n_body, n_samples = _HEADER.unpack_from(unread, start)
                body_at = start + _HEADER.size
                samples_at = body_at + n_body
                end = samples_at + n_samples
                if len(unread) < end:
                    break
                samples = bytes(unread[samples_at:end])  # empty ones are sent like others, so one may be asked for
                messages.append(pickle.loads(unread[body_at:samples_at], buffers=[samples]))
                start = end
        del self._unread[:start]
        return messages
