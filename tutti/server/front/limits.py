"""What of a request has arrived and what of its answer is unsent, with the limits on bytes and on time."""

import re
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from math import inf

from tutti.errors import InvalidInput, TuttiError

MAX_HEAD = 1 << 14  # bytes of a head, and of what comes without a byte of its body: trailers, extensions of chunks
MIN_BYTES_PER_S = 1024.0  # a request must arrive at least this fast, after the first `idle_s` seconds
# A reader may pause for this many times `idle_s`: players stop reading while their buffer is full.
READ_STALL_FACTOR = 6
CHECKS = 10  # of each limit within `idle_s`: a connection is cut at most a tenth of that late

_NO_METHOD = re.compile(rb"[^A-Z\r\n]")  # no HTTP, whose end need not be awaited
_OTHER_VERSION = re.compile(rb"[^\n]* HTTP/(?!1\.[01]\r?\n)[0-9]")
# The parser would take what follows for another protocol. Clients that offer HTTP/2 go on with HTTP/1.1.
_OTHER_UPGRADE = re.compile(rb"\r\nupgrade:(?![\t ]*websocket[\t ]*\r\n)[^\n]*(?=\r\n)", re.IGNORECASE)


class _HeadTooLong(TuttiError):
    status, code = 431, "head_too_long"


class _OtherVersion(TuttiError):
    status, code = 505, "http_version_not_supported"


class Arriving:
    """The requests of a connection, as their bytes arrive."""

    def __init__(self, now: float) -> None:
        self.n_left = 0.0  # bytes of the body that have not arrived; of one in chunks infinite
        self._head = b""  # until its end has arrived
        self._n_empty = 0  # bytes since the last one of the body, if it comes in chunks
        self._started_s, self._n_bytes = now, 0  # when the request began to arrive, and its bytes so far

    def count(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes

    def take_head(self, data: bytes, now: float) -> tuple[bytes, bytes]:
        """Take the head of a request; return it and what comes after it, both empty until its end has arrived."""
        if not self._head:
            self._started_s, self._n_bytes = now, len(data)
        self._head += data
        n_bytes = _end_of_head(self._head, max(0, len(self._head) - len(data) - 3))
        if (n_bytes or len(self._head)) > MAX_HEAD:
            raise _HeadTooLong(f"the head of a request may have {MAX_HEAD:,} bytes")
        if n_bytes == 0:
            return b"", b""
        head, rest, self._head = self._head[:n_bytes], self._head[n_bytes:], b""
        return head, rest

    def take_body(self, data: bytes) -> bytes:
        """Take as much of the body as the parser gets at once. What comes in chunks may be the next request already."""
        if self.n_left < inf:
            part = data[: int(self.n_left)]
            self.n_left -= len(part)
        else:
            part = data[:MAX_HEAD]
            self._n_empty += len(part)
        return part

    def head_ended(self, n_left: float) -> None:
        """The body has so many bytes; in chunks infinitely many."""
        self.n_left, self._n_empty = n_left, 0

    def body_came(self) -> None:
        """Some of the body was among what the parser got."""
        self._n_empty = 0

    def body_ended(self) -> None:
        self.n_left, self._n_empty = 0, 0

    def check_trailers(self) -> None:
        if self._n_empty > 2 * MAX_HEAD:
            raise _HeadTooLong(f"the trailers of a request may have {MAX_HEAD:,} bytes")

    def is_late(self, now: float, idle_s: float) -> bool:
        """Whether all of it should have arrived."""
        return now > self._started_s + idle_s + self._n_bytes / MIN_BYTES_PER_S


class Unsent:
    """What a client has not read of its answers."""

    def __init__(self) -> None:
        self._n_bytes, self._since_s = 0, 0.0

    def is_stalled(self, n_bytes: int, now: float, allowed_s: float) -> bool:
        """Whether it has read nothing for so long, if so many bytes are unsent now."""
        if n_bytes == 0 or n_bytes != self._n_bytes:
            self._n_bytes, self._since_s = n_bytes, now
            return False
        return now > self._since_s + allowed_s


class Watch:
    """Looks at a connection again and again, and cuts it when its client is too slow."""

    def __init__(
        self, loop: AbstractEventLoop, idle_s: float, is_slow: Callable[[float], bool], cut: Callable[[], None]
    ) -> None:
        self._loop, self._pause_s, self._is_slow, self._cut = loop, idle_s / CHECKS, is_slow, cut
        self._look_later()

    def end(self) -> None:
        self._timer.cancel()

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._pause_s, self._look)

    def _look(self) -> None:
        if self._is_slow(self._loop.time()):
            self._cut()
        else:
            self._look_later()


def body_length(version: str, headers: Sequence[tuple[bytes, bytes]]) -> float:
    """The length of a body, infinite if it comes in chunks; raise if it, or the host, is not certain."""
    names = [name for name, _ in headers]
    n_hosts, n_codings = names.count(b"host"), names.count(b"transfer-encoding")
    is_whole = (version == "1.1" and n_hosts == 1) or (version == "1.0" and n_hosts <= 1 and not n_codings)
    if not is_whole or n_codings > 1:
        raise InvalidInput("this is not HTTP/1.1")
    values = dict(headers)  # the parser refuses two lengths, and one beside chunks
    if n_codings and values[b"transfer-encoding"].strip().lower() != b"chunked":
        raise InvalidInput("the body of a request may have no other transfer coding than chunked")
    return inf if n_codings else int(values.get(b"content-length", 0))


def parsable(head: bytes) -> bytes:
    """The head without offers of other protocols; raise if it is of another version."""
    if _OTHER_VERSION.match(head):
        raise _OtherVersion("this server speaks HTTP/1.1")
    return _OTHER_UPGRADE.sub(b"", head) if b"pgrade" in head.lower() else head


def _end_of_head(data: bytes, start: int) -> int:
    """How many bytes the head has at the start of this data; 0 if it goes on, which is known of all before `start`."""
    if _NO_METHOD.match(data):
        return len(data)
    ends = [at + len(end) for end in (b"\n\r\n", b"\n\n") if (at := data.find(end, start)) >= 0]
    return min(ends, default=0)
