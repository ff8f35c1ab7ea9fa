"""Sound before the sentence is finished, on the tone model: the same samples and words, only sooner."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FailingModel, Gate, RecordingModel, Running, running, tone_engine
from tutti.batching.cost import CostModel
from tutti.engine.build import PRIORS
from tutti.engine.engine import Engine
from tutti.engine.request import StreamRequest
from tutti.engine.word_times import join
from tutti.errors import ModelFailed
from tutti.model.spans import LIGHT_SPANS, SEARCH_FRAMES, SpanRules, quiet_end
from tutti.model.tone import FRAMES_PER_TOKEN
from tutti.speech import SAMPLES_PER_FRAME, Frames, Span, Speech, SpeechParams
from tutti.voices import Voices

LONG = "the old stone bridge stands still over the deep dark water that runs under it all night and all day without end"
SLOW = (0.01, 0.002, 0.001, 0.017)  # coefficients of a device that takes 0.4 s for a second of audio
RULES = (LIGHT_SPANS, SpanRules(first=40, min_row=200, context=4, once=0.1))  # spans with much and with little context


@pytest.fixture
def model() -> RecordingModel:
    return RecordingModel()


@pytest.fixture
def engine(voices: Voices, model: RecordingModel) -> Iterator[Running]:
    with running(tone_engine(voices, lambda: model)) as engine:
        yield engine


def is_later_span(rows: Sequence[Frames]) -> bool:
    """Whether a batch has a span that is not the first of its row."""
    return any(isinstance(row, Span) and row.start > 0 for row in rows)


@given(rules=st.sampled_from(RULES), n_frames=st.integers(1, 3000), growth=st.floats(1.5, 3.0))
def test_spans_cover_the_row_and_grow(rules: SpanRules, n_frames: int, growth: float) -> None:
    spans = rules.split(n_frames, growth)
    assert spans[0][0] == 0
    assert spans[-1][1] == n_frames
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    lengths = [end - start for start, end in spans]
    assert lengths[:-1] == sorted(lengths[:-1])  # the last is what is left
    assert min(lengths) >= min(n_frames, rules.first / 2)
    assert min(lengths[1:-1], default=rules.least) >= rules.least
    assert len(spans) == 1 if n_frames < rules.min_row else lengths[0] == rules.first


@given(rules=st.sampled_from(RULES), n_frames=st.integers(1, 3000), first=st.integers(0, 200))
def test_a_first_span_can_be_made_longer(rules: SpanRules, n_frames: int, first: int) -> None:
    spans = rules.split(n_frames, 2.0, first=first)
    assert spans[0][0] == 0
    assert spans[-1][1] == n_frames
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert len(spans) == 1 or spans[0][1] == max(rules.first, first)
    assert spans[-1][1] - spans[-1][0] >= min(n_frames, rules.first / 2)


@given(rules=st.sampled_from(RULES), n_frames=st.integers(200, 3000), growth=st.floats(1.5, 3.0))
def test_spans_cost_their_row_and_the_context_at_each_cut(rules: SpanRules, n_frames: int, growth: float) -> None:
    costs = [rules.cost(n_frames, *span) for span in rules.split(n_frames, growth)]
    context = (2 * len(costs) - 1) * rules.context
    assert len(costs) > 1
    assert sum(costs) == pytest.approx(n_frames + (1 - rules.once) * context, abs=len(costs))
    assert rules.once * n_frames < costs[0] < n_frames, "the first has what is done once for the row"


@given(st.lists(st.floats(-10, 10, width=32), min_size=4, max_size=200), st.data())
def test_a_span_ends_at_a_quieter_frame_shortly_before_its_limit(values: list[float], data: st.DataObject) -> None:
    energy = np.repeat(np.array(values, np.float32), 2)
    end = data.draw(st.integers(2, len(values)))
    start = data.draw(st.integers(0, end - 1))
    cut = quiet_end(energy, start, end)
    assert max((start + end) / 2, end - SEARCH_FRAMES) <= cut <= end
    assert energy[2 * cut - 2 : 2 * cut + 1].max() <= energy[max(0, 2 * end - 3) : 2 * end + 3].max()


def test_a_stream_begins_with_a_span_and_equals_the_whole_speech_sample_for_sample(
    engine: Running, model: RecordingModel
) -> None:
    text = f"{LONG}. {LONG}."
    streamed = engine.stream(text)
    assert 0 < len(streamed[0].samples) <= LIGHT_SPANS.first * SAMPLES_PER_FRAME
    parts = [row for batch in model.vocoder_calls for row in batch if isinstance(row, Span)]
    assert len(parts) > 2, "nothing was cut"
    whole = engine.speak(text)
    assert np.array_equal(np.concatenate([speech.samples for speech in streamed]), whole.samples)
    assert join(streamed).words == whole.words


def test_each_word_comes_with_the_span_in_which_it_begins(engine: Running) -> None:
    streamed, clock = engine.stream(LONG), 0.0
    assert len(streamed) > 2
    for speech in streamed:
        assert all(clock <= word.start_s < clock + speech.duration_s for word in speech.words)
        clock += speech.duration_s
    assert [LONG[slice(*word.span)] for speech in streamed for word in speech.words] == LONG.split()
    assert all(a.span[1] <= b.span[0] for a, b in pairwise(speech for speech in streamed if speech.words))


def test_whole_and_bulk_deliveries_get_whole_rows(engine: Running, model: RecordingModel) -> None:
    engine.speak(LONG)
    engine.stream(LONG, delivery="bulk")
    assert not any(isinstance(row, Span) for batch in model.vocoder_calls for row in batch)


def test_only_the_first_chunk_is_cut(engine: Running, model: RecordingModel) -> None:
    engine.stream(f"{LONG}. " * 4)
    cut = {id(row.features) for batch in model.vocoder_calls for row in batch if isinstance(row, Span)}
    assert len(cut) == 1


def test_a_listener_slower_than_the_engine_still_hears_every_span(
    voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans of the next chunks are made, one after the other, before they are asked for."""
    # Later chunks are cut on slow devices only, and tones take no time: nothing may be learned from them.
    monkeypatch.setitem(PRIORS, ("onnx", "cpu", "light"), SLOW)
    monkeypatch.setattr(CostModel, "learn", lambda *_: 0.0)
    text, model = f"{LONG}. " * 3, RecordingModel()

    async def slow_listener(engine: Engine) -> list[Speech]:
        speeches = []
        async for speech in engine.stream(StreamRequest(text, SpeechParams("af_heart"))):
            speeches.append(speech)
            while sum(engine.batchers[0].scheduler.waiting().values()) or engine.workers()["busyWorkers"]:
                await asyncio.sleep(0.001)
        return speeches

    with running(tone_engine(voices, lambda: model, capped=True)) as engine:
        speeches = engine.portal.call(slow_listener, engine.engine)
        cut = {id(row.features) for batch in model.vocoder_calls for row in batch if isinstance(row, Span)}
        assert len(cut) > 1, "later chunks are cut, too"
        assert np.array_equal(join(speeches).samples, engine.speak(text).samples)


def test_spans_of_many_streams_do_not_mix(voices: Voices) -> None:
    texts = [f"{word} {LONG}" for word in ("deep", "still", "tonight", "old", "water", "stone")]
    with running(tone_engine(voices)) as engine:

        async def all_at_once() -> list[list[Speech]]:
            async def one(text: str) -> list[Speech]:
                return [speech async for speech in engine.engine.stream(StreamRequest(text, SpeechParams("af_heart")))]

            return await asyncio.gather(*map(one, texts))

        streams = engine.portal.call(all_at_once)  # first: once it is known how fast the tones are, rows stay whole
        expected = [engine.speak(text).samples for text in texts]
    assert max(map(len, streams)) > 2
    for streamed, samples in zip(streams, expected, strict=True):
        assert np.array_equal(np.concatenate([speech.samples for speech in streamed]), samples)


def test_after_a_stream_is_closed_its_later_spans_are_not_computed(voices: Voices) -> None:
    model = RecordingModel(gate=Gate(n_permits=0), gated=is_later_span)
    with running(tone_engine(voices, lambda: model)) as engine:

        async def first_only() -> None:
            async with aclosing(engine.engine.stream(StreamRequest(LONG, SpeechParams("af_heart")))) as stream:
                await anext(stream)

        engine.portal.call(first_only)
        model.gate.open()
        engine.speak("deep water")
        later = [
            row
            for batch in model.vocoder_calls
            for row in batch
            if isinstance(row, Span) and row.start > LIGHT_SPANS.first
        ]
        assert not later, "a span was computed after the stream was closed"
        assert engine.engine.batch_stats.as_dict()["outcomes"]["cancelled"] == 1
        assert not engine.engine.batchers[0]._rows


def test_a_failed_span_is_raised_after_the_spans_before_it(voices: Voices) -> None:
    speeches: list[Speech] = []
    with running(tone_engine(voices, lambda: FailingModel(is_later_span))) as engine:

        async def listen() -> None:
            async for speech in engine.engine.stream(StreamRequest(LONG, SpeechParams("af_heart"))):
                speeches.append(speech)

        with pytest.raises(ModelFailed, match="made this batch fail"):
            engine.portal.call(listen)
    assert len(speeches) == 1


def test_a_short_sentence_stays_whole(engine: Running, model: RecordingModel) -> None:
    assert len("deep water") * FRAMES_PER_TOKEN < LIGHT_SPANS.min_row
    engine.stream("deep water")
    assert not any(isinstance(row, Span) for batch in model.vocoder_calls for row in batch)
