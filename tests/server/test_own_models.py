"""A server with a checkpoint of others: its voices for its requests, on every wire, and its card in the lists."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_checkpoint_folder import make_folder
from tests.fakes import RecordingModel, silent_voices, tone_engine
from tests.server.harness import RunningServer, assert_error, serving
from tutti.engine.checkpoints import open_voices
from tutti.settings import Settings
from tutti.voices import NAMES

pytestmark = pytest.mark.server

MODEL = RecordingModel("acoustic")
TEXT = "deep water"


def run_server(tmp_path: Path, models: str) -> Any:
    home, options = tmp_path / "home", {"models": models, "voices": tmp_path / "own"}
    (home / "voices").mkdir(parents=True)
    silent_voices(home / "voices")
    settings = Settings(home=home, **options)  # type: ignore[arg-type]
    names = [entry.partition("=")[0] for entry in models.split(",")]
    others = {name: (lambda: MODEL) for name in names if name != "kokoro"}
    engine = tone_engine(open_voices(settings), lambda: MODEL, others=others, models=models)
    engine.checkpoints = tuple(names)
    return serving(engine, home=home, **options)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    folder = make_folder(tmp_path / "m")
    with run_server(tmp_path, f"kokoro=fp32,fr={folder}") as running:
        yield running


def styles(server: RunningServer, path: str = "/v1/audio/speech", **body: Any) -> tuple[int, set[float]]:
    MODEL.acoustic_calls.clear()
    status = server.post(path, body).status_code
    return status, {float(row.style[0]) for rows in MODEL.acoustic_calls for row in rows}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"voice": "martin"}, {2.0}),
        ({"voice": "martin+df_eva"}, {2.5}),
        ({}, {3.0}),  # its first voice
        ({"voice": "alloy"}, {3.0}),
        ({"input": "deep [voice:martin]water"}, {3.0, 2.0}),
        ({"voice": "bob", "voice_aliases": {"bob": "martin"}}, {2.0}),
        ({"voice": "Martin (French, your own)"}, {2.0}),
    ],
)
def test_a_request_for_a_model_has_its_voices(
    server: RunningServer, body: dict[str, Any], expected: set[float]
) -> None:
    assert styles(server, **{"input": TEXT, "model": "fr", "language": "en-us", **body}) == (200, expected)


def test_voices_of_one_model_are_unknown_to_others(server: RunningServer) -> None:
    for body in ({"voice": "martin"}, {"voice": "af_heart", "model": "fr"}, {"voice": "martin", "model": "tts-1"}):
        assert_error(server.post("/v1/audio/speech", {"input": TEXT, **body}), 400, "voice_not_found", "voice")
    assert styles(server, input=TEXT) == (200, {0.0})
    assert styles(server, "/tts", text=TEXT, model="fr", voice="martin", language="en-us") == (200, {2.0})
    assert_error(server.post("/tts", {"text": TEXT, "voice": "martin"}), 400, "voice_not_found", "voice")
    job = {"text": "# One\n\nIt began.", "voice": "martin"}
    assert_error(server.post("/v1/jobs", job), 400, "voice_not_found", "voice")


def test_lists_say_what_a_model_is(server: RunningServer) -> None:
    models = {model["id"]: model for model in server.get("/v1/models").json()["data"]}
    assert set(models["kokoro"]) == {"id", "object", "created", "owned_by"}
    said = {name: models["fr"][name] for name in ("license", "language", "voices", "vocoder")}
    assert said == {"license": "apache-2.0", "language": "fr", "voices": 2, "vocoder": "exact"}
    assert [voice["id"] for voice in server.get("/v1/audio/voices").json()["voices"]] == [*NAMES]
    own = server.get("/v1/audio/voices?model=fr").json()
    assert [(voice["id"], voice["language"]) for voice in own["voices"]] == [("df_eva", "fr"), ("martin", "fr")]
    assert own["default_voice"] == "df_eva"
    assert_error(server.get("/v1/audio/voices?model=nobody"), 404, "model_not_found", "model")


def test_such_a_model_may_be_the_default(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "m")
    with run_server(tmp_path, f"fr={folder},kokoro=fp32") as server:
        assert styles(server, input=TEXT, language="en-us") == (200, {3.0})
        assert styles(server, input=TEXT, language="en-us", voice="martin") == (200, {2.0})
        assert styles(server, input=TEXT, model="kokoro", voice="af_sky") == (200, {0.0})
        assert styles(server, input=TEXT, model="kokoro") == (200, {0.0})
        assert [voice["voice_id"] for voice in server.get("/v1/voices").json()["voices"]] == ["df_eva", "martin"]
        path = "/v1/text-to-speech/martin"
        assert styles(server, path, text=TEXT, language_code="en") == (200, {2.0})
