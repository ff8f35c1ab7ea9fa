"""Text that arrives in pieces is spoken as the whole would be: no word lost, doubled, parted or out of order."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import Spelling
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text import incremental as arriving
from tutti.text.aligned_text import Span
from tutti.text.clean import clean
from tutti.text.incremental import MOST_WAITING, Intake, Segment, segments

MEAN = "aB. ,;:!?\n\r\"'[](){}<>/*_`~#-=1350$%&|。、は\u200b\u0301\ud83d\ude00…–—é"
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


def released(deltas: Sequence[str]) -> list[Segment]:
    """What goes to be spoken when it is asked for after every piece."""
    intake = Intake()
    made = []
    for delta in deltas:
        intake.add(delta)
        made.append(intake.take())
    intake.flush()
    made.append(intake.take())
    return [stretch for stretch in made if stretch]


def said(text: str, at: int = 0) -> list[tuple[str, Span]]:
    return [
        (word.phonemes, (word.span[0] + at, word.span[1] + at))
        for chunk in chunks(text, "en-us", Spelling().pronounce)
        for word in chunk.words
    ]


@given(text=st.text(st.sampled_from(MEAN), max_size=150) | st.text(max_size=60), places=st.lists(st.integers(0, 150)))
@settings(deadline=None)
def test_the_stretches_joined_are_the_text(text: str, places: list[int]) -> None:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # a pair is one character
    made = released(cut(text, places))
    assert "".join(stretch.text for stretch in made) == whole
    assert all(whole.startswith(stretch.text, stretch.at) for stretch in made)


@given(pieces=st.lists(PIECES, max_size=12), places=st.lists(st.integers(0, 400), max_size=40), small=st.booleans())
@settings(deadline=None, max_examples=400)
def test_the_words_are_those_of_the_whole_text(pieces: list[str], places: list[int], small: bool) -> None:
    text = "".join(pieces)
    deltas = list(text) if small else cut(text, places)
    assert [word for stretch in released(deltas) for word in said(stretch.text, stretch.at)] == said(text)


@pytest.mark.parametrize(
    ("come", "gone"),
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
def test_only_what_nothing_can_change_is_released(come: str, gone: str) -> None:
    intake = Intake()
    intake.add(come)
    stretch = intake.take()
    assert (stretch.text if stretch else "") == gone


def test_only_the_first_clause_goes_before_its_sentence() -> None:
    made = released(
        list("I think that the old bridge, which stands so still, which is deep, which is cold, is it. No.")
    )
    assert made[0].text == "I think that the old bridge, "
    assert len(made) == 2


def test_a_paragraph_keeps_its_pause() -> None:
    made = released(list("It is so.\n\nThen it was. And no"))
    assert [(stretch.text, stretch.pause_s) for stretch in made] == [
        ("It is so.\n\n", 0.0), ("Then it was. ", 0.35), ("And no", 0.0)
    ]  # fmt: skip


def test_two_halves_of_a_character_become_one() -> None:
    intake = Intake()
    for half in ("a \ud83d", "\ude00 b"):
        intake.add(half)
    intake.flush()
    assert intake.take() == Segment("a 😀 b")
    assert intake.n_characters == 5


def test_marks_hold_in_later_stretches() -> None:
    made = released(
        list("[rate:1.2]It is so. [voice:am_adam][lang:fr]Then it was. And [/voice]no. It is. [/rate]Or so.")
    )
    assert [(stretch.text, stretch.marks) for stretch in made] == [
        ("[rate:1.2]It is so. ", ""),
        ("[voice:am_adam][lang:fr]Then it was. ", "[rate:1.2]"),
        ("And [/voice]no. ", "[rate:1.2][voice:am_adam][lang:fr]"),
        ("It is. ", "[rate:1.2]"),
        ("[/rate]Or so.", "[rate:1.2]"),
    ]
    assert all(stretch.said[stretch.at - stretch.shift :] == stretch.text for stretch in made)


def test_a_document_is_read_as_a_whole() -> None:
    text = "<speak>It is so. <voice name='am_adam'>Then it was. And no.</voice> It is. Or so.</speak>"
    assert released(list(text)) == [Segment(text)]


def test_a_flush_lets_everything_go() -> None:
    intake = Intake()
    intake.add("Hold on")
    intake.flush()
    assert intake.take() == Segment("Hold on")
    intake.add(" a moment")
    assert intake.take() is None


@pytest.mark.parametrize(
    ("come", "gone"),
    [("Hold on", "Hold "), ("Hold on.", "Hold on."), ("It is 3.", "It is "), ("Hold [pau", ""), ("Hold ", "Hold ")],
)
def test_a_pause_lets_whole_words_go(come: str, gone: str) -> None:
    intake = Intake(pause_s=2.0)
    intake.add(come, now=10.0)
    assert intake.wake_s == 12.0
    assert intake.take(now=11.9) is None
    stretch = intake.take(now=12.0)
    assert (stretch.text if stretch else "") == gone
    assert intake.wake_s is None  # one pause is one flush


def test_a_text_without_end_does_not_wait_forever() -> None:
    made = released(["on and on "] * 1000)
    assert max(len(stretch.text) for stretch in made) <= MOST_WAITING * 1.1


def test_a_sentence_leaves_before_the_next_piece_is_written() -> None:
    async def run() -> None:
        heard = asyncio.Semaphore(0)

        async def author() -> AsyncIterator[str | None]:
            yield "Still water. It "
            await heard.acquire()  # the author waits for what only the first piece can bring about
            yield "is"
            yield None
            await heard.acquire()
            yield " deep."

        made = []
        async for stretch in segments(author(), most=100):
            made.append(stretch)
            heard.release()
        assert made == [Segment("Still water. "), Segment("It is", 13), Segment(" deep.", 18)]

    asyncio.run(run())


def test_what_the_author_breaks_at_is_raised() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "Still"
        raise KeyError("out of words")

    told_to_stop = []

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "on "
                await asyncio.sleep(0)
        except GeneratorExit:
            told_to_stop.append(asyncio.current_task())
            raise

    async def run(author: AsyncIterator[str]) -> None:
        try:
            async for _ in segments(author, most=100):
                pass
        finally:
            told_to_stop.append("raised")

    with pytest.raises(KeyError):
        asyncio.run(run(broken()))
    told_to_stop.clear()
    with pytest.raises(InvalidInput, match="100"):
        asyncio.run(run(endless()))
    assert told_to_stop[-1] == "raised"
    assert len(told_to_stop) == 2, "not by the end of the loop"


def test_pieces_of_one_character_are_not_read_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(arriving, "clean", lambda text: looks.append(len(text)) or clean(text))
    text = "[a. B " * 300  # a border in every piece, and none of them sure
    assert "".join(stretch.text for stretch in released(list(text))) == text
    assert sum(looks) < 200 * len(text)
