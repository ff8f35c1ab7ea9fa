"""A book gives the same words as a page, in constant memory, linear time, and chunk by chunk."""

import cProfile
import gc
import tracemalloc
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes import Spelling
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text import incremental as incremental
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk
from tutti.text.g2p.english import English
from tutti.text.g2p.lexicon import Lexicon, build_table
from tutti.text.g2p.neural import NeuralG2P
from tutti.text.split import MAX_WORD
from tutti.text.ssml import MAX_DOCUMENT

PARTS = st.sampled_from(
    ["The old bridge ", "stands still. ", "It runs deep, ", "Dr. Stone ", "on May 5, 2024 ", "\n\n", "\r\n\r\n", "\n",
     "says no! ", "at 3.14 ", "U.S. ", "[rate:1.5] ", "[/rate] ", "[voice:af_sky] ", "[so](/sO/) ", "[pause:1s] ",
     "😀 ", "- an item\n", "<b>bold</b> ", "tonight. "]
)  # fmt: skip


def read(text: str) -> Iterator[Chunk]:
    return chunks(text, "en-us", Spelling().pronounce)


def set_window(monkeypatch: pytest.MonkeyPatch, n_characters: int) -> None:
    monkeypatch.setattr(incremental, "WINDOW", n_characters)


@given(parts=st.lists(st.lists(PARTS, max_size=6), min_size=5, max_size=20), window=st.integers(300, 900))
@example(parts=[*[[]] * 4, *[["The old bridge "] * 3] * 2, ["\n\n", "😀 ", "[pause:1s] "]], window=300)
@example(parts=[*[[]] * 18, ["The old bridge ", "The old bridge ", "\n\n", "😀 ", "[pause:1s] "]], window=300)
def test_a_text_in_segments_gives_the_same_words(parts: list[list[str]], window: int) -> None:
    text = "deep " + "".join("".join(some) + "It is still water. So it is. " for some in parts)
    whole = list(read(text))
    with pytest.MonkeyPatch.context() as patch:
        set_window(patch, window)
        segmented = list(read(text))
    assert words_and_drops(segmented) == words_and_drops(whole)
    assert sum(chunk.pause_s for chunk in segmented) == pytest.approx(sum(chunk.pause_s for chunk in whole))


def words_and_drops(result: list[Chunk]) -> tuple[list[object], list[str]]:
    """Return the words with their sources and styles, and the dropped symbols."""
    words: list[object] = [
        # A mark changes a whole chunk or some of its words: where a chunk begins may differ.
        (word.phonemes, word.source, chunk.inline_style._replace(rate=chunk.inline_style.rate * word.rate))
        for chunk in result
        for word in chunk.words
    ]
    return words, [symbol for chunk in result for symbol in chunk.dropped]


@given(text=st.text(alphabet="a.<p>[]() \n\r/:🇩🇪😀\ud83d\ude00*|", max_size=400), window=st.integers(20, 60))
def test_the_segments_of_any_text_joined_are_the_text(text: str, window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        set_window(patch, window)
        segments = list(incremental.split_text(text))
    assert "".join(segment.text for segment in segments) == text
    assert [segment.at for segment in segments] == [
        sum(len(before.text) for before in segments[:n]) for n in range(len(segments))
    ]
    assert all(len(segment.text) <= window for segment in segments) or text.lstrip("\ufeff \n\r").startswith("<speak")


def test_a_wrong_mark_on_the_last_page_is_an_error_before_the_first_chunk() -> None:
    text = "The old bridge stands still.\n\n" * 2000 + "[pause:99s]"
    with pytest.raises(InvalidInput, match="pause:99s"):
        next(read(text))


def test_long_ssml_is_refused_and_the_error_says_what_to_send() -> None:
    with pytest.raises(InvalidInput, match="plain text"):
        next(read(f"<speak>{'deep ' * (MAX_DOCUMENT // 5)}</speak>"))


@pytest.mark.slow
def test_ten_times_the_text_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    set_window(monkeypatch, 1000)

    def peak(text: str) -> int:
        tracemalloc.start()
        for _ in read(text):
            gc.collect()  # empties the interpreter's lists of freed objects, which count as allocated
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    page = "“Still water,” she said — and it runs deep… The old bridge stands.\n\n"
    peak(page * 60)  # loads caches
    gc.freeze()  # so that a collection looks only at what is new
    try:
        assert peak(page * 600) < 1.5 * peak(page * 60)
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("word", ["a'" * 500, "你a" * 500])
def test_no_word_is_guessed_in_one_piece_that_is_longer_than_words_are(word: str) -> None:
    english = English(Lexicon(build_table({}, {})), NeuralG2P("en-us"), "en-us")
    with patch.object(NeuralG2P, "guess", return_value="a") as guess:
        english.pronounce(AlignedText.of(word))
    assert guess.called
    assert max(len(call.args[0]) for call in guess.call_args_list) <= MAX_WORD


NOTHING = ["\ud800", "<p>", "😀", "\0", "\u202e", "\u200d", "*", "</p><br>", "\r", "\n", " \t", "<b>"]


@pytest.mark.parametrize("bit", NOTHING, ids=ascii)
def test_text_without_words_takes_linear_time(bit: str) -> None:
    text = bit * (90_000 // len(bit))
    profile = cProfile.Profile()
    words = profile.runcall(lambda: [word for chunk in read(text) for word in chunk.words])
    assert words == []
    n_calls = sum(entry.callcount for entry in profile.getstats())
    assert n_calls < 1.5 * len(text)


def test_long_text_without_words_gives_many_empty_chunks() -> None:
    result = list(read("中。 " * 2000 + "deep"))  # the fake G2P cannot spell this
    assert len(result) > 500
    assert [word.phonemes for chunk in result for word in chunk.words] == ["deep"]
