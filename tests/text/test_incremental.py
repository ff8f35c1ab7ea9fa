"""Text that arrives in pieces gives the same words as the whole: none lost, doubled, cut or out of order."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.fakes import Spelling
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text import incremental as incremental
from tutti.text.aligned_text import SourceRange
from tutti.text.clean import clean
from tutti.text.incremental import MAX_BUFFERED, WINDOW, Segment, Segmenter, segments

DIFFICULT = "aB. ,;:!?\n\r\"'[](){}<>/*_`~#-=1350$%&|。、は\u200b\u0301\ud83d\ude00…–—é"
PIECES = st.sampled_from(
    [
        "The old bridge stands still. ", "It runs deep, ", "and the water is cold ", "Dr. Stone ", "at 3.14 ", "5 km ",
        "on May 5, 2024. ", "in the U.S. ", "e.g. here ", "Mr. Fox? ", "No! ", "Yes… ", '"Quiet." ', "(so it was.) ",
        "see https://a.b/c.d?e=f. ", "[pause:1s] ", "[word. one](/wɜːd/) ", "**Bold. Text** ", "*so.* ", "`code. It` ",
        "[link. Text](https://x.y/z) ", "$5.50 ", "3. ", "14 ", "1,000. ", "<b>Big. One</b> ", "<br> ", "well, ",
        "\n\n", "\n\n- one thing\n- another\n\n", "\n\n1. First\n2. Second\n\n", "\n\n# Head\n\n", "A. B. Smith ",
        "I think that it is so, but ", "No. 5 ", "etc. ", "Then ", "& ", "静かな水。", "橋は古い。", "v. 2.0 ",
        "10:30. ", "vs. ",
    ]
)  # fmt: skip


def cut(text: str, places: Sequence[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def segmented(deltas: Sequence[str]) -> list[Segment]:
    """Return the segments when they are taken after every delta."""
    segmenter = Segmenter()
    result = []
    for delta in deltas:
        segmenter.add(delta)
        result.append(segmenter.take())
    segmenter.flush()
    result.append(segmenter.take())
    return [segment for segment in result if segment]


def words_of(text: str, at: int = 0) -> list[tuple[str, SourceRange]]:
    return [
        (word.phonemes, (word.source[0] + at, word.source[1] + at))
        for chunk in chunks(text, "en-us", Spelling().pronounce)
        for word in chunk.words
    ]


@given(
    text=st.text(st.sampled_from(DIFFICULT), max_size=150) | st.text(max_size=60), places=st.lists(st.integers(0, 150))
)
@settings(deadline=None)
def test_the_segments_joined_are_the_text(text: str, places: list[int]) -> None:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    result = segmented(cut(text, places))
    assert "".join(segment.text for segment in result) == whole
    assert all(whole.startswith(segment.text, segment.at) for segment in result)


@given(pieces=st.lists(PIECES, max_size=12), places=st.lists(st.integers(0, 400), max_size=40), small=st.booleans())
@settings(deadline=None, max_examples=examples(400))
def test_the_words_are_those_of_the_whole_text(pieces: list[str], places: list[int], small: bool) -> None:
    text = "".join(pieces)
    deltas = list(text) if small else cut(text, places)
    assert [word for segment in segmented(deltas) for word in words_of(segment.text, segment.at)] == words_of(text)


@pytest.mark.parametrize(
    ("arrived", "released"),
    [
        ("Still water. It", ""),
        ("Still water. It ", "Still water. "),
        ("It costs 3.", ""),
        ("It costs 3.14 now. So ", "It costs 3.14 now. "),
        ("Meet Dr. Stone ", ""),
        ("In the U.S. The", ""),
        ("One. Two. Three. Fo", "One. Two. "),
        ("Go to https://a.b/c.d and", ""),
        ("Wait [pause. Now it", ""),
        ("Wait <b. Now it is", ""),
        ("See [it. Now](/ɪt. n", ""),
        ("I think that the bridge, wh", ""),
        ("I think that the bridge, which ", "I think that the bridge, "),
        ("I think that on May 5, 2024 ", ""),
        ("Well, it ", ""),
        ("- one\n- two\n- ", "- one\n"),
        ("- one\n- two\n- three ", "- one\n- two\n"),
        ("静かな水。橋", "静かな水。"),
        ("静かな水。", ""),
        ("It was so late. \ud83d", ""),
        ("| a. B | c |\n| d. E", ""),
    ],
)
def test_only_text_that_later_text_cannot_change_is_released(arrived: str, released: str) -> None:
    segmenter = Segmenter()
    segmenter.add(arrived)
    segment = segmenter.take()
    assert (segment.text if segment else "") == released


def test_only_the_first_clause_is_released_before_its_sentence_ends() -> None:
    result = segmented(
        list("I think that the old bridge, which stands so still, which is deep, which is cold, is it. No.")
    )
    assert result[0].text == "I think that the old bridge, "
    assert len(result) == 2


def test_a_paragraph_keeps_its_pause() -> None:
    result = segmented(list("It is so.\n\nThen it was. And no"))
    assert [(segment.text, segment.pause_s) for segment in result] == [
        ("It is so.\n\n", 0.0), ("Then it was. ", 0.35), ("And no", 0.0)
    ]  # fmt: skip


def test_surrogate_halves_are_joined() -> None:
    segmenter = Segmenter()
    for half in ("a \ud83d", "\ude00 b"):
        segmenter.add(half)
    segmenter.flush()
    assert segmenter.take() == Segment("a 😀 b")
    assert segmenter.n_characters == 5


def test_marks_stay_in_force_in_later_segments() -> None:
    result = segmented(
        list("[rate:1.2]It is so. [voice:am_adam][lang:fr]Then it was. And [/voice]no. It is. [/rate]Or so.")
    )
    assert [(segment.text, segment.marks) for segment in result] == [
        ("[rate:1.2]It is so. ", ""),
        ("[voice:am_adam][lang:fr]Then it was. ", "[rate:1.2]"),
        ("And [/voice]no. ", "[rate:1.2][voice:am_adam][lang:fr]"),
        ("It is. ", "[rate:1.2]"),
        ("[/rate]Or so.", "[rate:1.2]"),
    ]
    assert all(segment.marked_text[segment.at - segment.offset :] == segment.text for segment in result)


def test_ssml_is_one_segment() -> None:
    text = "<speak>It is so. <voice name='am_adam'>Then it was. And no.</voice> It is. Or so.</speak>"
    assert segmented(list(text)) == [Segment(text)]


def test_a_flush_releases_everything() -> None:
    segmenter = Segmenter()
    segmenter.add("Hold on")
    segmenter.flush()
    assert segmenter.take() == Segment("Hold on")
    segmenter.add(" a moment")
    assert segmenter.take() is None


@pytest.mark.parametrize("part", ["The old bridge stands. ", "deep water ", "[", "a", "```\na\n"])
def test_a_flush_of_a_long_text_is_released_in_windows(part: str) -> None:
    text = part * (3 * WINDOW // len(part))
    segmenter = Segmenter()
    segmenter.add(text)
    segmenter.flush()
    segmenter.add("and on")
    released = list[Segment]()
    while segment := segmenter.take():
        released.append(segment)
        assert len(segment.text) <= WINDOW
    assert "".join(segment.text for segment in released).startswith(text)


@pytest.mark.parametrize(
    ("arrived", "released"),
    [("Hold on", "Hold "), ("Hold on.", "Hold on."), ("It is 3.", "It is "), ("Hold [pau", ""), ("Hold ", "Hold ")],
)
def test_a_pause_releases_complete_words(arrived: str, released: str) -> None:
    segmenter = Segmenter(pause_s=2.0)
    segmenter.add(arrived, now=10.0)
    assert segmenter.wake_s == 12.0
    assert segmenter.take(now=11.9) is None
    segment = segmenter.take(now=12.0)
    assert (segment.text if segment else "") == released
    assert segmenter.wake_s is None  # one pause releases once


def test_text_without_sentence_ends_is_released_too() -> None:
    result = segmented(["on and on "] * 1000)
    assert max(len(segment.text) for segment in result) <= MAX_BUFFERED * 1.1


@pytest.mark.parametrize("part", ["The old bridge stands. ", "deep water ", "\n", "[rate:1.1]a[/rate] ", "```\na\n"])
def test_a_long_text_that_arrives_at_once_is_looked_at_in_windows(part: str) -> None:
    text = part * (5 * WINDOW // len(part))
    segmenter = Segmenter(pause_s=1.0)
    segmenter.add(text, now=0.0)
    released = list[Segment]()
    while segment := segmenter.take(now=9.0):  # long after the pause: its listener is still at an earlier segment
        released.append(segment)
    assert len(released) >= 5
    assert max(len(segment.text) for segment in released) <= WINDOW
    assert text.startswith("".join(segment.text for segment in released))
    segmenter.flush()
    rest = segmenter.take(now=9.0)
    assert "".join(segment.text for segment in [*released, *([rest] if rest else [])]) == text


def test_a_sentence_is_released_before_the_next_delta() -> None:
    async def run() -> None:
        received = asyncio.Semaphore(0)

        async def author() -> AsyncIterator[str | None]:
            yield "Still water. It "
            await received.acquire()  # waits for a segment of the first delta
            yield "is"
            yield None
            await received.acquire()
            yield " deep."

        result = []
        async for segment in segments(author(), max_characters=100):
            result.append(segment)
            received.release()
        assert result == [Segment("Still water. "), Segment("It is", 13), Segment(" deep.", 18)]

    asyncio.run(run())


def test_an_error_of_the_source_is_raised_and_an_endless_source_is_closed() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "Still"
        raise KeyError("out of words")

    events = []

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "on "
                await asyncio.sleep(0)
        except GeneratorExit:
            events.append(asyncio.current_task())
            raise

    async def run(author: AsyncIterator[str]) -> None:
        try:
            async for _ in segments(author, max_characters=100):
                pass
        finally:
            events.append("raised")

    with pytest.raises(KeyError):
        asyncio.run(run(broken()))
    events.clear()
    with pytest.raises(InvalidInput, match="100"):
        asyncio.run(run(endless()))
    assert events[-1] == "raised"
    assert len(events) == 2, "not by the end of the loop"


def test_deltas_of_one_character_are_not_scanned_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[int] = []
    monkeypatch.setattr(incremental, "clean", lambda text: scans.append(len(text)) or clean(text))
    text = "[a. B " * 300  # a possible sentence end in every piece, none of them certain
    assert "".join(segment.text for segment in segmented(list(text))) == text
    assert sum(scans) < 200 * len(text)
