"""Captions, phonemes and blends."""

import json
from base64 import b64decode
from typing import Any

import numpy as np
import pytest

from tests.server.harness import LONG, SHORT, RunningServer, assert_error, expected_samples
from tutti.server.routes import dev
from tutti.text.vocab import SYMBOLS

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
    answer = server.post("/v1/audio/voices/combine", voices).json()
    assert answer["voice"] == "af_alloy+af_sky"
    assert answer["parts"] == [{"name": "af_alloy", "weight": 1.0}, {"name": "af_sky", "weight": 1.0}]
    assert server.speak(voice=answer["voice"]).status_code == 200
    assert_error(server.post("/v1/audio/voices/combine", "af_hart"), 400, "voice_not_found", "voice")
