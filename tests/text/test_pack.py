"""Packing: nothing lost, nothing too long, sound early, paragraphs and pauses kept apart."""

import itertools
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import InvalidInput
from tutti.speech import MAX_PHONEMES
from tutti.text import chunks
from tutti.text.chunk import Chunk, Reading, Word
from tutti.text.pack import PARAGRAPH_PAUSE_S, pack
from tutti.text.spoken import Spoken

words = st.builds(
    Word,
    phonemes=st.text("abˈə", min_size=1, max_size=12) | st.just("ˈænd") | st.text("ab", min_size=500, max_size=1300),
    span=st.tuples(st.integers(0, 9), st.integers(10, 20)),
    before=st.sampled_from(["", "“", "("]),
    after=st.sampled_from([" ", "", ", ", ". ", "; ", "… ", "."]),
)
readings = st.builds(
    Reading, st.lists(words, max_size=60).map(tuple), st.lists(st.sampled_from("€☃"), max_size=2).map(tuple)
)
items = st.lists(st.tuples(readings, st.just(0.0) | st.floats(0.1, 60)), max_size=12)


_JOINS = str.maketrans("", "", " ,")  # what the packer may put between two sentences


def symbols(made: list[Chunk]) -> str:
    return "".join(word.symbols for chunk in made for word in chunk.words).translate(_JOINS)


@given(items)
def test_nothing_is_lost_doubled_or_moved(given_items: list[tuple[Reading, float]]) -> None:
    made = list(pack(given_items))
    said = [word for item, _ in given_items for word in item.words]
    assert symbols(made) == "".join(word.symbols for word in said).translate(_JOINS)
    assert [s for chunk in made for s in chunk.dropped] == [s for item, _ in given_items for s in item.dropped]
    if all(len(word.symbols) <= MAX_PHONEMES for word in said):
        packed = [word for chunk in made for word in chunk.words]
        assert [(w.phonemes, w.span, w.before, w.after.rstrip(" ,")) for w in packed] == [
            (w.phonemes, w.span, w.before, w.after.rstrip(" ,")) for w in said
        ]


@given(items, st.integers(20, 100), st.integers(30, 400), st.integers(60, MAX_PHONEMES))
def test_no_chunk_is_too_long(given_items: list[tuple[Reading, float]], first: int, target: int, most: int) -> None:
    made = pack(given_items, first_symbols=first, target_symbols=target, max_symbols=most)
    assert all(len(chunk.phonemes) <= most for chunk in made)


@given(items)
def test_every_pause_ends_a_chunk(given_items: list[tuple[Reading, float]]) -> None:
    made = list(pack(given_items))
    pauses = [pause_s for _, pause_s in given_items if pause_s]
    assert [chunk.pause_s for chunk in made if chunk.pause_s] == pauses
    for stretch, chunk_group in zip(_stretches(given_items), _groups(made), strict=False):
        assert symbols(chunk_group) == "".join(w.symbols for r in stretch for w in r.words).translate(_JOINS)


def _stretches(given_items: list[tuple[Reading, float]]) -> Iterator[list[Reading]]:
    stretch: list[Reading] = []
    for item, pause_s in given_items:
        stretch.append(item)
        if pause_s:
            yield stretch
            stretch = []


def _groups(made: list[Chunk]) -> Iterator[list[Chunk]]:
    group: list[Chunk] = []
    for chunk in made:
        group.append(chunk)
        if chunk.pause_s:
            yield group
            group = []


def said(text: str) -> list[tuple[Reading, float]]:
    bare = [(word.rstrip(",."), word) for word in text.split()]
    return [(Reading(tuple(Word(word, (0, 1), after=marked[len(word) :] + " ") for word, marked in bare)), 0.0)]


def test_the_first_sentence_is_a_chunk_of_its_own_and_comes_at_once() -> None:
    def endless() -> Iterator[tuple[Reading, float]]:
        yield from said("hˈI ðˈɛɹ.")
        raise AssertionError("asked for more than the first sentence")

    assert next(pack(endless())).phonemes == "hˈI ðˈɛɹ."


def test_a_long_first_sentence_is_cut_at_a_clause() -> None:
    made = list(pack(said("aaa " * 10 + "aaa, " + "bbb " * 10 + "bbb, " + "ccc " * 40 + "ccc.")))
    assert made[0].phonemes.endswith("bbb,")
    assert made[1].phonemes.startswith("ccc")


def test_a_long_first_sentence_without_marks_is_cut_before_a_conjunction() -> None:
    made = list(pack(said("aaa " * 15 + "ˈænd " + "bbb " * 40)))
    assert made[1].phonemes.startswith("ˈænd")


def test_short_sentences_share_a_chunk_and_stay_apart() -> None:
    made = list(pack([*said("a."), *[(Reading((Word("bbbbbbbbb", (0, 1), after="."),)), 0.0)] * 20]))
    assert made[1].phonemes == ". ".join(["bbbbbbbbb"] * 10) + "."
    assert all(100 <= len(chunk.phonemes) + 1 <= 250 for chunk in made[1:-1])


def test_items_without_a_mark_are_set_apart() -> None:
    made = list(pack([*said("a."), *said("mˈɪlk"), *said("ˈɛɡz"), *said("bɹˈɛd")]))
    assert made[1].phonemes == "mˈɪlk, ˈɛɡz, bɹˈɛd"


def test_what_was_dropped_is_told_even_when_nothing_is_said() -> None:
    assert list(pack([(Reading((), ("☃",)), 0.0)])) == [Chunk((), 0.0, ("☃",))]
    assert list(pack([(Reading(()), 2.0)])) == [Chunk((), 2.0)]
    assert list(pack([])) == []


def pronounce(spoken: Spoken, code: str, given_phonemes: Mapping[int, str]) -> Reading:
    words, start = [], 0
    for text in spoken.text.split():
        start = spoken.text.index(text, start)
        words.append(Word(text, spoken.span(start, start + len(text))))
        start += len(text)
    return Reading(tuple(words))


def test_a_text_runs_straight_from_letters_to_chunks() -> None:
    text = "It cost **$5**. 😀\n\nNew [pause:1.5s] end"
    made = list(chunks(text, "en-us", pronounce))
    assert [(chunk.phonemes, chunk.pause_s, chunk.dropped) for chunk in made] == [
        ("It cost five dollars.", PARAGRAPH_PAUSE_S, ("😀",)),
        ("New", 1.5, ()),
        ("end", 0.0, ()),
    ]
    assert [text[slice(*word.span)] for word in made[0].words] == ["It", "cost", "$5", "$5**."]


def test_only_what_is_asked_for_is_pronounced() -> None:
    seen: list[str] = []

    def counting(spoken: Spoken, code: str, given_phonemes: Mapping[int, str]) -> Reading:
        seen.append(spoken.text)
        return pronounce(spoken, code, given_phonemes)

    list(itertools.islice(chunks("This is said. " * 1000, "en-us", counting), 1))
    assert len(seen) == 1


def test_a_wrong_mark_is_told_before_anything_is_said() -> None:
    with pytest.raises(InvalidInput):
        next(chunks("One. [pause:99s]", "en-us", pronounce))
