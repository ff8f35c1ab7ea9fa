"""A server that answers as scripted: complete, broken, late, or with an error."""

import base64
import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[[socket.socket], bool]  # answers one request; returns whether the connection stays open


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that the server received."""

    line: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int


@dataclass
class FaultServer:
    url: str
    script: list[Answer] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)


def head(status: int, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} x", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def respond(data: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(sock: socket.socket) -> bool:
        sock.sendall(head(status, content_length=str(len(data)), **headers) + data)
        return True

    return answer


def refuse(status: int, code: str, **headers: str) -> Answer:
    body = {"error": {"message": f"no: {code}", "type": "x", "param": None, "code": code}, "detail": {"message": "no"}}
    return respond(json.dumps(body).encode(), status, content_type="application/json", **headers)


def stream(*parts: bytes, ends: bool = True, between: Callable[[], object] = lambda: None, **headers: str) -> Answer:
    """Send chunk after chunk; without `ends` the connection breaks after the last."""

    def answer(sock: socket.socket) -> bool:
        sock.sendall(head(200, transfer_encoding="chunked", **{"content_type": "audio/pcm", **headers}))
        for n, part in enumerate(parts):
            if n:
                between()
            sock.sendall(chunk(part))
        if ends:
            sock.sendall(b"0\r\n\r\n")
        return ends

    return answer


def events(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def delta(pcm: bytes) -> dict[str, Any]:
    return {"type": "speech.audio.delta", "audio": base64.b64encode(pcm).decode()}


def reset(sock: socket.socket) -> bool:
    """Close the connection with a TCP reset and no response."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


@contextmanager
def fault_server() -> Iterator[FaultServer]:
    connections = iter(range(1, 1000))
    lock = threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            number = next(connections)
            while request := self.read(number):
                with lock:
                    served.requests.append(request)
                    answer = served.script.pop(0) if served.script else refuse(400, "script_over")
                try:
                    if not answer(self.request):
                        return
                except OSError:
                    return  # the client left

        def read(self, number: int) -> ReceivedRequest | None:
            try:
                line = self.rfile.readline().decode().strip()
            except OSError:
                return None
            if not line:
                return None
            headers = {}
            while field := self.rfile.readline().decode().strip():
                name, _, value = field.partition(":")
                headers[name.lower()] = value.strip()
            body = self.rfile.read(int(headers.get("content-length", "0")))
            return ReceivedRequest(line, headers, json.loads(body) if body else {}, number)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        served = FaultServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
