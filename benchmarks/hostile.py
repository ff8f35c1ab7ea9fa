"""The worst that one client can send to each route within the limits of size, for loop_hold and bystander."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
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
