"""Limits on the body of a request: its bytes as they arrive, and the structure of its JSON before it is parsed."""

from collections.abc import Mapping

from starlette.types import Message, Receive

from tutti.errors import InvalidInput, TuttiError
from tutti.server.errors import NotJson

MAX_JSON_MARKS = 50_000  # brackets and commas of one body or message; a microsecond of parsing for each
MAX_JSON_DEPTH = 32
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{},'))


def refuse_compressed(headers: Mapping[str, str]) -> None:
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise NotJson("send the body uncompressed: Content-Encoding is not supported")


def check_json(text: bytes) -> None:
    """Raise if parsing this JSON would block the event loop. It need not be valid JSON; a long text in it is fine."""
    if text.count(b"[") + text.count(b"{") <= MAX_JSON_DEPTH and text.count(b",") <= MAX_JSON_MARKS:
        return
    too_many = InvalidInput(f"the JSON has too many values: more than {MAX_JSON_MARKS:,} brackets and commas")
    marks = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NOT_STRUCTURE)
    if marks.count(b'"') > 4 * MAX_JSON_MARKS:  # two for each string, and a key is one, too
        raise too_many
    structure = b"".join(marks.split(b'"')[::2])  # outside of strings
    if len(structure) > MAX_JSON_MARKS:
        raise too_many
    depth = 0
    for mark in structure.translate(None, b","):
        depth += 1 if mark in b"[{" else -1
        if depth > MAX_JSON_DEPTH:
            raise InvalidInput(f"the JSON is nested more than {MAX_JSON_DEPTH} deep")


class BodyReceiver:
    """Passes the parts of a body on, and knows whether its end has arrived."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def discard(self, max_bytes: int) -> None:
        """Read and drop the rest, but at most about so much."""
        n_bytes = 0
        while not self.ended and n_bytes <= max_bytes:
            n_bytes += len((await self()).get("body", b""))


def limit_body(receive: Receive, max_bytes: int, error: TuttiError) -> Receive:
    """Wrap `receive` so that it raises `error` as soon as the body exceeds `max_bytes`."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > max_bytes:
            raise error
        return message

    return limited


async def read_body(receive: Receive) -> bytes | None:
    """Read the whole body; None if the client disconnected before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Wrap `receive` so that it first returns `body`, which was read before."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
