"""The straight line, on the tone model: every word is heard once, in order, at the time it says."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.engine import MAX_TEXT, Engine, group_sizes, join
from tutti.errors import InvalidInput, ModelFailed, NothingToSpeak, TuttiError, UnknownLanguage, UnknownVoice
from tutti.model.tone import FRAMES_PER_TOKEN, ToneModel, pitch_hz
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Samples, Speech, Utterance
from tutti.text.chunk import Reading, Word
from tutti.text.spoken import Spoken
from tutti.text.vocab import SYMBOLS
from tutti.voices import NAMES, Voices

TOKEN_S = FRAMES_PER_TOKEN * SAMPLES_PER_FRAME / SAMPLE_RATE


class Spelling:
    """G2P that needs no lexicon: a word sounds as it is spelled; what has no letter is dropped."""

    def pronounce(self, spoken: Spoken, code: str, given: Mapping[int, str] = {}) -> Reading:
        words, at = [], 0
        for written in spoken.text.split():
            start = spoken.text.index(written, at)
            at = start + len(written)
            letters = "".join(char for char in written.lower().replace("g", "ɡ") if char.isalpha() and char in SYMBOLS)
            span = spoken.span(start, at)
            said = given.get(span[0], letters)
            if said:
                words.append(Word(said, span, after=". " if written.endswith(".") else " "))
        return Reading(tuple(words))


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Voices:
    folder = tmp_path_factory.mktemp("voices")
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    return Voices(folder)


@pytest.fixture(scope="module")
def engine(voices: Voices) -> Engine:
    return Engine(ToneModel(lanes=2), voices, Spelling())


def speak(engine: Engine, text: str, **asked: object) -> Speech:
    return asyncio.run(engine.speak(text, **{"voice": "af_heart", **asked}))  # type: ignore[arg-type]


def note_at(speech: Speech, time_s: float) -> float:
    """The pitch heard at a moment, measured from the samples."""
    start = round(time_s * SAMPLE_RATE)
    piece = speech.samples[start : start + SAMPLES_PER_FRAME]
    spectrum = np.abs(np.fft.rfft(piece * np.hanning(len(piece)), 1 << 16))
    return float(spectrum.argmax() * SAMPLE_RATE / (1 << 16))


WORDS = st.lists(
    st.sampled_from(["deep", "water", "runs", "still", "under", "the", "old", "stone", "bridge", "tonight"]),
    min_size=1,
    max_size=120,
)


@given(words=WORDS, stops=st.lists(st.integers(0, 119), max_size=30))
def test_every_word_is_timed_once_and_in_order_and_sounds_at_its_time(
    engine: Engine, words: list[str], stops: list[int]
) -> None:
    text = " ".join(word + "." * (i in stops) for i, word in enumerate(words))
    speech = speak(engine, text)
    assert [word.word.rstrip(".") for word in speech.words] == words
    assert [text[slice(*word.span)] for word in speech.words] == text.split()
    clock = 0.0
    for word in speech.words:
        assert clock <= word.start_s < word.end_s <= speech.duration_s
        clock = word.end_s
        first = word.word[0]
        assert word.end_s - word.start_s == pytest.approx(TOKEN_S * len(word.word.rstrip(".")))
        assert note_at(speech, word.start_s + TOKEN_S / 4) == pytest.approx(pitch_hz(SYMBOLS[first]), abs=25)


def test_a_stream_is_the_speech_in_pieces(engine: Engine) -> None:
    text = "The old bridge stands still. " * 40

    async def pieces() -> list[Speech]:
        return [speech async for speech in engine.stream(text, voice="af_heart")]

    streamed, whole = asyncio.run(pieces()), speak(engine, text)
    assert len(streamed) > 5
    assert np.array_equal(np.concatenate([speech.samples for speech in streamed]), whole.samples)
    assert join(streamed).words == whole.words
    assert all(a.span[1] <= b.span[0] for a, b in pairwise(streamed))


def test_a_pause_is_silence_of_its_length_and_moves_what_follows(engine: Engine) -> None:
    plain, paused = speak(engine, "deep. water."), speak(engine, "deep. [pause:1.5s] water.")
    assert len(paused.samples) - len(plain.samples) == pytest.approx(1.5 * SAMPLE_RATE, abs=2 * TOKEN_S * SAMPLE_RATE)
    gap = paused.samples[round((paused.words[0].end_s + 3 * TOKEN_S) * SAMPLE_RATE) :][:SAMPLE_RATE]
    assert not gap.any()
    assert note_at(paused, paused.words[1].start_s + TOKEN_S / 4) == pytest.approx(pitch_hz(SYMBOLS["w"]), abs=25)


def test_given_phonemes_are_said_and_the_word_is_shown(engine: Engine) -> None:
    speech = speak(engine, "deep [tomato](/zz/) water")
    assert [word.word for word in speech.words] == ["deep", "tomato", "water"]
    assert speech.words[1].end_s - speech.words[1].start_s == pytest.approx(2 * TOKEN_S)


def test_several_words_that_read_one_are_one_to_the_listener(engine: Engine) -> None:
    speech = speak(engine, "it costs $5 today")
    assert [word.word for word in speech.words] == ["it", "costs", "$5", "today"]
    assert speech.words[2].end_s - speech.words[2].start_s > TOKEN_S * len("five dollars") * 0.8


def test_speed_makes_speech_shorter_and_its_words_earlier(engine: Engine) -> None:
    slow, fast = speak(engine, "deep water runs", speed=1.0), speak(engine, "deep water runs", speed=2.0)
    assert len(fast.samples) * 2 == len(slow.samples)
    assert fast.words[2].start_s * 2 == pytest.approx(slow.words[2].start_s)


@pytest.mark.parametrize(
    ("text", "asked", "error", "param"),
    [
        ("", {}, NothingToSpeak, "input"),
        (" \n\t ", {}, NothingToSpeak, "input"),
        ("😀🎉👩‍👩‍👧", {}, NothingToSpeak, "input"),
        ("\0\u200b", {}, NothingToSpeak, "input"),
        ("hello", {"voice": "af_hart"}, UnknownVoice, "voice"),
        ("hello", {"style": "nobody"}, UnknownVoice, "voice"),
        ("hello", {"language": "klingon"}, UnknownLanguage, "language"),
        ("hello", {"speed": 0.0}, InvalidInput, "speed"),
        ("hello", {"speed": -1.0}, InvalidInput, "speed"),
        ("hello", {"speed": float("nan")}, InvalidInput, "speed"),
        ("hello", {"speed": 9.0}, InvalidInput, "speed"),
        ("hello [pause:99s]", {}, InvalidInput, "input"),
        ("a" * (MAX_TEXT + 1), {}, InvalidInput, "input"),
    ],
)  # fmt: skip
def test_bad_input_is_named(
    engine: Engine, text: str, asked: dict[str, object], error: type[TuttiError], param: str
) -> None:
    with pytest.raises(error) as caught:
        speak(engine, text, **asked)
    assert caught.value.param == param


@pytest.mark.parametrize("text", ["deep\0 water", "deep \ud800 water", "deep \u202e\u200dwater", "\ufeffdeep water"])
def test_odd_characters_do_not_stop_the_words_around_them(engine: Engine, text: str) -> None:
    assert [word.word.strip("\0\ud800\u202e\u200d\ufeff ") for word in speak(engine, text).words] == ["deep", "water"]


def test_lost_symbols_are_reported(engine: Engine) -> None:
    assert speak(engine, "deep 😀 water 😀").dropped == ("😀", "😀")


class Counting(ToneModel):
    """Counts the rows it voiced, and may break on one."""

    def __init__(self, break_at: int | None = None) -> None:
        super().__init__(lanes=2)
        self.n_rows = 0
        self.threads: set[int] = set()
        self._break_at = break_at

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        self.threads.add(threading.get_ident())
        return super().acoustic(rows)

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        self.n_rows += len(rows)
        if self._break_at is not None and self.n_rows > self._break_at:
            raise ModelFailed("the model broke on a row: test")
        return super().vocoder(rows)


LONG = "The old bridge stands still under the water tonight and runs deep. " * 200


def test_the_first_sound_comes_after_one_row_and_who_leaves_stops_the_work(voices: Voices) -> None:
    model = Counting()

    async def leave_early() -> int:
        stream = Engine(model, voices, Spelling()).stream(LONG, voice="af_heart")
        await anext(stream)
        rows_at_first_sound = model.n_rows
        await stream.aclose()  # type: ignore[attr-defined]
        return rows_at_first_sound

    assert asyncio.run(leave_early()) <= 2
    assert model.n_rows <= 2


def test_a_megabyte_of_text_is_read_only_as_far_as_it_is_spoken(voices: Voices) -> None:
    class Listening(Spelling):
        n_sentences = 0

        def pronounce(self, spoken: Spoken, code: str, given: Mapping[int, str] = {}) -> Reading:
            self.n_sentences += 1
            return super().pronounce(spoken, code, given)

    g2p = Listening()

    async def first() -> Speech:
        stream = Engine(Counting(), voices, g2p).stream(LONG * 75, voice="af_heart")
        speech = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        return speech

    assert len(LONG * 75) > 1_000_000
    assert asyncio.run(first()).words[0].word == "The"
    assert g2p.n_sentences < 20


def test_the_model_never_runs_on_the_event_loop(voices: Voices) -> None:
    model = Counting()
    asyncio.run(Engine(model, voices, Spelling()).speak(LONG, voice="af_heart"))
    assert threading.get_ident() not in model.threads


def test_a_failure_in_mid_stream_reaches_the_caller_after_the_good_part(voices: Voices) -> None:
    async def run() -> None:
        async for _ in Engine(Counting(break_at=3), voices, Spelling()).stream(LONG, voice="af_heart"):
            heard.append(1)

    heard: list[int] = []
    with pytest.raises(ModelFailed):
        asyncio.run(run())
    assert len(heard) == 2


def test_many_at_once_each_hear_their_own(engine: Engine) -> None:
    texts = [
        f"{word} " * (3 + i)
        for i, word in enumerate(["deep", "water", "runs", "still", "under", "old", "stone", "bridge"])
    ]

    async def all_at_once() -> list[Speech]:
        return await asyncio.gather(*(engine.speak(text, voice="af_heart") for text in texts))

    for text, speech in zip(texts, asyncio.run(all_at_once()), strict=True):
        assert [word.word for word in speech.words] == text.split()
        assert np.array_equal(speech.samples, speak(engine, text).samples)


def test_groups_start_small_and_then_keep_every_lane_busy() -> None:
    sizes = group_sizes(lanes=4)
    assert [next(sizes) for _ in range(5)] == [1, 1, 4, 8, 8]
