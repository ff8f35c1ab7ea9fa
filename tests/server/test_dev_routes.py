"""Captions, phonemes and blends."""

import io
import json
from base64 import b64decode
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.fakes import FakeEngine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, expected_samples, serving
from tutti.server.routes import dev
from tutti.text.ssml import ELEMENTS
from tutti.text.vocab import SYMBOLS
from tutti.torch_file import torch_file
from tutti.voices import Voices

pytestmark = pytest.mark.server


@pytest.mark.parametrize("format", ["pcm", "mp3"])
def test_captions_carry_the_audio_and_every_word(server: RunningServer, format: str) -> None:
    body = {"input": LONG, "voice": "af_heart", "response_format": format}
    response = server.post("/dev/captioned_speech", body)
    assert response.headers["content-type"] == "application/x-ndjson"
    streamed = [json.loads(line) for line in response.text.strip().split("\n")]
    whole = server.post("/dev/captioned_speech", {**body, "stream": False}).json()
    raw = server.speak(input=LONG, response_format=format).content
    assert b"".join(b64decode(line["audio"]) for line in streamed) == b64decode(whole["audio"]) == raw
    stamps = [stamp for line in streamed for stamp in line["timestamps"]]
    assert stamps == whole["timestamps"]
    assert [stamp["word"] for stamp in stamps] == LONG.split()
    assert all(stamp["start_time"] < stamp["end_time"] for stamp in stamps)
    assert whole["audio_format"].startswith("audio/")


def test_captions_can_omit_timestamps(server: RunningServer) -> None:
    body = {"input": SHORT, "return_timestamps": False, "stream": False}
    assert server.post("/dev/captioned_speech", body).json()["timestamps"] is None


def test_phonemes_come_with_their_tokens(server: RunningServer) -> None:
    answer = server.post("/dev/phonemize", {"text": "deep water", "language": "a"}).json()
    assert answer["phonemes"] == "deep water"
    assert answer["tokens"] == [0, *(SYMBOLS[symbol] for symbol in "deep water"), 0]
    response = server.post("/dev/phonemize", {"text": "x", "language": "klingon"})
    assert_error(response, 400, "unknown_language", "language")
    assert server.post("/dev/phonemize", {"text": ""}).json()["phonemes"] == ""


def test_phonemized_words_have_their_place_in_the_text(server: RunningServer) -> None:
    text = "[rate:2]deep[/rate] water. [pause:1s] It is [so](/sO/) nginx. " + LONG
    answer = server.post("/dev/phonemize", {"text": text, "lexicon": {"nginx": "/ˈɛnʤɪn/"}}).json()
    symbols = {number: symbol for symbol, number in SYMBOLS.items()}
    for word in answer["words"]:
        first, last = word["tokens"]
        assert "".join(symbols[token] for token in answer["tokens"][first:last]) == word["phonemes"]
    sources = [text[word["start"] : word["end"]] for word in answer["words"]]
    assert sources == ["deep", "water.", "It", "is", "[so](/sO/)", "nginx.", *LONG.split()]
    assert [word["phonemes"] for word in answer["words"][4:6]] == ["sO", "ˈɛnʤɪn"]
    assert answer["words"][4]["word"] == "so"
    response = server.post("/dev/phonemize", {"text": "x", "lexicon": {"x": "/日/"}})
    assert_error(response, 400, "invalid_input", "lexicon")


def test_phonemes_are_spoken_as_written(server: RunningServer) -> None:
    response = server.post("/dev/generate_from_phonemes", {"phonemes": "dip wˈɔtɚ", "voice": "alloy"})
    assert response.headers["content-type"] == "audio/wav"
    samples = expected_samples(server, "[a](/dip/) [b](/wˈɔtɚ/)")
    assert response.content[44:] == np.rint(samples * 32767).astype("<i2").tobytes()


@pytest.mark.parametrize("phonemes", ["7", "日", "a" * 201, ""])
def test_unknown_phonemes_are_refused(server: RunningServer, phonemes: str) -> None:
    code = "invalid_input" if phonemes else "nothing_to_speak"
    assert_error(server.post("/dev/generate_from_phonemes", {"phonemes": phonemes}), 400, code, "phonemes")


def test_too_many_phonemes_are_refused_before_they_are_read(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "MAX_SYMBOLS", 9)
    assert server.post("/dev/generate_from_phonemes", {"phonemes": "dip wˈɔtɚ"}).status_code == 200
    refused = server.post("/dev/generate_from_phonemes", {"phonemes": "dip deep 日"})
    assert_error(refused, 413, "too_large", "phonemes")


@pytest.mark.parametrize("voices", ["alloy+af_sky", ["alloy", "af_sky"]])
def test_a_combined_voice_can_be_used(server: RunningServer, voices: Any) -> None:
    answer = server.post("/v1/audio/voices/combine", voices, headers={"accept": "application/json"}).json()
    assert answer["voice"] == "af_alloy+af_sky"
    assert answer["parts"] == [{"name": "af_alloy", "weight": 1.0}, {"name": "af_sky", "weight": 1.0}]
    assert server.speak(voice=answer["voice"]).status_code == 200
    assert_error(server.post("/v1/audio/voices/combine", "af_hart"), 400, "voice_not_found", "voice")


# -- the file of a voice -------------------------------------------------------------------------------------------


def test_a_blend_is_a_file_that_pytorch_reads(voices: Voices) -> None:
    torch = pytest.importorskip("torch")
    with serving(FakeEngine(voices)) as server:
        response = server.post("/v1/audio/voices/combine", "af_bella(2)+af_sky")
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == 'attachment; filename="af_bella_2_af_sky.pt"'
    assert response.headers["x-voice-used"] == "af_bella(2)+af_sky"
    table = torch.load(io.BytesIO(response.content), weights_only=True)
    assert (table.shape, table.dtype) == ((510, 1, 256), torch.float32)
    assert np.array_equal(table[:, 0].numpy(), voices.get("af_bella(2)+af_sky").table)


@pytest.mark.parametrize("shape", [(1,), (3, 2), (2, 3, 4), (0, 5)])
def test_a_tensor_of_any_shape_is_read_as_it_was_written(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    tensor = torch.load(io.BytesIO(torch_file(array)), weights_only=True)
    assert np.array_equal(tensor.numpy(), array)
    assert (tensor + 1).shape == shape


# -- SSML ----------------------------------------------------------------------------------------------------------


def test_ssml_is_written_as_marks(server: RunningServer) -> None:
    text = '<speak>one <voice name="am_michael">two</voice> <prosody rate="slow">three</prosody></speak>'
    answer = server.post("/dev/ssml", {"text": text, "voice": "alloy"}).json()
    assert answer == {"text": "one [voice:am_michael] two [voice:af_alloy] [rate:0.75] three [rate:1.0]", "notices": []}
    without = server.post("/dev/ssml", {"text": text}).json()
    assert without["text"] == "one two three"
    assert "no voice was given" in without["notices"][0]
    assert server.post("/dev/ssml", {"text": "plain [pause:1s] text"}).json()["text"] == "plain [pause:1s] text"


@pytest.mark.parametrize(
    "text",
    [
        "<speak>unclosed <voice>",
        "<speak>a</p></speak>",
        "<speak>a & b</speak>",
        "<speak>&a;</speak>",
        '<speak><!ENTITY a "b">a</speak>',
        "<speak>" + "<p>" * 40 + "</speak>",
    ],
)
def test_wrong_ssml_is_refused_with_its_place(server: RunningServer, text: str) -> None:
    error = assert_error(server.post("/dev/ssml", {"text": text, "voice": "af_sky"}), 400, "invalid_input", "text")
    assert error["message"].startswith("SSML, line 1, column ")


def test_a_wrong_voice_for_ssml_is_refused(server: RunningServer) -> None:
    assert_error(server.post("/dev/ssml", {"text": "a", "voice": "nobody"}), 400, "voice_not_found", "voice")


def test_the_elements_of_ssml_are_listed(server: RunningServer) -> None:
    answer = server.get("/dev/ssml").json()
    assert set(answer["elements"]) >= set(ELEMENTS)
    assert "lookup" in answer["ignored"]
    assert set(answer["elements"]).isdisjoint(answer["ignored"])
    assert (answer["rate_range"], answer["break_strengths"]["strong"]) == ([0.25, 4.0], 1.0)


# -- the page ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/web", "/web/"])
def test_the_page_of_kokoro_fastapi_leads_to_ours(server: RunningServer, path: str) -> None:
    response = server.clients[0].get(path, follow_redirects=False)
    assert response.status_code == 307
    assert str(httpx2.URL(f"{server.url}{path}").join(response.headers["location"])) == f"{server.url}/"
