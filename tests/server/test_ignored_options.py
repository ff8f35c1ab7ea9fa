"""Options that have no effect are named: in X-Ignored, in audio.start of a WebSocket, in the manifest of a batch."""

import io
import json
import zipfile
from typing import Any

import pytest

from tests.server.harness import SHORT, RunningServer

pytestmark = pytest.mark.server

BODIES: dict[str, dict[str, Any]] = {
    "/v1/audio/speech": {"input": SHORT},
    "/dev/captioned_speech": {"input": SHORT},
    "/dev/dialogue": {"turns": [{"voice": "af_sky", "text": SHORT}]},
    "/dev/generate_from_phonemes": {"phonemes": "dip"},
    "/dev/phonemize": {"text": SHORT},
    "/dev/ssml": {"text": SHORT},
    "/tts": {"text": SHORT},
    "/tts/stream": {"text": SHORT},
    "/tts/batch": {"requests": [{"text": SHORT}]},
    "/v1/text-to-speech/af_heart": {"text": SHORT},
    "/v1/text-to-speech/af_heart/stream": {"text": SHORT},
    "/v1/text-to-speech/af_heart/with-timestamps": {"text": SHORT},
    "/v1/text-to-speech/af_heart/stream/with-timestamps": {"text": SHORT},
    "/v1/text-to-dialogue": {"inputs": [{"text": SHORT, "voice_id": "af_heart"}]},
    "/v1/text-to-dialogue/stream": {"inputs": [{"text": SHORT, "voice_id": "af_heart"}]},
    "/v1/speak": {"text": SHORT},
    "/v2/speak": {"text": SHORT},
    "/tts/bytes": {"transcript": SHORT},
    "/tts/sse": {"transcript": SHORT},
}


def ignored(server: RunningServer, path: str, **options: Any) -> str | None:
    response = server.post(path, {**BODIES[path], **options})
    assert response.status_code == 200, response.text
    header: str | None = response.headers.get("x-ignored")
    return header


@pytest.mark.parametrize("path", BODIES)
def test_every_route_names_the_keys_that_it_does_not_know(server: RunningServer, path: str) -> None:
    assert ignored(server, path) is None
    assert ignored(server, path, flavour="sweet", loudness=3) == "flavour, loudness"
    assert ignored(server, path, flavour=None) is None  # null means absent


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/v1/audio/speech", "/dev/captioned_speech"])
def test_streams_and_whole_answers_name_them(server: RunningServer, path: str, stream: bool) -> None:
    assert ignored(server, path, stream=stream, use_gpu=True) == "use_gpu"


def test_events_name_them(server: RunningServer) -> None:
    assert ignored(server, "/v1/audio/speech", stream_format="sse", use_gpu=True) == "use_gpu"


def test_nested_keys_are_named_with_their_place(server: RunningServer) -> None:
    assert ignored(server, "/v1/audio/speech", voice={"id": "af_heart", "mood": 1}) == "voice.mood"
    assert ignored(server, "/v1/text-to-speech/af_heart", voice_settings={"style": 0.3}) == "voice_settings.style"
    assert ignored(server, "/tts", settings={"speed": 2, "mood": 1}) == "settings.mood"
    options = {"no_such": True, "normalize": False}
    assert ignored(server, "/tts", normalization_options=options) == "normalization_options.no_such"


def test_any_name_fits_into_a_header(server: RunningServer) -> None:
    assert ignored(server, "/tts", **{"a, b\r\nc": 1, "größe": 2}) == "a%2C b%0D%0Ac, gr%C3%B6%C3%9Fe"
    many = ignored(server, "/tts", **{f"{'x' * 300}{n}": n for n in range(40)})
    assert many is not None
    assert many.endswith(", and 20 more")
    assert len(many) < 2000


def test_items_of_a_batch_name_theirs(server: RunningServer) -> None:
    items = [{"text": SHORT, "flavour": 1}, {"text": SHORT}, {"text": SHORT, "flavour": 2, "mood": 3}]
    response = server.post("/tts/batch", {"requests": items})
    assert response.headers["x-ignored"] == "requests.flavour, requests.mood"
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert [entry.get("ignored") for entry in manifest] == [["flavour"], None, ["flavour", "mood"]]
