"""HTTP as bytes: answers are read as a strict client reads them, so that one in the middle of another is an error."""

import socket
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class RawAnswer:
    status: int
    headers: dict[str, str]
    body: bytes


def request_bytes(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    lines = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        lines |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    head = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]
    return "\r\n".join(head).encode() + body


def read_all(sock: socket.socket) -> bytes:
    """All that arrives until the connection ends."""
    data = bytearray()
    with suppress(ConnectionResetError):
        while part := sock.recv(1 << 16):
            data += part
    return bytes(data)


def read_answers(data: bytes) -> list[RawAnswer]:
    """The answers in what a connection has sent; raises ValueError unless it is whole answers and nothing else."""
    found = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        version, status = line.split(" ")[:2]
        if not end or version != "HTTP/1.1":
            raise ValueError(f"this is no answer: {head[:100]!r}")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = b""
        if "content-length" in headers:
            n_bytes = int(headers["content-length"])
            body, data = data[:n_bytes], data[n_bytes:]
            if len(body) < n_bytes:
                raise ValueError(f"an answer ends {n_bytes - len(body)} bytes early")
        elif headers.get("transfer-encoding") == "chunked":
            body, data = _unchunked(data)
        found.append(RawAnswer(int(status), headers, body))
    return found


def _unchunked(data: bytes) -> tuple[bytes, bytes]:
    """The body of a chunked answer, and what follows it."""
    body = bytearray()
    while True:
        line, _, data = data.partition(b"\r\n")
        n_bytes = int(line, 16)
        body += data[:n_bytes]
        if data[n_bytes : n_bytes + 2] != b"\r\n":
            raise ValueError(f"a chunk does not end: {data[n_bytes : n_bytes + 40]!r}")
        data = data[n_bytes + 2 :]
        if not n_bytes:
            return bytes(body), data
