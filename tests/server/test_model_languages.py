"""A server with a checkpoint that speaks a language which Kokoro does not: its text is read, and no other's is."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_checkpoint_folder import make_folder
from tests.fakes import RecordingModel, Spelling, silent_voices, tone_engine
from tests.server.harness import RunningServer, assert_error, serving
from tutti.engine.checkpoints import open_voices
from tutti.settings import Settings
from tutti.text import vocab
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.g2p import espeak

pytestmark = pytest.mark.server

MODEL = RecordingModel("acoustic")
IDS = {id: symbol for symbol, id in vocab.SYMBOLS.items()}


def pronounce(aligned: AlignedText, code: str, given: Mapping[int, str] = {}) -> Pronunciation:
    """German by its own front end, and the letters of all others."""
    return (espeak.pronounce if code == "de" else Spelling().pronounce)(aligned, code, given)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server with Kokoro and a German checkpoint."""
    models = f"kokoro=fp32,de={make_folder(tmp_path / 'm')}"
    (tmp_path / "home/voices").mkdir(parents=True)
    silent_voices(tmp_path / "home/voices")
    settings = Settings(home=tmp_path / "home", models=models, voices=tmp_path / "own")  # type: ignore[arg-type]
    engine = tone_engine(open_voices(settings), lambda: MODEL, pronounce, others={"de": lambda: MODEL}, models=models)
    engine.checkpoints = ("kokoro", "de")
    with serving(engine, home=tmp_path / "home", models=models, voices=tmp_path / "own") as running:
        yield running


def phonemes(server: RunningServer, **body: Any) -> str:
    MODEL.acoustic_calls.clear()
    assert server.post("/v1/audio/speech", {"model": "de", **body}).status_code == 200
    rows = (row for rows in MODEL.acoustic_calls for row in rows)
    return " ".join("".join(IDS.get(int(token), "") for token in row.tokens) for row in rows)


def test_text_is_read_in_the_language_of_the_model(server: RunningServer) -> None:
    assert phonemes(server, input="Guten Tag, am 3. Mai.") == "ɡˈuːtən tˈɑːk, am dɾˈɪtən mˈI."
    assert phonemes(server, input="Guten Tag.", language="de", voice="martin") == "ɡˈuːtən tˈɑːk."


def test_a_part_of_an_english_text_may_be_in_the_language_of_the_model(server: RunningServer) -> None:
    assert "ɡˈuːtən tˈɑːk" in phonemes(server, input="He said [lang:de]Guten Tag[/lang] to me.", language="en-us")


def test_lists_name_the_language(server: RunningServer) -> None:
    models = {model["id"]: model for model in server.get("/v1/models").json()["data"]}
    assert models["de"]["language"] == "de"
    voices = server.get("/v1/audio/voices?model=de").json()["voices"]
    assert {voice["language"] for voice in voices} == {"de"}
    assert {voice["Locale"] for voice in server.get("/cognitiveservices/voices/list").json()} > {"en-US"}


@pytest.mark.parametrize(
    "body", [{"language": "de"}, {"input": "[lang:de]Guten Tag."}, {"language": "german", "voice": "ff_siwis"}]
)
def test_a_model_that_does_not_speak_a_language_refuses_it(server: RunningServer, body: dict[str, Any]) -> None:
    answer = server.post("/v1/audio/speech", {"input": "Guten Tag.", "model": "kokoro", **body})
    assert_error(answer, 400, "unknown_language", "language")
    assert "German" in answer.json()["error"]["message"]


def test_the_refusal_names_the_model_that_speaks_it(server: RunningServer) -> None:
    answer = server.post("/v1/audio/speech", {"input": "Guten Tag.", "language": "de"})
    assert "choose model de" in answer.json()["error"]["message"]
