"""The worst that one client can send to each route within the limits of size, for loop_hold and bystander."""

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.audiobook.make_epub import epub, page
from tests.faults.limited_server import LimitedServer
from tutti.server.routes.dev import MAX_SYMBOLS

MAX_TEXT = 1_000_000
MAX_BODY = 4_000_000  # a little below the limit of 4 MiB
READ_BYTES = 300_000  # of an answer that is streamed; then the client leaves
ELEVENLABS = "/v1/text-to-speech/af_heart/stream"
LIVE_TEXTS = ("words", "one word", "no sentence end", "blank lines", "marks", "code fences", "SSML")
Send = Callable[[LimitedServer], str]


@dataclass(frozen=True)
class Hostile:
    """One input, and what it is sent to. `send` returns the status of the answer."""

    route: str
    name: str
    send: Send


def post(path: str, body: Any = None, content: bytes = b"", read_bytes: int = READ_BYTES, **headers: str) -> Send:
    """Send a body, and read some of the answer."""
    data = content or json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def send(server: LimitedServer) -> str:
        own = {"content-type": "application/json", **headers}
        with (
            httpx2.Client(base_url=server.url, timeout=120) as client,
            client.stream("POST", path, content=data, headers=own) as answer,
        ):
            n_bytes = 0
            for piece in answer.iter_raw():
                n_bytes += len(piece)
                if n_bytes > read_bytes:
                    break
            return str(answer.status_code)

    return send


def form(name: str, data: bytes, **fields: str) -> Send:
    def send(server: LimitedServer) -> str:
        files = {"file": (name, data)} if data else {"x": (None, "")}
        answer = httpx2.post(f"{server.url}/v1/jobs", files=files, data=fields, timeout=300)
        if answer.status_code == 201:
            httpx2.delete(f"{server.url}/v1/jobs/{answer.json()['id']}", timeout=300)
        return str(answer.status_code)

    return send


def job(body: dict[str, Any]) -> Send:
    def send(server: LimitedServer) -> str:
        answer = httpx2.post(f"{server.url}/v1/jobs", json=body, timeout=300)
        if answer.status_code == 201:
            httpx2.delete(f"{server.url}/v1/jobs/{answer.json()['id']}", timeout=300)
        return str(answer.status_code)

    return send


def messages(path: str, *sent: dict[str, Any] | str, n_answers: int = 3) -> Send:
    """Send messages over a WebSocket, and read a few answers."""

    def send(server: LimitedServer) -> str:
        last = "-"
        with suppress(ConnectionClosed, TimeoutError), connect(server.url.replace("http", "ws") + path, proxy=None,
                                                               max_size=None) as sock:  # fmt: skip
            for message in sent:
                sock.send(message if isinstance(message, str) else json.dumps(message, ensure_ascii=False))
            for _ in range(n_answers):
                answer = sock.recv(3)
                last = json.loads(answer).get("type", "-") if isinstance(answer, str) else "audio"
        return str(last)

    return send


def events(*sent: bytes) -> Send:
    """Send Wyoming events, and read what comes first."""

    def send(server: LimitedServer) -> str:
        address = "127.0.0.1", server.wyoming_port
        with suppress(OSError), socket.create_connection(address, timeout=30) as sock:
            for part in sent:
                sock.sendall(part)
            return str(json.loads(sock.makefile("rb").readline() or b"{}").get("type", "closed"))
        return "closed"

    return send


def wyoming_event(type: str, data: dict[str, Any]) -> bytes:
    more = json.dumps(data, ensure_ascii=False).encode()
    return json.dumps({"type": type, "data_length": len(more)}).encode() + b"\n" + more


def pad(text: str, n: int = MAX_TEXT) -> str:
    return (text * (n // len(text) + 1))[:n]


def long_texts() -> dict[str, str]:
    return {
        "words": pad("The old bridge stands still under the water. "),
        "one word": pad("a"),
        "no sentence end": pad("deep water "),
        "tiny sentences": pad("a. "),
        "blank lines": pad("\n"),
        "brackets": pad("["),
        "marks": pad("[rate:1.1]a[/rate] "),
        "voices in marks": pad("[voice:af_sky]a "),
        "blends in marks": "".join(f"[voice:af_sky({n / 1000})+af_bella]a " for n in range(1, 30_000))[:MAX_TEXT],
        "open tags": pad("<a "),
        "SSML": "<speak>" + pad("<p>a</p>", MAX_TEXT - 20) + "</speak>",
        "emoji": pad("😀"),
        "combining marks": pad("a" + "\u0301" * 29),
        "code fences": pad("```\na\n"),
        "formulas": pad("$x^2$ "),
        "quotes": pad('"'),
        "backslashes": pad("\\"),
    }


def odd_texts() -> dict[str, str]:
    """Texts that look like something to the text front end, without end."""
    return {
        "apostrophes": pad("a'"),
        "hyphens": pad("a-"),
        "accents": pad("e\u0301\u0302"),
        "ligatures": pad("\ufb03"),
        "Roman numerals": pad("\u2167"),
        "one character for eighteen": pad("\ufdfa"),
        "families of emoji": pad("👩\u200d👩\u200d👧\u200d👦"),
        "right to left": pad("\u202eمرحبا "),
        "wide stops": pad("你。"),
        "mixed scripts": pad("aбγ你 "),
        "line separators": pad("a\u2028"),
        "digits": pad("9"),
        "dates": pad("1/1/1"),
        "exponents": pad("1e999999999 "),
        "addresses": pad("http://a.b/c?d=e&f=g"),
        "entities": pad("&amp;"),
        "open tags without blanks": pad("<a"),
        "tables": pad("|a|b|\n|-|-|\n"),
        "headings": pad("# a\n"),
        "an open block of code": "```\n" + pad("a b\n", MAX_TEXT - 4),
        "ticks": "".join("`" * (n % 50 + 1) + "a" for n in range(40_000))[:MAX_TEXT],
        "links": pad("[a](b.c) "),
        "open links": pad("[a]("),
        "fractions": pad("$\\frac{1}{2}$ "),
        "nested formulas": pad("$$" + "^" * 900 + "$$ "),
        "open formulas": pad("\\begin{align}"),
    }


def ssml_texts() -> dict[str, str]:
    inside = {
        "9,000 attributes": "<p " + "".join(f'a{n}="b" ' for n in range(9000)) + ">a</p>",
        "a number of 99,000 digits": f"<say-as interpret-as='cardinal'>{'9' * 98_900}</say-as>",
        "99,000 letters": f"<say-as interpret-as='characters'>{'a9' * 49_400}</say-as>",
        "a date of 49,000 parts": f"<say-as interpret-as='date'>{'1/' * 49_400}</say-as>",
        "an alias of 98 kB": f"<sub alias='{'deep ' * 19_700}'>a</sub>",
        "3,000 styles": "<prosody rate='1.1'>a</prosody>" * 3100,
        "3,000 voices": "<voice name='af_sky'>a</voice>" * 3200,
        "12,000 sentences": "<s>a</s>" * 12_000,
        "12,000 pauses": "<break/>" * 12_000,
        "24,000 open comments": "<!--" * 24_000,
        "3,500 pronunciations": "<phoneme ph='a'>a</phoneme>" * 3500,
    }
    return {name: f"<speak>{text}</speak>" for name, text in inside.items()}


def wide_bodies(text: str, type: str = "") -> Iterator[tuple[str, bytes]]:
    """JSON at the limits of its size and of its values; `text` names the field of the text."""
    base = f'{{"type": "{type}", "{text}": "deep", "response_format": "pcm", '.encode()
    yield "49,000 unknown values", base + b'"x": [' + b"0," * 49_000 + b"0]}"
    yield "49,000 wrong values", base + b'"lexicon": {' + b",".join(b'"%d":1' % n for n in range(24_000)) + b"}}"
    switches = b",".join(b'"%d":"no"' % n for n in range(24_000))
    yield "49,000 wrong switches", base + b'"normalization_options": {' + switches + b"}}"
    yield "49,000 wrong items", base + b'"timestamps": [' + b'"",' * 49_000 + b'""]}'
    yield "strings of 4 MB", base + b'"x": "' + b'\\"' * (MAX_BODY // 2 - 100) + b'"}'
    yield "not JSON", base + b"x" * (MAX_BODY - 100)
    yield "a number of 4 MB", base + b'"speed": ' + b"1" * (MAX_BODY - 100) + b"}"
    for field in ("voice", "model", "language", "response_format", "emotion", "style"):
        yield f"{field} of 4 MB", base + f'"{field}": "{"af_sky+" * (MAX_BODY // 8)}"}}'.encode()


def lexicons() -> Iterator[tuple[str, dict[str, str]]]:
    yield "20,000 words in IPA", {f"w{n}": "/" + "həlˈO" * 20 + "/" for n in range(19_000)}
    yield "20,000 respelled words", {f"w{n}": "deep " * 35 for n in range(19_000)}
    yield "400 phrases", {f"deep water {n}": "deep " * 30 for n in range(400)}
    yield "100 patterns", {f"/(a|b|c)*{n}[a-z]{{1,90}}/": "deep " * 30 for n in range(100)}


def all_inputs() -> Iterator[Hostile]:
    yield from texts_over_http()
    yield from bodies_over_http()
    yield from large_answers()
    yield from messages_over_websockets()
    yield from wyoming_events()
    yield from books()


def texts_over_http() -> Iterator[Hostile]:
    path, texts = "/v1/audio/speech", long_texts()
    for name, text in texts.items():
        yield Hostile(path, f"text: {name}", post(path, {"input": text, "response_format": "pcm"}))
    for name, text in odd_texts().items():
        yield Hostile(path, f"text: {name}", post(path, {"input": text, "response_format": "pcm"}))
    for name, text in ssml_texts().items():
        yield Hostile(path, f"SSML: {name}", post(path, {"input": text, "response_format": "pcm"}))
    patterns = {f"/[a-z]+{n}?/": "x" for n in range(100)}
    for name, lexicon in {"patterns": patterns, "phrases": {f"deep water {n}": "x" for n in range(400)}}.items():
        body = {"input": texts["no sentence end"], "response_format": "pcm", "lexicon": lexicon}
        yield Hostile(path, f"text: no sentence end, with {name}", post(path, body))
    for language in ("auto", "fr", "hi"):
        body = {"input": odd_texts()["mixed scripts"], "response_format": "pcm", "language": language}
        yield Hostile(path, f"text: mixed scripts as {language}", post(path, body))
    escaped = b'{"input": "' + b"\\ud83d\\ude00" * (MAX_BODY // 12 - 10) + b'"}'
    yield Hostile(path, "text: escaped emoji", post(path, content=escaped))
    tags = {"if-none-match": ", ".join(f'W/"{n}"' for n in range(5000))}
    yield Hostile(path, "5,000 ETags", post(path, {"input": texts["words"]}, **tags))
    others = {"/tts": "text", "/dev/phonemize": "text", "/dev/captioned_speech": "input", ELEVENLABS: "text"}
    for path, field in others.items():
        for name in ("words", "tiny sentences", "marks", "SSML"):
            yield Hostile(path, f"text: {name}", post(path, {field: texts[name], "format": "pcm"}))
    path = "/dev/generate_from_phonemes"
    for name, phonemes in {"one word": "a" * 3_900_000, "words": pad("həlˈO ", MAX_SYMBOLS)}.items():
        yield Hostile(path, name, post(path, {"phonemes": phonemes}))


def bodies_over_http() -> Iterator[Hostile]:
    for path, field in (("/v1/audio/speech", "input"), ("/tts", "text"), ("/dev/phonemize", "text")):
        for name, content in wide_bodies(field):
            yield Hostile(path, f"JSON: {name}", post(path, content=content))
        for name, lexicon in lexicons():
            body = {field: "deep", "response_format": "pcm", "lexicon": lexicon}
            yield Hostile(path, f"lexicon: {name}", post(path, body))
    for n_items, text in ((12_000, "a"), (50, pad("deep water ", 19_000))):
        requests = {"requests": [{"text": text}] * n_items}
        yield Hostile("/tts/batch", f"{n_items} items", post("/tts/batch", requests))
    path = "/v1/audio/voices/combine"
    yield Hostile(path, "a blend of 4 MB", post(path, "af_sky+" * (MAX_BODY // 8)))
    yield Hostile(path, "a list of 49,000", post(path, ["af_sky"] * 49_000))


def large_answers() -> Iterator[Hostile]:
    path = "/v1/audio/speech"
    for format in ("pcm", "wav", "mp3", "flac"):
        body = {"input": "[pause:60s] deep " * 20, "response_format": format, "stream": False}
        yield Hostile(path, f"20 minutes of {format} in one answer", post(path, body, read_bytes=1 << 30))
    words = {"input": pad("deep water ", 20_000), "response_format": "pcm", "timestamps": ["word", "phoneme", "viseme"]}
    yield Hostile(path, "all times as events", post(path, {**words, "stream_format": "sse"}, read_bytes=1 << 26))
    path = "/dev/captioned_speech"
    yield Hostile(path, "all times in one answer", post(path, {**words, "stream": False}, read_bytes=1 << 30))


def messages_over_websockets() -> Iterator[Hostile]:
    texts, live, realtime = long_texts(), "/v1/audio/speech/stream", "/v1/realtime"
    for name in LIVE_TEXTS:
        text = {"type": "input.text", "text": texts[name]}
        yield Hostile(live, f"text: {name}", messages(live, text, {"type": "input.done"}))
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": texts[name]}]}
        create = {"type": "conversation.item.create", "item": item}
        yield Hostile(realtime, f"text: {name}", messages(realtime, create, {"type": "response.create"}, n_answers=9))
    pieces = [{"type": "input.text", "text": pad("deep [", 1000)}] * 990
    yield Hostile(live, "990 pieces", messages(live, *pieces))
    letters = [json.dumps({"type": "input.text", "text": "a"})] * 20_000
    yield Hostile(live, "20,000 letters", messages(live, *letters, n_answers=1))
    for path, type in ((live, "session.config"), (realtime, "session.update")):
        for name, body in wide_bodies("x", type):
            yield Hostile(path, f"JSON: {name}", messages(path, body.decode(), n_answers=1))
    configs = [{"type": "session.config", "lexicon": lexicon} for _, lexicon in lexicons()]
    yield Hostile(live, "lexicons", messages(live, *configs, {"type": "input.text", "text": "deep."}))


def wyoming_events() -> Iterator[Hostile]:
    texts = long_texts()
    for name in LIVE_TEXTS:
        yield Hostile("wyoming", f"text: {name}", events(wyoming_event("synthesize", {"text": texts[name]})))
        start, stop = wyoming_event("synthesize-start", {}), wyoming_event("synthesize-stop", {})
        piece = wyoming_event("synthesize-chunk", {"text": texts[name]})
        yield Hostile("wyoming", f"text in pieces: {name}", events(start, piece, stop))
    wide = wyoming_event("synthesize", {"text": "a", "x": [0] * 49_000})
    yield Hostile("wyoming", "JSON: 49,000 values", events(wide))
    voice = wyoming_event("synthesize", {"text": "a", "voice": {"name": "af_sky+" * (MAX_BODY // 8)}})
    yield Hostile("wyoming", "a voice of 4 MB", events(voice))


def books() -> Iterator[Hostile]:
    texts = long_texts()
    for name in LIVE_TEXTS:
        yield Hostile("/v1/jobs", f"JSON text: {name}", job({"text": texts[name], "format": "wav"}))
    yield Hostile("/v1/jobs", "a text of 95 MB", form("book.txt", b"The old bridge stands still. " * 3_300_000))
    yield Hostile("/v1/jobs", "a form with a text of 1 MB", form("", b"", text=pad("deep water ", MAX_TEXT)))
    lexicon = json.dumps({f"w{n}": "deep" for n in range(20_000)})
    yield Hostile("/v1/jobs", "a form with a lexicon", form("book.txt", b"deep", lexicon=lexicon))
    blocks = "".join(f'<p id="i{n}">deep {n}</p>' for n in range(15_000))
    links = "".join(f'<li><a href="a.xhtml#i{n}">{n}</a></li>' for n in range(15_000))
    book = epub({"a.xhtml": page(blocks)}, nav=f"<ol>{links}</ol>")
    yield Hostile("/v1/jobs", "an EPUB with 15,000 chapters", form("book.epub", book))


# -- connections -------------------------------------------------------------------------------------------------------


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


def raw_events(data: bytes, *, read: bool = True) -> Send:
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
        yield Hostile("wyoming", name, raw_events(data))
    yield Hostile("wyoming", "20,000 pings, answers unread", raw_events(ping * 20_000, read=False))
    yield Hostile("wyoming", "100 connections", at_once(100, raw_events(describe * 5)))
