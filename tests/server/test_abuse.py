"""Faults and abuse: every answer is a documented error, and the server keeps working."""

import gzip
import json
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEngine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, serving
from tutti.errors import TuttiError
from tutti.server.errors import error_body, error_headers
from tutti.server.schemas import SpeechBody

pytestmark = pytest.mark.server

JSON = {"content-type": "application/json"}
EVIL = [
    *("../../etc/passwd", "/etc/passwd", "..\\..\\x", "http://evil/voice.pt", "file:///etc/passwd", "af_heart.pt"),
    *("af_heart\0", "\0", "a" * 500, "{{7*7}}", "$(id)", "af_heart;rm -rf", "..", ".", " ", "+", "-af_heart", "()"),
]


@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
def test_names_that_are_paths_or_urls_are_refused(server: RunningServer, evil: str) -> None:
    assert_error(server.speak(voice=evil), 400, "voice_not_found", "voice")
    assert server.speak(model=evil).status_code in (400, 404)
    assert_error(server.speak(response_format=evil), 400, "unknown_format", "response_format")
    assert server.speak(style=evil).status_code == 400
    assert server.speak(language=evil).status_code == 400


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, "af_sky+" * 100) for field in ("voice", "style", "model", "language", "response_format", "emotion")),
        *(("voice", {"id": "a" * 501}), ("lang_code", "a" * 501), ("timestamps", ["word"] * 17)),
        *(("normalization_options", dict.fromkeys(map(str, range(101)), True)), ("lexicon", {"a": "b", "c": 1})),
    ],
)
def test_long_names_and_lists_are_refused_before_they_are_looked_at(
    server: RunningServer, field: str, value: object
) -> None:
    assert_error(server.speak(**{field: value}), 400, "invalid_input", field)


@pytest.mark.parametrize(
    "path", ["../kokoro", "a/..", "../../etc/passwd", "/kokoro", "http://evil/kokoro", "kokoro\0", ""]
)
def test_a_model_cannot_be_a_path(server: RunningServer, path: str) -> None:
    assert_error(server.speak(model=path), 400, "invalid_input", "model")


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 400, "invalid_input"),
        (b"{", 400, "invalid_input"),
        (b"nonsense", 400, "invalid_input"),
        (b"[]", 400, "invalid_input"),
        (b'"x"', 400, "invalid_input"),
        (b"null", 400, "invalid_input"),
        (b'{"input": "\xff\xfe"}', 400, "invalid_input"),
        (b'{"input": "\\ud800"}', 400, "nothing_to_speak"),
        (b'{"input": "a", "voice": "\\udfff"}', 400, "voice_not_found"),
        (b'{"input": "a", "response_format": "\\udfff"}', 400, "unknown_format"),
        (b'{"input": "a", "model": "\\udfff"}', 400, "invalid_input"),
        (b'{"input": "a", "language": "\\udfff"}', 400, "unknown_language"),
        (b'{"input": "a", "speed": NaN}', 400, "invalid_input"),
        (b'{"input": "a", "speed": Infinity}', 400, "invalid_input"),
        (b'{"input": "a", "seed": 1e999}', 400, "invalid_input"),
        (b'{"input": "a", "seed": ' + b"9" * 5000 + b"}", 400, "invalid_input"),
        (b"[" * 100_000, 400, "invalid_input"),
        (b'{"input":' * 50_000, 400, "invalid_input"),
        (b'{"input": "a", "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400, "invalid_input"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_invalid_body_is_refused(server: RunningServer, content: bytes, status: int, code: str) -> None:
    response = server.post("/v1/audio/speech", content=content, headers=JSON)
    assert response.json()["error"]["code"] == code
    assert response.status_code == status


@pytest.mark.parametrize(
    "text", ["deep\0 water", "deep \u202ewater\u200b", "deep 😀 water", "deep \ud800 water", "d\u0301" * 50]
)
@pytest.mark.parametrize("more", [{}, {"stream": False}, {"stream_format": "sse"}], ids=["raw", "whole", "sse"])
def test_odd_characters_do_not_stop_other_words(server: RunningServer, text: str, more: dict[str, Any]) -> None:
    content = json.dumps({"input": text, "word_timestamps": True, **more}).encode()
    assert server.post("/v1/audio/speech", content=content, headers=JSON).status_code == 200


def test_a_body_that_is_not_json_gets_415(server: RunningServer) -> None:
    content = json.dumps({"input": SHORT}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = server.post("/v1/audio/speech", content=content, headers={"content-type": kind})
        assert_error(response, 415, "unsupported_media_type")
        assert "application/json" in response.json()["detail"]["message"]
    zipped = {**JSON, "content-encoding": "gzip"}
    bomb = gzip.compress(b" " * 50_000_000)
    assert_error(server.post("/v1/audio/speech", content=bomb, headers=zipped), 415, "unsupported_media_type")
    assert_error(server.post("/v1/audio/speech", content=bomb, headers=JSON), 400, "invalid_input")


def test_a_too_large_body_or_text_gets_an_error_that_names_the_setting(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, max_text=1000) as server:
        refused = server.speak(input="a" * 10_000_000)
        assert_error(refused, 413, "too_large")
        assert "TUTTI_MAX_BODY" in refused.json()["detail"]["message"]
        refused = server.speak(input="a. " * 400)
        assert_error(refused, 413, "too_large", "input")
        assert "TUTTI_MAX_TEXT" in refused.json()["detail"]["message"]
        for path in ("/tts", "/tts/stream", "/dev/phonemize"):
            assert_error(server.post(path, {"text": "a" * 1001}), 413, "too_large", "text")
        assert_error(server.post("/tts/batch", {"requests": [{"text": "a" * 501}] * 2}), 413, "too_large", "requests")
        assert server.speak().status_code == 200


def test_a_body_of_unknown_length_is_read_only_up_to_the_limit(fake_engine: FakeEngine) -> None:
    def endless() -> Any:
        while True:
            yield b" " * 65_536

    with serving(fake_engine, max_body=100_000) as server:
        try:
            assert_error(server.post("/v1/audio/speech", content=endless(), headers=JSON), 413, "too_large")
        except OSError as exc:  # closed while we were still sending
            assert exc  # noqa: PT017
        assert server.get("/healthz").status_code == 200


def test_a_whole_answer_that_is_too_large_is_refused_and_a_stream_is_not(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, max_whole_mb=0.2) as server:
        body = {"input": LONG, "response_format": "wav"}
        assert_error(server.speak(**body, stream=False), 413, "too_large", "stream")
        assert server.speak(**body).status_code == 200
        assert_error(server.post("/tts/batch", {"requests": [{"text": SHORT * 3}] * 5}), 413, "too_large", "requests")


def test_unknown_routes_and_methods_get_the_documented_error(server: RunningServer) -> None:
    assert_error(server.get("/nowhere"), 404, "not_found")
    assert_error(server.post("/nowhere", {}), 404, "not_found")
    response = server.get("/v1/audio/speech")
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


def test_bytes_that_are_not_http_get_400(server: RunningServer) -> None:
    with socket.create_connection(server.host_port) as sock, sock.makefile("rb") as answer:
        sock.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        response = answer.read()
    assert response.startswith(b"HTTP/1.1 400 ")
    assert json.loads(response.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_input"


def test_a_reset_within_a_body_does_not_harm_the_server(server: RunningServer) -> None:
    for cut in (0, 10, 60, 105, 115):
        with socket.create_connection(server.host_port) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close with RST
            kind = b"Content-Type: application/json\r\nContent-Length: 500\r\n\r\n"
            sock.sendall((b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\n" + kind + b'{"input": "deep')[:cut])
    assert server.speak().status_code == 200


@given(
    body=st.dictionaries(
        st.sampled_from([*SpeechBody.model_fields, "x"]),
        st.one_of(
            *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just("af_heart")),
            *(
                st.lists(st.integers(), max_size=2),
                st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
            ),
        ),
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_body_causes_a_server_error(server: RunningServer, body: dict[str, Any]) -> None:
    response = server.post("/v1/audio/speech", content=json.dumps(body).encode(), headers=JSON)
    assert response.status_code < 500
    if response.status_code != 200:
        assert set(response.json()) == {"error", "detail"}


@given(message=st.text(), status=st.sampled_from([400, 401, 404, 413, 429, 500, 503]))
def test_every_error_has_its_message_twice(message: str, status: int) -> None:
    error = TuttiError(message)
    error.status = status
    body = error_body(error)
    assert body["detail"]["message"] == body["error"]["message"] == message
    assert (error_headers(error).get("x-should-retry") == "false") == (status == 500)


def test_the_text_of_a_request_is_never_logged(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        for body in ({"input": "confidential words"}, {"input": "confidential words", "voice": "nobody"}):
            server.speak(**body)
        server.get("/confidential")
    assert "request id=" in caplog.text
    assert "status=400" in caplog.text
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
    assert not any("confidential" in line for line in ours)
