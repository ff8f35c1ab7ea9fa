"""Read the head of a request before h11 does, which takes much longer. Pure.

Only one that is plainly well-formed is read here: where it ends is then the same for everybody. Any other is h11's.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tutti.server.middleware.start_queue import is_stream

# Bytes of the head of a request, as long as h11 lets one be that is incomplete. One read may bring a complete head of
# a quarter of a megabyte, and h11 takes six microseconds for each of its forty thousand lines.
MAX_HEAD = 1 << 14
_HEAD = re.compile(rb"POST (/[!-~]*) HTTP/1\.1((?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*)+)")
# Headers that decide about the request, in lower case; each of them may be there once.
_NOTED = re.compile(
    rb"\n(host|content-length|transfer-encoding|connection|expect|origin|x-stainless-[^:]*|x-request-[^:]*):"
    rb"[\t ]*([^\r]*)"
)
_LENGTH = re.compile(rb"[0-9]{1,9}[\t ]*")
# A stream with any other noted header may wait longer, names its own id, or its answer has more headers.
_OF_ANY_STREAM = frozenset((b"host", b"content-length", b"connection"))
_VOICE_STREAM = re.compile(r"/v1/text-to-speech/[A-Za-z0-9_.-]+/stream")


class PlainRequest(NamedTuple):
    path: str
    noted: Mapping[bytes, bytes]
    body: bytes  # as far as it has arrived
    n_missing: int  # bytes of it; below zero if another request follows

    @property
    def stream_route(self) -> str | None:
        """The route, if it asks for a stream as any client may; its body must be complete."""
        if self.noted.keys() - _OF_ANY_STREAM or self.noted.get(b"connection", b"keep-alive") != b"keep-alive":
            return None
        if not is_stream(self.path, self.body):
            return None
        if self.path in ("/v1/audio/speech", "/tts/stream"):
            return self.path
        return "/v1/text-to-speech/{voice_id}/stream" if _VOICE_STREAM.fullmatch(self.path) else None


def plain_request(data: bytes) -> PlainRequest | None:
    """The POST request with a length that these bytes begin with; none if it is not plainly that."""
    end = data.find(b"\r\n\r\n", 0, MAX_HEAD)
    head = _HEAD.fullmatch(data, 0, end) if end > 0 else None
    if head is None:
        return None
    found = _NOTED.findall(head[2].lower())
    noted = dict(found)
    length = _LENGTH.fullmatch(noted.get(b"content-length", b""))
    if length is None or len(noted) < len(found) or b"host" not in noted:
        return None
    if b"transfer-encoding" in noted or b"expect" in noted:
        return None
    body = data[end + 4 :]
    return PlainRequest(head[1].decode(), noted, body, int(length[0]) - len(body))
