"""Bodies and names as clients of other servers send them: Kokoro-FastAPI, LocalAI, speaches, LibreChat."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import make_fake_engine
from tests.server.harness import RunningServer, serving

pytestmark = pytest.mark.server

SPEAKING = [
    ("/v1/audio/speech", "input"),
    ("/dev/captioned_speech", "input"),
    ("/dev/generate_from_phonemes", "phonemes"),
    ("/tts", "text"),
    ("/tts/stream", "text"),
]


@pytest.fixture(scope="module")
def any_model(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder), any_model=True) as running:
        yield running


def spoken(server: RunningServer, path: str, **body: Any) -> dict[str, Any]:
    """Post a body that must be spoken, and return what the engine was asked for."""
    response = server.post(path, body)
    assert response.status_code == 200, response.text
    return server.engine.requests[-1]


# -- errors --------------------------------------------------------------------------------------------------------


def test_detail_is_an_object_with_the_message_as_in_kokoro_fastapi(server: RunningServer) -> None:
    for response in (server.speak(voice="nobody"), server.speak(speed="fast"), server.get("/nowhere")):
        body = response.json()
        error = body["error"]
        assert body["detail"] == {"error": error["code"], "message": error["message"], "type": error["type"]}
