"""Azure's wire: SSML in, any of its formats out."""

import httpx2
import pytest

from tests.server.harness import RunningServer, assert_error

pytestmark = pytest.mark.server

PATH = "/cognitiveservices/v1"
SSML = '<speak version="1.0" xml:lang="en-US"><voice name="af_heart">The old bridge stands still.</voice></speak>'


def speak(server: RunningServer, text: str | bytes, format: str | None, **headers: str) -> httpx2.Response:
    named = {"X-Microsoft-OutputFormat": format} if format else {}
    content_type = {"Content-Type": "application/ssml+xml"}
    return server.clients[0].post(PATH, content=text, headers={**content_type, **named, **headers})


@pytest.mark.parametrize(
    ("format", "content_type", "start"),
    [
        ("raw-24khz-16bit-mono-pcm", "audio/pcm;rate=24000;channels=1", b""),
        ("riff-22050hz-16bit-mono-pcm", "audio/wav", b"RIFF"),
        ("audio-24khz-160kbitrate-mono-mp3", "audio/mpeg", b"\xff"),
        ("ogg-48khz-16bit-mono-opus", "audio/ogg", b"OggS"),
        ("raw-8khz-8bit-mono-mulaw", "audio/PCMU;rate=8000;channels=1", b""),
        (None, "audio/wav", b"RIFF"),
    ],
)
def test_formats(server: RunningServer, format: str | None, content_type: str, start: bytes) -> None:
    response = speak(server, SSML, format)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == content_type
    assert response.content.startswith(start)
    assert len(response.content) > 1000


def test_ssml_is_spoken_as_by_our_own_route(server: RunningServer) -> None:
    own = server.speak(input=SSML, response_format="pcm").content
    assert speak(server, SSML, "raw-24khz-16bit-mono-pcm").content == own


@pytest.mark.parametrize(
    ("text", "format", "code", "param"),
    [
        (SSML, "webm-24khz-16bit-mono-opus", "unknown_format", "x-microsoft-outputformat"),
        (SSML, "raw-77khz-16bit-mono-pcm", "invalid_input", "x-microsoft-outputformat"),
        ("<speak></speak>", None, "nothing_to_speak", "body"),
        (b"\xff", None, "invalid_input", None),
    ],
)
def test_errors(server: RunningServer, text: str | bytes, format: str | None, code: str, param: str | None) -> None:
    assert_error(speak(server, text, format), 400, code, param)


def test_another_type_of_body_is_refused(server: RunningServer) -> None:
    assert_error(speak(server, SSML, None, **{"Content-Type": "text/plain"}), 415, "unsupported_media_type")


def test_every_voice_is_listed(server: RunningServer) -> None:
    voices = server.get("/cognitiveservices/voices/list").json()
    assert len(voices) == 54
    assert {"ShortName", "DisplayName", "Locale", "Gender"} <= set(voices[0])
