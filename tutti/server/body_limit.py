"""Limits on the body of a request: count it as it arrives, and hand a body that was read on to the application."""

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from tutti.errors import TuttiError
from tutti.server.errors import NotJson


def refuse_compressed(headers: Headers) -> None:
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise NotJson("send the body uncompressed: Content-Encoding is not supported")


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
