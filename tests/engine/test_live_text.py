"""A text that is still being written, on the tone model: spoken along, word for word, and dropped at once."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.fakes import Gate, GatedModel, Running, running, tone_engine
from tutti.engine.request import StreamRequest
from tutti.errors import NothingToSpeak
from tutti.speech import Speech, SpeechParams
from tutti.text.incremental import Delta
from tutti.voices import Voices


@pytest.fixture(scope="module")
def engine(voices: Voices) -> Iterator[Running]:
    with running(tone_engine(voices)) as engine:
        yield engine


async def pieces(deltas: Sequence[Delta]) -> AsyncIterator[Delta]:
    for delta in deltas:
        await asyncio.sleep(0)
        yield delta


def stream_deltas(engine: Running, deltas: Sequence[Delta]) -> list[Speech]:
    async def run() -> list[Speech]:
        return [
            speech async for speech in engine.engine.stream(StreamRequest(pieces(deltas), SpeechParams("af_heart")))
        ]

    return engine.portal.call(run)


PARTS = st.sampled_from(
    ["The old bridge ", "stands still. ", "It runs deep, ", "and so it is, ", "Dr. Stone ", "on May 5, 2024 ", "\n\n",
     "says no! ", "at 3.14 ", "U.S. ", "[rate:1.5] ", "[/rate] ", "tonight. "]
)  # fmt: skip


@given(parts=st.lists(PARTS, min_size=1, max_size=12), cuts=st.lists(st.integers(0, 300), max_size=20))
@settings(deadline=None, max_examples=examples(60))
def test_words_and_places_are_those_of_the_whole_text(engine: Running, parts: list[str], cuts: list[int]) -> None:
    text = "deep " + "".join(parts)
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    speeches = stream_deltas(engine, [text[a:b] for a, b in pairwise(edges)])
    whole = engine.speak(text)
    words = [word for speech in speeches for word in speech.words]
    assert [(word.word, word.span) for word in words] == [(word.word, word.span) for word in whole.words]
    starts = [word.start_s for word in words]
    assert starts == sorted(starts)


def test_the_first_clause_sounds_while_the_sentence_is_written(engine: Running) -> None:
    async def run() -> list[list[str]]:
        sounded = asyncio.Event()

        async def author() -> AsyncIterator[str]:
            for piece in ("I think ", "that the bri", "dge,", " which "):
                yield piece
            await sounded.wait()  # no more is written before the first audio
            yield "stands still, is old."

        said = []
        async for speech in engine.engine.stream(StreamRequest(author(), SpeechParams("af_heart"))):
            sounded.set()
            said.append([word.word for word in speech.words])
        return said

    first, *rest = engine.portal.call(run)
    assert first == ["I", "think", "that", "the", "bridge,"]
    assert [word for words in rest for word in words] == ["which", "stands", "still,", "is", "old."]


def test_a_paragraph_pauses_as_in_the_whole_text(engine: Running) -> None:
    parts = ("The bridge is old.", "It stands on nine pillars of grey stone.", "It runs.")
    text = "{}\n\n{} {}".format(*parts)
    n_samples = sum(len(speech.samples) for speech in stream_deltas(engine, list(text)))
    apart = sum(len(engine.speak(part).samples) for part in parts)
    assert n_samples == apart + round(0.35 * 24_000)


def test_a_text_without_words_says_so(engine: Running) -> None:
    with pytest.raises(NothingToSpeak):
        stream_deltas(engine, ["", "  ", None, "…"])


def test_what_breaks_the_author_reaches_the_listener(engine: Running) -> None:
    async def run() -> None:
        async def author() -> AsyncIterator[str]:
            yield "Still water. It runs "
            raise ConnectionError("the language model hung up")

        async for _ in engine.engine.stream(StreamRequest(author(), SpeechParams("af_heart"))):
            pass

    with pytest.raises(ConnectionError):
        engine.portal.call(run)


def test_after_a_cancel_only_the_running_batch_ends(voices: Voices) -> None:
    model = GatedModel("acoustic", "vocoder", gate=Gate(n_permits=0))

    async def run() -> None:
        async with tone_engine(voices, lambda: model) as engine:
            written = asyncio.Event()

            async def author() -> AsyncIterator[str]:
                try:
                    for _ in range(100):  # more than is taken ahead, less than a text may have
                        yield "The old bridge stands still under the deep water tonight. "
                        await asyncio.sleep(0)
                    await asyncio.Event().wait()
                finally:
                    written.set()

            stream = engine.stream(StreamRequest(author(), SpeechParams("af_heart")))
            first = asyncio.ensure_future(anext(stream))
            await asyncio.to_thread(model.gate.arrivals.acquire)  # the first batch runs, and is held
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await stream.aclose()
            n_before = model.gate.n_arrived
            assert written.is_set()  # the author was stopped
            model.gate.open()
            spoken = await engine.speak("deep", SpeechParams("af_heart"))
            assert len(spoken.samples)
            assert model.gate.n_arrived == n_before + 2  # both stages of the new text, nothing of the old

    asyncio.run(run())


def test_speech_that_was_taken_is_not_held_while_the_author_thinks(engine: Running) -> None:
    async def run() -> None:
        has_thought = asyncio.Event()

        async def author() -> AsyncIterator[str]:
            yield "Deep water. It "
            await has_thought.wait()
            yield "runs."

        stream = engine.engine.stream(StreamRequest(author(), SpeechParams("af_heart")))
        taken = weakref.ref((await anext(stream)).samples)
        following = asyncio.create_task(anext(stream))
        for _ in range(1000):
            if taken() is None:
                break
            await asyncio.sleep(0.001)  # the worker's thread may refer to it for a moment
        assert taken() is None
        assert not following.done()
        has_thought.set()
        assert len((await following).samples)
        await stream.aclose()

    engine.portal.call(run)


def test_a_mark_holds_for_what_is_written_later(engine: Running) -> None:
    text = "[rate:2]The bridge is old and made of stone. It stands. [/rate]It runs."
    n_samples = sum(len(speech.samples) for speech in stream_deltas(engine, list(text)))
    fast = sum(
        len(engine.speak(part, speed=2).samples) for part in ("The bridge is old and made of stone.", "It stands.")
    )
    assert n_samples == fast + len(engine.speak("It runs.").samples)
