"""Several voices in one request: the turns of a dialogue, and voices that a request names."""

import io
import json
import wave
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.fakes import tone_engine
from tests.server.harness import RunningServer, assert_error, serving
from tutti.speech import SAMPLE_RATE, Samples
from tutti.voices import Voices

pytestmark = pytest.mark.server

TURNS = [{"voice": "af_bella", "text": "Deep water runs."}, {"voice": "am_michael", "text": "Under an old bridge."}]
SLOW = {"Slow poke": {"voice": "af_bella", "rate": 0.5}, "narrator": "bm_george"}


@pytest.fixture(scope="module")
def tones(voices: Voices) -> Iterator[RunningServer]:
    """The real engine, which reads marks, with tones."""
    with serving(tone_engine(voices)) as running:
        yield running


def samples(tones: RunningServer, path: str = "/v1/audio/speech", **body: Any) -> Samples:
    response = tones.post(path, {"response_format": "wav", "stream": False, **body})
    assert response.status_code == 200, response.text
    with wave.open(io.BytesIO(response.content)) as audio:
        return np.frombuffer(audio.readframes(audio.getnframes()), "<i2")


def seconds(tones: RunningServer, path: str = "/v1/audio/speech", **body: Any) -> float:
    return len(samples(tones, path, **body)) / SAMPLE_RATE


def words(tones: RunningServer, text: str, **body: Any) -> list[dict[str, Any]]:
    request = {"input": text, "stream": False, "response_format": "pcm", **body}
    rows: list[dict[str, Any]] = tones.post("/dev/captioned_speech", request).json()["timestamps"]
    return rows


# -- turns ---------------------------------------------------------------------------------------------------------


def test_a_dialogue_is_its_turns_one_after_the_other(tones: RunningServer) -> None:
    each = [samples(tones, input=turn["text"], voice=turn["voice"]) for turn in TURNS]
    both = samples(tones, "/dev/dialogue", turns=TURNS)
    assert np.array_equal(both, np.concatenate(each))
    renamed = [{"voice_id": turn["voice"], "text": turn["text"]} for turn in TURNS]
    assert np.array_equal(both, samples(tones, "/dev/dialogue", inputs=renamed))


CAST = {"Anna": "af_bella", "Old Ben": {"voice": "am_michael", "rate": 0.5}}


def test_a_cast_names_the_speakers_of_turns_and_of_their_words(tones: RunningServer) -> None:
    turns = [{"speaker": "Anna", "text": "Deep water runs."}, {"speaker": "old ben", "text": "Here."}]
    each = [samples(tones, input="Deep water runs.", voice="af_bella"), samples(tones, input="Here.", speed=0.5)]
    both = samples(tones, "/v1/audio/dialogue", turns=turns, cast=CAST)
    assert len(both) == sum(map(len, each))
    body = {"turns": turns, "cast": CAST, "stream_format": "sse", "word_timestamps": True, "response_format": "pcm"}
    answer = tones.post("/v1/audio/dialogue", body)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    spoken = [word for event in events for word in event.get("words", ())]
    assert [(word["word"], word["speaker"]) for word in spoken] == [
        *(("Deep", "Anna"), ("water", "Anna"), ("runs.", "Anna"), ("Here.", "old ben")),
    ]
    ghost = [{"speaker": "Carl", "text": "Boo."}]
    assert_error(tones.post("/v1/audio/dialogue", {"turns": ghost, "cast": CAST}), 400, "voice_not_found", "turns")


def test_a_pause_between_turns_is_silence_of_that_length(tones: RunningServer) -> None:
    plain = seconds(tones, "/dev/dialogue", turns=TURNS * 2)
    assert seconds(tones, "/dev/dialogue", turns=TURNS * 2, pause_between_turns=1.5) == pytest.approx(plain + 4.5)
    assert seconds(tones, "/dev/dialogue", turns=TURNS * 2, pause_between_turns=1e-5) == plain


def test_marks_in_a_turn_end_with_it(tones: RunningServer) -> None:
    slow = {"voice": "af_sky", "text": "[rate:0.5]Deep water."}
    each = [seconds(tones, input="Deep water.", speed=0.5), seconds(tones, input="Deep water.")]
    turns = [slow, {"voice": "af_bella", "text": "Deep water."}]
    assert seconds(tones, "/dev/dialogue", turns=turns) == pytest.approx(sum(each))


def test_options_of_speech_apply_to_a_dialogue(tones: RunningServer) -> None:
    response = tones.post("/dev/dialogue", {"turns": TURNS, "stream": True, "speed": 2, "response_format": "mp3"})
    assert response.headers["content-type"] == "audio/mpeg"
    assert response.headers["x-voice-used"] == "af_bella"
    assert "x-ignored" not in response.headers
    ignored = tones.post("/dev/dialogue", {"turns": TURNS, "input": "a", "voice": "af_sky", "mood": 1}).headers
    assert ignored["x-ignored"] == "mood, input, voice"
    once = seconds(tones, "/dev/dialogue", turns=TURNS)
    assert seconds(tones, "/dev/dialogue", turns=TURNS, speed=2.5) < 0.6 * once


def test_a_turn_may_name_a_label_an_alias_or_a_voice_of_another_service(tones: RunningServer) -> None:
    for voice, stands_for in (("Emma (British English, female)", "bf_emma"), ("alloy", "af_alloy"), ("Amy", None)):
        turns = [TURNS[0], {"voice": voice, "text": "Deep water."}]
        response = tones.post("/dev/dialogue", {"turns": turns, "stream": False})
        assert response.status_code == 200, response.text
        assert ("x-notices" in response.headers) == (stands_for is None)


def test_marks_in_turns_are_read_aloud_if_they_are_not_allowed(tones: RunningServer) -> None:
    turns = [{"voice": "af_bella", "text": "See [voice:nobody] here."}, TURNS[1]]
    assert_error(tones.post("/dev/dialogue", {"turns": turns}), 400, "voice_not_found", "turns")
    response = tones.post("/dev/dialogue", {"turns": turns, "allow_voice_tags": False})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "turns",
    [
        [],
        None,
        "deep",
        [{"voice": "af_sky", "text": "  "}],
        [{"voice": "af_sky"}],
        [{"text": "deep"}],
        [{"voice": "", "text": "deep"}],
        [{"voice": "af_sky] [voice:af_bella", "text": "deep"}],
        [TURNS[0], {"voice": "nobody", "text": "deep"}],
        [TURNS[0], {"voice": "af_sky(" + "1" * 200 + ")", "text": "deep"}],
    ],
)
def test_wrong_turns_are_refused_and_named(tones: RunningServer, turns: Any) -> None:
    for stream in (True, False):
        response = tones.post("/dev/dialogue", {"turns": turns, "stream": stream})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "turns")


def test_a_dialogue_has_no_more_than_its_limit_of_turns(tones: RunningServer) -> None:
    response = tones.post("/dev/dialogue", {"turns": [TURNS[0]] * 10_001})
    assert_error(response, 400, "invalid_input", "turns")


# -- voices that a request names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("voice", ["narrator", "NARRATOR", " Narrator "])
def test_an_alias_is_its_voice_in_any_case(tones: RunningServer, voice: str) -> None:
    response = tones.speak(voice=voice, voice_aliases=SLOW)
    assert (response.status_code, response.headers["x-voice-used"]) == (200, "bm_george")
    assert "x-ignored" not in response.headers
    assert_error(tones.speak(voice="narrator"), 400, "voice_not_found", "voice")


def test_the_rate_of_an_alias_multiplies_speed_and_marks(tones: RunningServer) -> None:
    def length(text: str, **options: Any) -> float:
        return seconds(tones, input=text, **options)

    text = "Deep water runs under an old bridge."
    plain = length(text, voice="af_bella")
    slow = {"voice": "slow poke", "voice_aliases": SLOW}
    assert length(text, **slow) == pytest.approx(2 * plain, rel=0.05)
    assert length(text, **slow, speed=2) == pytest.approx(plain, rel=0.05)
    assert length(f"[rate:0.8]{text}", **slow) == pytest.approx(plain / 0.4, rel=0.05)
    assert length(f"[voice:SLOW POKE]{text}", voice_aliases=SLOW) == pytest.approx(2 * plain, rel=0.05)
    assert length(f"[voice:af_bella]{text}", **slow) == pytest.approx(plain, rel=0.05)
    ssml = f'<speak><voice name="Slow poke">{text}</voice></speak>'
    assert length(ssml, voice_aliases=SLOW) == pytest.approx(2 * plain, rel=0.05)


def test_aliases_work_in_turns(tones: RunningServer) -> None:
    turns = [{"voice": "slow poke", "text": "Deep water."}, {"voice": "narrator", "text": "Deep water."}]
    once = seconds(tones, input="Deep water.")
    both = seconds(tones, "/dev/dialogue", turns=turns, voice_aliases=SLOW)
    assert both == pytest.approx(seconds(tones, input="Deep water.", speed=0.5) + once)


@pytest.mark.parametrize(
    "aliases",
    [
        *(
            {"a]b": "af_sky"},
            {"": "af_sky"},
            {"x" * 101: "af_sky"},
            {str(n): "af_sky" for n in range(101)},
            [],
            {"a": 7},
        ),
        *({"a": {}}, {"a": {"voice": "af_sky", "rate": 9}}, {"a": {"voice": "af_sky", "pace": 1}}),
    ],
)
def test_wrong_aliases_are_refused(tones: RunningServer, aliases: Any) -> None:
    assert_error(tones.speak(voice_aliases=aliases), 400, "invalid_input", "voice_aliases")


def test_an_alias_of_an_unknown_voice_is_refused_where_it_is_used(tones: RunningServer) -> None:
    aliases = {"ghost": "nobody"}
    assert_error(tones.speak(voice="ghost", voice_aliases=aliases), 400, "voice_not_found", "voice")
    assert_error(tones.speak(input="a [voice:ghost] b", voice_aliases=aliases), 400, "voice_not_found", "voice")
    assert tones.speak(voice_aliases=aliases).status_code == 200


def test_an_alias_in_a_mark_speaks_the_language_of_its_voice(tones: RunningServer) -> None:
    asked = {"input": "deep [voice:ann] runs", "stream": False}
    french = tones.post("/dev/captioned_speech", {**asked, "voice_aliases": {"ann": "ff_siwis"}})
    named = tones.post("/dev/captioned_speech", {**asked, "input": "deep [voice:ff_siwis] runs"})
    assert french.json()["audio"] == named.json()["audio"]


# -- words ---------------------------------------------------------------------------------------------------------


def test_each_word_has_its_voice_where_tags_are_allowed(tones: RunningServer) -> None:
    text = "Deep [voice:narrator] water [voice:af_bella(2)+af_sky] runs [/voice] here."
    rows = words(tones, text, voice="am_puck", voice_aliases=SLOW, allow_voice_tags=True)
    assert [row["voice"] for row in rows] == ["am_puck", "bm_george", "af_bella(2)+af_sky", "am_puck"]
    assert "voice" not in words(tones, text, voice_aliases=SLOW)[0]
    ssml = '<speak>Deep <voice name="af_sky">water</voice> runs.</speak>'
    assert [row["voice"] for row in words(tones, ssml, allow_voice_tags=True)] == ["af_heart", "af_sky", "af_heart"]


def test_pauses_by_rule_are_those_of_the_request(tones: RunningServer) -> None:
    text = "Deep water, runs. Under.\n\nAn old bridge."
    plain = seconds(tones, input=text)
    assert seconds(tones, input=text, pauses={"sentence": 1000}) == pytest.approx(plain + 1, abs=0.1)
    assert seconds(tones, input=text, pauses={"paragraph": 1350}) == pytest.approx(plain + 1)
    items = "- deep\n- water"  # a comma is spoken between them
    longer = seconds(tones, input=items, pauses={"comma": 400, "sentence": None})
    assert longer == pytest.approx(seconds(tones, input=items) + 0.4)


def test_a_wrong_pause_is_named_and_chapters_are_for_books(tones: RunningServer) -> None:
    body = {"input": "Deep.", "voice": "af_bella"}
    response = tones.post("/v1/audio/speech", {**body, "pauses": {"comma": 1001}})
    assert_error(response, 400, "invalid_input", param="pauses.comma")
    response = tones.post("/v1/audio/speech", {**body, "pauses": {"chapter": 100}})
    assert (response.status_code, response.headers["x-ignored"]) == (200, "pauses.chapter")
