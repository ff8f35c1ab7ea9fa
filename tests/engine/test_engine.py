"""The engine on the tone model: every word is spoken once, in order, at its time."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FailingModel, GatedModel, RecordingModel, Running, Spelling, has_token, running, tone_engine
from tutti.admission.ticket import Delivery, Ticket
from tutti.engine.request import MAX_TEXT, StreamRequest
from tutti.engine.word_times import join
from tutti.errors import InvalidInput, ModelFailed, NothingToSpeak, TuttiError, UnknownLanguage, UnknownVoice
from tutti.model.tone import FRAMES_PER_TOKEN, pitch_hz
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Speech, SpeechParams
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Pronunciation
from tutti.text.frontend import DueTime, G2PThread, never
from tutti.text.g2p_messages import OpenText
from tutti.text.vocab import SYMBOLS
from tutti.voices import Voices

FRAME_S = SAMPLES_PER_FRAME / SAMPLE_RATE
TOKEN_S = FRAMES_PER_TOKEN * FRAME_S
AHEAD_S = FRAME_S + TOKEN_S  # words are timed as Kokoro sounds: a frame early, with the space before them


@pytest.fixture(scope="module")
def engine(voices: Voices) -> Iterator[Running]:
    with running(tone_engine(voices)) as engine:
        yield engine


def pitch_at(speech: Speech, time_s: float) -> float:
    """The pitch at a moment, measured from the samples."""
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
    engine: Running, words: list[str], stops: list[int]
) -> None:
    text = " ".join(word + "." * (i in stops) for i, word in enumerate(words))
    speech = engine.speak(text)
    assert [word.word.rstrip(".") for word in speech.words] == words
    assert [text[slice(*word.span)] for word in speech.words] == text.split()
    clock = 0.0
    for word in speech.words:
        assert clock <= word.start_s < word.end_s <= speech.duration_s
        clock = word.end_s
        first = word.word[0]
        onset_s = word.end_s - word.start_s - TOKEN_S * len(word.word.rstrip("."))
        assert 0 < onset_s < 1.01 * TOKEN_S
        assert pitch_at(speech, word.start_s + AHEAD_S) == pytest.approx(pitch_hz(SYMBOLS[first]), abs=25)


def test_a_stream_is_the_speech_in_pieces(engine: Running) -> None:
    text = "The old bridge stands still. " * 40

    streamed, whole = engine.stream(text, delivery="whole"), engine.speak(text)
    assert len(streamed) > 5
    assert np.array_equal(np.concatenate([speech.samples for speech in streamed]), whole.samples)
    assert join(streamed).words == whole.words
    assert all(a.span[1] <= b.span[0] for a, b in pairwise(streamed))


@pytest.mark.parametrize("delivery", ["whole", "bulk"])
def test_only_a_live_text_begins_with_a_short_chunk(engine: Running, delivery: Delivery) -> None:
    text = "The old bridge stands still and deep. Under it deep water runs."
    live, other = engine.stream(text), engine.stream(text, delivery=delivery)
    assert len(live) > 1
    assert len(other) == 1
    assert [word.word for word in join(live).words] == [word.word for word in other[0].words]


def test_a_pause_is_silence_of_its_length_and_moves_what_follows(engine: Running) -> None:
    plain, paused = engine.speak("deep. water."), engine.speak("deep. [pause:1.5s] water.")
    assert len(paused.samples) - len(plain.samples) == pytest.approx(1.5 * SAMPLE_RATE, abs=2 * TOKEN_S * SAMPLE_RATE)
    gap = paused.samples[round((paused.words[0].end_s + 3 * TOKEN_S) * SAMPLE_RATE) :][:SAMPLE_RATE]
    assert not gap.any()
    assert pitch_at(paused, paused.words[1].start_s + AHEAD_S) == pytest.approx(pitch_hz(SYMBOLS["w"]), abs=25)


def test_given_phonemes_are_spoken_and_the_word_is_shown(engine: Running) -> None:
    speech = engine.speak("deep [tomato](/zz/) water")
    assert [word.word for word in speech.words] == ["deep", "tomato", "water"]
    assert speech.words[1].end_s - speech.words[1].start_s == pytest.approx(len(" zz") * TOKEN_S)


def test_words_that_expand_one_written_word_have_one_time(engine: Running) -> None:
    speech = engine.speak("it costs $5 today")
    assert [word.word for word in speech.words] == ["it", "costs", "$5", "today"]
    assert speech.words[2].end_s - speech.words[2].start_s > TOKEN_S * len("five dollars") * 0.8


def test_speed_makes_speech_shorter_and_its_words_earlier(engine: Running) -> None:
    slow, fast = engine.speak("deep water runs", speed=1.0), engine.speak("deep water runs", speed=2.5)
    assert len(fast.samples) * 2 == len(slow.samples)
    assert fast.words[2].start_s * 2 == pytest.approx(slow.words[2].start_s, abs=1.01 * FRAME_S)


@pytest.mark.parametrize("speed", [1.5, 2.0, 4.0])
def test_a_high_speed_is_as_fast_as_asked_for_and_words_stay_where_they_are_heard(
    engine: Running, speed: float
) -> None:
    slow, fast = (
        engine.speak("deep water. [pause:1s] runs", speed=1.25),
        engine.speak("deep water. [pause:1s] runs", speed=speed),
    )
    factor = speed / 1.25
    assert len(fast.samples) - 24_000 == pytest.approx((len(slow.samples) - 24_000) / factor, abs=2)
    for word, same in zip(fast.words[:2], slow.words, strict=False):
        assert (word.start_s, word.end_s) == pytest.approx((same.start_s / factor, same.end_s / factor))
    assert fast.words[2].start_s > fast.words[1].end_s + 1  # a pause keeps its length


@pytest.mark.parametrize(
    ("text", "params", "error", "param"),
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
    engine: Running, text: str, params: dict[str, object], error: type[TuttiError], param: str
) -> None:
    with pytest.raises(error) as caught:
        engine.speak(text, **params)
    assert caught.value.param == param


@pytest.mark.parametrize("text", ["deep\0 water", "deep \ud800 water", "deep \u202e\u200dwater", "\ufeffdeep water"])
def test_odd_characters_do_not_stop_the_words_around_them(engine: Running, text: str) -> None:
    assert [word.word.strip("\0\ud800\u202e\u200d\ufeff ") for word in engine.speak(text).words] == ["deep", "water"]


def test_lost_symbols_are_reported(engine: Running) -> None:
    assert engine.speak("deep 😀 water 😀").dropped == ("😀", "😀")


LONG = "The old bridge stands still under the water tonight and runs deep. " * 200


def test_after_a_stream_is_closed_at_most_two_more_chunks_are_spoken(voices: Voices) -> None:
    model = RecordingModel()

    async def leave_early() -> None:
        async with tone_engine(voices, lambda: model) as engine:
            stream = engine.stream(StreamRequest(LONG, SpeechParams("af_heart")))
            assert len((await anext(stream)).samples)
            await stream.aclose()

    asyncio.run(leave_early())
    assert 1 <= sum(model.batch_sizes) <= 3


def test_each_text_is_due_when_its_listener_has_played_what_was_made_before(voices: Voices) -> None:
    class WatchedFrontend(G2PThread):
        """Notes when the audio of each chunk is needed, as the stream says when it asks for the chunk."""

        async def chunks(self, text: OpenText, due: DueTime = never) -> AsyncIterator[Chunk]:
            async for chunk in super().chunks(text, due):
                yield chunk
                asked_s.append(time.monotonic())
                due_s.append(due())
                audio_s.append(len(chunk.phonemes) * text.symbol_s + chunk.pause_s)
                model.gate.open()

    asked_s, due_s, audio_s = list[float](), list[float](), list[float]()
    model = GatedModel()
    model.gate.close()

    async def run() -> tuple[float, float]:
        engine = tone_engine(voices, lambda: model)
        engine.frontend = WatchedFrontend(Spelling().pronounce)
        async with engine:
            started_s = time.monotonic()
            async for _ in engine.stream(StreamRequest(LONG[:2000], SpeechParams("af_heart"))):
                pass
            return started_s, engine.pacing.target_s

    started_s, target_s = asyncio.run(run())
    assert len(due_s) > 3
    # The second chunk is asked for when the first is queued; the model waits for that.
    for due, asked, played in zip(due_s, asked_s, np.cumsum(audio_s), strict=True):
        assert started_s + target_s + 0.7 * played <= due <= asked + target_s + 1.3 * played


@pytest.mark.parametrize(("delivery", "n_moves"), [("live", 1), ("whole", 0), ("bulk", 0)])
def test_deadlines_move_once_when_the_listener_starts(voices: Voices, delivery: Delivery, n_moves: int) -> None:
    """Chunks were due as if the first audio came at the target; a whole answer is not played yet."""

    async def run() -> list[int]:
        moved: list[int] = []
        async with tone_engine(voices) as engine:
            (batcher,) = engine.batchers
            move_deadlines = batcher.move_deadlines

            def record(stream: int) -> None:
                moved.append(stream)
                move_deadlines(stream)

            batcher.move_deadlines = record  # type: ignore[method-assign]
            request = StreamRequest(LONG[:2000], SpeechParams("af_heart"), Ticket(delivery=delivery))
            async for _ in engine.stream(request):
                pass
        return moved

    assert len(asyncio.run(run())) == n_moves


def test_a_megabyte_of_text_is_pronounced_only_as_far_as_it_is_spoken(voices: Voices) -> None:
    class CountingG2P(Spelling):
        n_sentences = 0

        def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Pronunciation:
            self.n_sentences += 1
            return super().pronounce(spoken, code, given)

    g2p = CountingG2P()

    async def first() -> Speech:
        async with tone_engine(voices, pronounce=g2p.pronounce) as engine:
            stream = engine.stream(StreamRequest(LONG * 75, SpeechParams("af_heart")))
            speech = await anext(stream)
            await stream.aclose()
            return speech

    assert len(LONG * 75) > 1_000_000
    assert asyncio.run(first()).words[0].word == "The"
    assert g2p.n_sentences < 20


def test_the_model_never_runs_on_the_event_loop(voices: Voices) -> None:
    model = RecordingModel()
    loops: set[int] = set()

    async def speak() -> None:
        loops.add(threading.get_ident())
        async with tone_engine(voices, lambda: model) as engine:
            await engine.speak(LONG, SpeechParams("af_heart"))

    asyncio.run(speak())
    assert model.threads
    assert not loops & model.threads


def test_a_failure_in_mid_stream_reaches_the_caller_after_the_good_part(voices: Voices) -> None:
    text = LONG + "A zoo. " + LONG
    words: list[str] = []

    async def run() -> None:
        async with tone_engine(voices, lambda: FailingModel(lambda rows: has_token(rows, SYMBOLS["z"]))) as engine:
            async for speech in engine.stream(StreamRequest(text, SpeechParams("af_heart"))):
                words.extend(word.word for word in speech.words)

    with pytest.raises(ModelFailed):
        asyncio.run(run())
    assert words == text.split()[: len(words)]
    assert len(LONG.split()) - 100 < len(words) <= len(LONG.split())


def test_concurrent_requests_each_get_their_own_audio(engine: Running) -> None:
    texts = [
        f"{word} " * (3 + i)
        for i, word in enumerate(["deep", "water", "runs", "still", "under", "old", "stone", "bridge"])
    ]

    async def all_at_once() -> list[Speech]:
        return await asyncio.gather(*(engine.engine.speak(text, SpeechParams("af_heart")) for text in texts))

    for text, speech in zip(texts, engine.portal.call(all_at_once), strict=True):
        assert [word.word for word in speech.words] == text.split()
        assert np.array_equal(speech.samples, engine.speak(text).samples)


@pytest.mark.parametrize("gone", [0, 1])
def test_a_worker_that_is_gone_gets_no_work_while_another_is_there(voices: Voices, gone: int) -> None:
    with running(tone_engine(voices, n_workers=2)) as engine:
        engine.portal.call(engine.engine.batchers[gone].worker.close)
        assert engine.engine.workers()["readyWorkers"] == 1
        assert [len(engine.speak("still water").words) for _ in range(3)] == [2, 2, 2]
