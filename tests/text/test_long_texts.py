"""A book is read as a page is: word for word, in little memory, in few steps, and nobody waits for all of it."""

import cProfile
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes import Spelling
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text import incremental as arriving
from tutti.text.chunk import Chunk
from tutti.text.ssml import MAX_DOCUMENT

PARTS = st.sampled_from(
    ["The old bridge ", "stands still. ", "It runs deep, ", "Dr. Stone ", "on May 5, 2024 ", "\n\n", "\r\n\r\n", "\n",
     "says no! ", "at 3.14 ", "U.S. ", "[rate:1.5] ", "[/rate] ", "[voice:af_sky] ", "[so](/sO/) ", "[pause:1s] ",
     "😀 ", "- an item\n", "<b>bold</b> ", "tonight. "]
)  # fmt: skip


def read(text: str) -> Iterator[Chunk]:
    return chunks(text, "en-us", Spelling().pronounce)


def parted(monkeypatch: pytest.MonkeyPatch, n_characters: int) -> None:
    monkeypatch.setattr(arriving, "WINDOW", n_characters)


@given(parts=st.lists(st.lists(PARTS, max_size=6), min_size=5, max_size=20), window=st.integers(300, 900))
@example(parts=[*[[]] * 4, *[["The old bridge "] * 3] * 2, ["\n\n", "😀 ", "[pause:1s] "]], window=300)
@example(parts=[*[[]] * 18, ["The old bridge ", "The old bridge ", "\n\n", "😀 ", "[pause:1s] "]], window=300)
def test_a_text_in_stretches_is_the_same_text(parts: list[list[str]], window: int) -> None:
    text = "deep " + "".join("".join(some) + "It is still water. So it is. " for some in parts)
    whole = list(read(text))
    with pytest.MonkeyPatch.context() as patch:
        parted(patch, window)
        in_parts = list(read(text))
    assert told(in_parts) == told(whole)
    assert sum(chunk.pause_s for chunk in in_parts) == pytest.approx(sum(chunk.pause_s for chunk in whole))


def told(made: list[Chunk]) -> tuple[list[object], list[str]]:
    """The words with their places and manners, and what nobody could say."""
    words: list[object] = [(word.phonemes, word.span, chunk.manner) for chunk in made for word in chunk.words]
    return words, [symbol for chunk in made for symbol in chunk.dropped]


@given(text=st.text(alphabet="a.<p>[]() \n\r/:🇩🇪😀\ud83d\ude00*|", max_size=400), window=st.integers(20, 60))
def test_whatever_is_written_its_stretches_are_the_text(text: str, window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        parted(patch, window)
        stretches = list(arriving.parted(text))
    assert "".join(stretch.text for stretch in stretches) == text
    assert [stretch.at for stretch in stretches] == [
        sum(len(before.text) for before in stretches[:n]) for n in range(len(stretches))
    ]
    assert all(len(stretch.text) <= window for stretch in stretches) or text.lstrip("\ufeff \n\r").startswith("<speak")


def test_a_wrong_mark_on_the_last_page_shows_before_the_first_word() -> None:
    text = "The old bridge stands still.\n\n" * 2000 + "[pause:99s]"
    with pytest.raises(InvalidInput, match="pause:99s"):
        next(read(text))


def test_a_long_document_is_refused_and_says_what_to_send() -> None:
    with pytest.raises(InvalidInput, match="plain text"):
        next(read(f"<speak>{'deep ' * (MAX_DOCUMENT // 5)}</speak>"))


def test_ten_times_the_text_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    parted(monkeypatch, 1000)

    def peak(text: str) -> int:
        tracemalloc.start()
        for _ in read(text):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    page = "“Still water,” she said — and it runs deep… The old bridge stands.\n\n"
    peak(page * 600)  # what is loaded once
    assert peak(page * 600) < 1.5 * peak(page * 60)


NOTHING = ["\ud800", "<p>", "😀", "\0", "\u202e", "\u200d", "*", "</p><br>", "\r", "\n", " \t", "<b>"]


@pytest.mark.parametrize("bit", NOTHING, ids=ascii)
def test_nothing_at_all_is_found_out_in_few_steps(bit: str) -> None:
    text = bit * (90_000 // len(bit))
    profile = cProfile.Profile()
    words = profile.runcall(lambda: [word for chunk in read(text) for word in chunk.words])
    assert words == []
    n_calls = sum(entry.callcount for entry in profile.getstats())
    assert n_calls < 1.5 * len(text)


def test_long_nothing_comes_in_many_small_answers() -> None:
    made = list(read("中。 " * 2000 + "deep"))  # spelled by nobody here
    assert len(made) > 500
    assert [word.phonemes for chunk in made for word in chunk.words] == ["deep"]
