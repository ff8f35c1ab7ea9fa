"""Generated input for every parser: it is read or refused, and nothing else happens."""

import io
import json
import socket
import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from benchmarks.fuzz import PIECES, read
from tests.audiobook.make_epub import epub, page
from tests.faults.limited_server import LimitedServer
from tutti.audiobook.formats.epub import read_epub
from tutti.audiobook.formats.parts import Skipping
from tutti.errors import InvalidInput
from tutti.text.user_lexicon import UserLexicon

BOOK = epub(
    {"a.xhtml": page('<h1 id="x">One</h1><p>deep water</p>')}, nav='<ol><li><a href="a.xhtml#x">One</a></li></ol>'
)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
texts = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts), lambda more: st.lists(more, max_size=3)
)
TYPES = (
    *("session.config", "input.text", "input.flush", "input.done", "input.cancel", "session.update"),
    *("response.create", "response.cancel", "conversation.item.create", "nonsense"),
)
messages = st.fixed_dictionaries(
    {"type": st.one_of(st.sampled_from(TYPES), values)},
    optional=dict.fromkeys(("text", "context", "session", "item", "response", "voice", "input"), values),
)


@given(texts, texts)
@settings(max_examples=150, deadline=None)
def test_any_text_is_read_or_refused_and_no_word_beside_it_is_lost(before: str, after: str) -> None:
    words = read(f"{before} zebra {after}", None)
    if words is not None and not set("<`[$") & {*before, *after}:  # no markup, code or formula around it
        assert "zebra" in "".join(words)


@given(
    st.dictionaries(
        st.one_of(texts, st.text("ab/\\w+*?|()[]{}^$.", max_size=12).map(lambda s: f"/{s}/")), texts, max_size=4
    )
)
@settings(max_examples=100, deadline=None)
def test_any_lexicon_is_used_or_refused(entries: dict[str, str]) -> None:
    try:
        lexicon = UserLexicon.of(entries)
    except InvalidInput:
        return
    read("a deep water ab wab aaab", lexicon)


@given(st.lists(st.tuples(st.integers(0, len(BOOK) - 1), st.integers(0, 255)), max_size=12), st.integers(0, len(BOOK)))
@settings(max_examples=150, deadline=None)
def test_a_damaged_book_is_read_or_refused(changes: list[tuple[int, int]], end: int) -> None:
    data = bytearray(BOOK)
    for at, byte in changes:
        data[at] = byte
    with suppress(InvalidInput):
        read_epub(io.BytesIO(bytes(data[: end or None])), "book.epub", None, Skipping())


@pytest.mark.process
@pytest.mark.server
@pytest.mark.parametrize("path", ["/v1/audio/speech/stream", "/v1/realtime"])
def test_any_message_over_a_websocket_is_answered_or_closes_it(server: LimitedServer, path: str) -> None:
    url = server.url.replace("http", "ws") + path

    @QUICK
    @given(st.lists(st.one_of(messages, values), max_size=5), st.binary(max_size=20))
    def check(sent: list[Any], binary: bytes) -> None:
        with connect(url, proxy=None) as socket_, suppress(ConnectionClosed):
            for message in sent:
                socket_.send(json.dumps(message))
            socket_.send(binary)
            while json.loads(socket_.recv(30)).get("type") != "error":  # at last, of the binary message
                pass

    check()
    assert not server.errors()


@pytest.mark.process
@pytest.mark.server
def test_any_wyoming_event_is_answered_or_ends_the_connection(server: LimitedServer) -> None:
    pytest.importorskip("wyoming")
    heads = st.fixed_dictionaries(
        {"type": st.one_of(st.sampled_from(["synthesize", "synthesize-start", "synthesize-chunk", "ping"]), values)},
        optional={"data": values, "data_length": st.integers(-1, 40), "payload_length": st.integers(-1, 40)},
    )

    lines = heads.map(lambda head: json.dumps(head).encode() + b"\n")

    @QUICK
    @given(st.lists(st.one_of(lines, st.binary(max_size=40)), max_size=4))
    def check(sent: list[bytes]) -> None:
        with socket.create_connection(("127.0.0.1", server.wyoming_port), timeout=30) as sock:
            with suppress(OSError):
                sock.sendall(b"".join(sent))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65_536):
                    pass
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    check()
    assert not server.errors()
