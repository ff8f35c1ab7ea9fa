"""The worst that one client can do with its connections: HTTP, WebSockets and Wyoming events as they go over the wire.

Inputs for loop_hold and bystander; `hostile` has those that are texts and fields.
"""

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx2

from benchmarks.hostile import MAX_BODY, Hostile, Send, form, long_texts, messages, pad, post, wyoming_event
from tests.faults.limited_server import LimitedServer

SPEECH, LIVE, REALTIME = "/v1/audio/speech", "/v1/audio/speech/stream", "/v1/realtime"
ANSWER_S = 10.0  # for which an answer is waited for
TEXT_FRAME, CONTINUED, PING = 1, 0, 9  # opcodes of WebSocket frames
FINAL = 0x80


def raw(*parts: bytes, n_read: int = 20_000) -> Send:
    """Send bytes, and read the status of the answer."""

    def send(server: LimitedServer) -> str:
        with suppress(OSError), socket.create_connection(server.host_port, timeout=ANSWER_S) as sock:
            with suppress(OSError):
                for part in parts:
                    sock.sendall(part)
            answer = sock.recv(n_read)
            return answer.split(b" ", 2)[1].decode() if answer else "closed"
        return "closed"

    return send


def request(head: str, body: bytes = b"", path: str = SPEECH, method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{head}\r\n".encode() + body


def frame(opcode: int, data: bytes = b"", *, final: bool = True) -> bytes:
    """A masked WebSocket frame; the mask is zero."""
    length = bytes([FINAL | len(data)]) if len(data) < 126 else bytes([FINAL | 127]) + struct.pack(">Q", len(data))
    return bytes([(FINAL if final else 0) | opcode]) + length + bytes(4) + data


def frames(path: str, data: bytes, *, answer: bool = True) -> Send:
    """Send frames over a WebSocket without reading, then read what comes first."""

    def send(server: LimitedServer) -> str:
        with suppress(OSError), socket.create_connection(server.host_port, timeout=ANSWER_S) as sock:
            head = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            sock.sendall(request(head + f"Sec-WebSocket-Key: {'A' * 22}==\r\n", path=path, method="GET"))
            status = sock.recv(4096).split(b" ", 2)[1].decode()
            sock.settimeout(1.0)
            with suppress(OSError):
                sock.sendall(data)
                if answer:
                    sock.recv(4096)
            return status
        return "closed"

    return send


def events(data: bytes, *, read: bool = True) -> Send:
    """Send Wyoming events, and read some of the answers."""

    def send(server: LimitedServer) -> str:
        address, n_bytes = ("127.0.0.1", server.wyoming_port), 0
        with suppress(OSError), socket.create_connection(address, timeout=1.0) as sock:
            sending = threading.Thread(target=_send_all, args=(sock, data), daemon=True)
            sending.start()
            with suppress(OSError):
                while read and n_bytes < 1_000_000 and (part := sock.recv(65_536)):
                    n_bytes += len(part)
            sending.join(ANSWER_S)
        return f"{n_bytes} bytes"

    return send


def _send_all(sock: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        sock.sendall(data)


def at_once(n: int, send: Send) -> Send:
    """The same from many connections at once."""

    def send_all(server: LimitedServer) -> str:
        answers: list[str] = []

        def one() -> None:
            with suppress(Exception):  # the connection may be refused or cut in any way
                answers.append(send(server))

        threads = [threading.Thread(target=one, daemon=True) for _ in range(n)]
        for thread in threads:
            thread.start()
        ends_s = time.monotonic() + 3 * ANSWER_S  # of all: streams that never end would add up
        for thread in threads:
            thread.join(max(0.0, ends_s - time.monotonic()))
        return ",".join(sorted(set(answers)))[:39]

    return send_all


def again_and_again(n: int, method: str, path: str, **options: Any) -> Send:
    """One request after the other over one connection."""

    def send(server: LimitedServer) -> str:
        with httpx2.Client(base_url=server.url, timeout=60) as client:
            return ",".join(sorted({str(client.request(method, path, **options).status_code) for _ in range(n)}))

    return send


def varied(n: int, body: Callable[[], dict[str, Any]]) -> Send:
    """Requests that all differ, one after the other."""

    def send(server: LimitedServer) -> str:
        with httpx2.Client(base_url=server.url, timeout=60) as client:
            return ",".join(sorted({str(client.post(SPEECH, json=body()).status_code) for _ in range(n)}))

    return send


def held(n: int, data: bytes) -> Send:
    """Connections that send something and stay open for a while."""

    def send(server: LimitedServer) -> str:
        with ExitStack() as stack, suppress(OSError):
            socks = [stack.enter_context(socket.create_connection(server.host_port, timeout=1)) for _ in range(n)]
            for sock in socks:
                sock.sendall(data)
            for sock in socks:
                with suppress(TimeoutError):
                    sock.recv(100)
        return "held"

    return send


def ranges(n: int) -> Send:
    """Many ranges of a stored download."""

    def send(server: LimitedServer) -> str:
        body = {"input": "deep", "response_format": "pcm", "return_download_link": True}
        path = httpx2.post(f"{server.url}{SPEECH}", json=body, timeout=60).headers.get("x-download-path", "/")
        value = "bytes=" + ",".join(f"{at}-{at}" for at in range(0, 2 * n, 2))
        return str(httpx2.get(f"{server.url}{path}", headers={"range": value}, timeout=60).status_code)

    return send


def connection_inputs() -> Iterator[Hostile]:
    yield from http_connections()
    yield from many_requests()
    yield from websocket_frames()
    yield from wyoming_floods()


def http_connections() -> Iterator[Hostile]:
    body = json.dumps({"input": "deep", "x": pad("a", 300_000)}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    chunked = request("Transfer-Encoding: chunked\r\n")
    yield Hostile(SPEECH, "300,000 chunks of one byte", raw(chunked + chunks))
    yield Hostile(
        "/v1/jobs", "300,000 chunks of one byte", raw(request("Transfer-Encoding: chunked\r\n", chunks, "/v1/jobs"))
    )
    yield Hostile(
        SPEECH, "a refused path, 300,000 chunks", raw(request("Transfer-Encoding: chunked\r\n", chunks, "/x"))
    )
    yield Hostile(SPEECH, "chunk extensions", raw(chunked + (b"1;" + b"a" * 9000 + b"\r\na\r\n") * 400 + b"0\r\n\r\n"))
    yield Hostile(SPEECH, "a chunk of 16 digits", raw(chunked + b"F" * 16 + b"\r\na"))
    yield Hostile(SPEECH, "10,000 trailers", raw(chunked + b"0\r\n" + b"a: b\r\n" * 10_000 + b"\r\n"))
    yield Hostile(
        "/healthz", "3,000 requests in one write", raw(request("", b"", "/healthz", "GET") * 3000, n_read=1 << 20)
    )
    yield Hostile(SPEECH, "9,000 headers", raw(request("a: b\r\n" * 9000)))
    yield Hostile(SPEECH, "60 kB of one header", raw(request(f"a: {'b' * 60_000}\r\n")))
    yield Hostile(SPEECH, "60 kB of commas in every header", raw(*many_commas()))
    yield Hostile(SPEECH, "a header without an end", raw(b"POST /v1/audio/speech HTTP/1.1\r\n" + b"a" * 2_000_000))
    yield Hostile(SPEECH, "two lengths", raw(request("Content-Length: 5\r\nContent-Length: 6\r\n", b"hello")))
    yield Hostile(SPEECH, "a length of 4,000 digits", raw(request(f"Content-Length: {'9' * 4000}\r\n", b"hello")))
    yield Hostile(
        SPEECH, "a length and chunks", raw(request("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"))
    )
    yield Hostile(SPEECH, "Expect for 4 GB", raw(request("Expect: 100-continue\r\nContent-Length: 4000000000\r\n")))
    yield Hostile("/v1/models", "a path of 60 kB", raw(request("", b"", "/v1/models/" + "a/%20" * 12_000, "GET")))
    yield Hostile(
        "/v1/text-to-speech", "a query of 60 kB", raw(request("", b"", "/v1/text-to-speech/x?" + "a&" * 30_000))
    )
    asked = f"Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: {'a,' * 25_000}\r\n"
    yield Hostile(SPEECH, "a preflight of 50 kB", raw(request(f"Origin: http://x\r\n{asked}", method="OPTIONS")))
    yield Hostile("/v1/download", "2,000 ranges", ranges(2000))
    for name, data in {
        "almost a boundary": b"\r\n--" + b"b" * 19 + b"c",
        "line ends": b"\r\n",
        "dashes": b"-",
    }.items():
        yield Hostile("/v1/jobs", f"20 MB of {name} in a form", multipart(data * (20_000_000 // len(data))))
    yield Hostile("/v1/jobs", "a form with a header of 4 MB", multipart_head(b"X: " + b"a" * MAX_BODY))
    yield Hostile("/v1/jobs", "a form of 100,000 fields", multipart(b"", 100_000))
    for encoding in ("punycode", "idna", "unicode_escape", "utf-7"):
        book = b"xn--" + b"a-9" * 300_000
        yield Hostile("/v1/jobs", f"a book in {encoding}", form("book.txt", book, encoding=encoding))


def many_commas() -> list[bytes]:
    names = ("Connection", "Accept", "X-Forwarded-For", "If-None-Match", "Cookie", "traceparent")
    return [request(f"{name}: {',' * 60_000}\r\nContent-Length: 2\r\n", b"{}") for name in names]


def multipart(content: bytes, n_fields: int = 1) -> Send:
    boundary = "b" * 20
    field = f'--{boundary}\r\nContent-Disposition: form-data; name="text"\r\n\r\n'.encode()
    body = (field + content + b"\r\n") * n_fields + f"--{boundary}--\r\n".encode()
    return post("/v1/jobs", content=body, **{"content-type": f"multipart/form-data; boundary={boundary}"})


def multipart_head(head: bytes) -> Send:
    body = b"--b\r\n" + head + b"\r\n\r\nx\r\n--b--\r\n"
    return post("/v1/jobs", content=body, **{"content-type": "multipart/form-data; boundary=b"})


def many_requests() -> Iterator[Hostile]:
    words, deep = long_texts()["words"], {"input": "deep", "response_format": "pcm"}
    for path in ("/metrics", "/openapi.json", "/v1/stats", "/v1/audio/voices", "/v1/voices", "/v1/jobs"):
        yield Hostile(path, "100 times", again_and_again(100, "GET", path))
    yield Hostile("/metrics", "50 connections", at_once(50, again_and_again(10, "GET", "/metrics")))
    yield Hostile("/v1/stats/stream", "100 watchers", held(100, request("", b"", "/v1/stats/stream", "GET")))
    yield Hostile("/dev/unload", "20 times", again_and_again(20, "POST", "/dev/unload"))
    yield Hostile("/test/batching", "at once", at_once(10, post("/test/batching", {})))
    yield Hostile("/v1/stats/trial", "at once", at_once(5, post("/v1/stats/trial", {"policy": "fifo"}, read_bytes=100)))
    stored = {**deep, "stream": False, "return_download_link": True}
    yield Hostile(SPEECH, "200 links to downloads", again_and_again(200, "POST", SPEECH, json=stored))
    for n, headers in ((64, {}), (64, {"x-request-timeout": "600"}), (64, {"x-stainless-lang": "x"})):
        name = f"{n} long streams at once {' '.join(headers)}".strip()
        yield Hostile(SPEECH, name, at_once(n, post(SPEECH, {**deep, "input": words}, **headers)))
    whole = {**deep, "input": pad("deep water ", 3000), "stream": False}
    for headers in ({}, {"x-request-timeout": "600"}):
        name = f"64 whole answers at once {' '.join(headers)}".strip()
        sends = [post(SPEECH, {**whole, "seed": n}, **headers) for n in range(64)]
        yield Hostile(SPEECH, name, at_once(64, lambda server, sends=sends: sends.pop()(server) if sends else "-"))
    yield Hostile(SPEECH, "200 times the same whole answer", at_once(200, post(SPEECH, whole)))
    yield Hostile(
        SPEECH,
        "times that are no numbers",
        again_and_again(20, "POST", SPEECH, json=deep, headers={"x-request-timeout": "nan"}),
    )
    yield Hostile(SPEECH, "100 blends of eight voices", varied(100, lambda: {**deep, "voice": random_blend()}))
    yield Hostile(
        SPEECH, "300 connections left at once", at_once(300, leave(request("Content-Length: 4000\r\n", b"{")))
    )


def random_blend() -> str:
    names = ("af_sky", "af_bella", "am_adam", "bf_emma", "bm_george", "af_nova", "am_echo", "af_kore")
    return "+".join(f"{name}({1 + byte / 10:.1f})" for name, byte in zip(names, os.urandom(8), strict=True))


def leave(data: bytes) -> Send:
    def send(server: LimitedServer) -> str:
        with socket.create_connection(server.host_port, timeout=ANSWER_S) as sock:
            sock.sendall(data)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return "left"

    return send


def websocket_frames() -> Iterator[Hostile]:
    texts = long_texts()
    for n_bytes in (0, 125):
        yield Hostile(
            LIVE, f"pings of {n_bytes} bytes", frames(LIVE, frame(PING, b"a" * n_bytes) * (2_000_000 // (6 + n_bytes)))
        )
    letters = json.dumps({"type": "input.text", "text": "deep. " * 2000}).encode()
    pieces = [
        frame(TEXT_FRAME, letters[:1], final=False),
        *(frame(CONTINUED, letters[n : n + 1], final=False) for n in range(1, len(letters))),
    ]
    yield Hostile(LIVE, "a message in 12,000 fragments", frames(LIVE, b"".join(pieces) + frame(CONTINUED)))
    empty = frame(TEXT_FRAME, b"{", final=False) + frame(CONTINUED, final=False) * 300_000
    yield Hostile(LIVE, "300,000 empty fragments", frames(LIVE, empty))
    flushed = [{"type": "input.text", "text": "a "}, {"type": "input.flush"}] * 2000
    yield Hostile(LIVE, "a flush after each letter", messages(LIVE, *flushed))
    begun = [{"type": "input.text", "text": "deep water. "}, {"type": "input.cancel"}] * 2000
    yield Hostile(LIVE, "2,000 texts begun and cancelled", messages(LIVE, *begun))
    contexts = [{"type": "input.text", "text": texts["words"][:100_000], "context": str(n)} for n in range(20)]
    yield Hostile(LIVE, "20 contexts at once", messages(LIVE, *contexts, n_answers=30))
    yield Hostile(
        LIVE, "a context of 49,000 items", messages(LIVE, {"type": "x", "context": [0] * 49_000}, n_answers=1)
    )
    yield Hostile(
        LIVE, "a context of 4 MB", messages(LIVE, {"type": "x", "context": pad("é", MAX_BODY // 2)}, n_answers=1)
    )
    yield Hostile(
        LIVE,
        "5,000 configurations",
        messages(LIVE, *[{"type": "session.config", "speed": 1.1}] * 5000, {"type": "x"}, n_answers=1),
    )
    yield Hostile(
        LIVE, "100 sockets", at_once(100, messages(LIVE, {"type": "input.text", "text": texts["words"][:10_000]}))
    )
    content = [{"type": "input_text", "text": pad("😀", 900_000)}]
    item = {"type": "message", "role": "user", "content": content}
    create = {"type": "conversation.item.create", "item": item}
    yield Hostile(REALTIME, "an item of emoji", messages(REALTIME, create, {"type": "response.create"}, n_answers=9))
    tiny = {"type": "conversation.item.create", "item": {"content": [{"text": ""}], "x": pad("é", MAX_BODY // 2 - 200)}}
    yield Hostile(REALTIME, "an item with 4 MB of something else", messages(REALTIME, tiny, n_answers=3))
    nothing = {"type": "conversation.item.create", "item": {"content": [{"text": ""}] * 9000}}
    yield Hostile(REALTIME, "an item of 9,000 texts", messages(REALTIME, nothing, n_answers=3))
    said = [{"content": [{"text": "deep"}]}]
    for name, value in {
        "metadata of 4 MB": pad("é", MAX_BODY // 2 - 200),
        "metadata of 49,000 items": [0] * 49_000,
    }.items():
        response = {"type": "response.create", "response": {"input": said, "metadata": value}}
        yield Hostile(REALTIME, name, messages(REALTIME, response, n_answers=9))
    yield Hostile(
        REALTIME,
        "an event_id of 4 MB",
        messages(REALTIME, {"type": "x", "event_id": pad("é", MAX_BODY // 2)}, n_answers=2),
    )
    aside = {"conversation": "none", "input": [{"content": [{"text": texts["words"][:100_000]}]}]}
    yield Hostile(
        REALTIME,
        "16 responses at once",
        messages(REALTIME, *[{"type": "response.create", "response": aside}] * 16, n_answers=60),
    )
    yield Hostile(REALTIME, "a model of 60 kB", frames(f"{REALTIME}?model={'a' * 60_000}", b""))


def wyoming_floods() -> Iterator[Hostile]:
    ping, describe = b'{"type": "ping"}\n', b'{"type": "describe"}\n'
    piece = wyoming_event("synthesize-chunk", {"text": "a"})
    start, stop = wyoming_event("synthesize-start", {}), wyoming_event("synthesize-stop", {})
    for name, data in {
        "20,000 pings": ping * 20_000,
        "2,000 descriptions": describe * 2000,
        "50,000 pieces of no text": piece * 50_000,
        "20,000 letters": start + piece * 20_000 + stop,
        "5,000 empty texts": (start + stop) * 5000,
        "20,000 unknown events": b'{"type": "x"}\n' * 20_000,
        "empty lines": b"\n" * 1000,
        "lengths below zero": b'{"type": "synthesize", "data_length": -1}\n',
        "a length of 1e400": b'{"type": "synthesize", "data_length": 1e400}\n',
    }.items():
        yield Hostile("wyoming", name, events(data))
    yield Hostile("wyoming", "20,000 pings, answers unread", events(ping * 20_000, read=False))
    yield Hostile("wyoming", "100 connections", at_once(100, events(describe * 5)))
