"""Packing: nothing lost, nothing too long, sound early and without a gap, paragraphs and pauses kept apart."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import InvalidInput
from tutti.speech import MAX_PHONEMES
from tutti.text import chunks
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Manner, Reading, Word
from tutti.text.chunker import ENOUGH_SYMBOLS, FIRST_SYMBOLS, PARAGRAPH_PAUSE_S, TARGET_SYMBOLS, TINY_SYMBOLS, pack

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


@given(items, st.booleans())
def test_nothing_is_lost_doubled_or_moved(given_items: list[tuple[Reading, float]], patient: bool) -> None:
    made = list(pack(given_items, patient=patient))
    said = [word for item, _ in given_items for word in item.words]
    assert symbols(made) == "".join(word.symbols for word in said).translate(_JOINS)
    assert [s for chunk in made for s in chunk.dropped] == [s for item, _ in given_items for s in item.dropped]
    if all(len(word.symbols) <= MAX_PHONEMES for word in said):
        packed = [word for chunk in made for word in chunk.words]
        assert [(w.phonemes, w.span, w.before, w.after.rstrip(" ,")) for w in packed] == [
            (w.phonemes, w.span, w.before, w.after.rstrip(" ,")) for w in said
        ]
        ends = {id(item.words[-1]) for item, _ in given_items if item.words}
        assert all(p.after == w.after for p, w in zip(packed, said, strict=True) if id(w) not in ends)


@given(items, st.booleans(), st.integers(20, 100), st.integers(30, 400), st.integers(60, MAX_PHONEMES))
def test_no_chunk_is_too_long(
    given_items: list[tuple[Reading, float]], patient: bool, first: int, target: int, most: int
) -> None:
    made = pack(given_items, patient=patient, first_symbols=first, target_symbols=target, max_symbols=most)
    assert all(len(chunk.phonemes) <= most for chunk in made)


@given(items, st.booleans())
def test_every_pause_ends_a_chunk(given_items: list[tuple[Reading, float]], patient: bool) -> None:
    made = list(pack(given_items, patient=patient))
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


# Sentences that may be cut after every word, each with a pause after it or none.
plain = st.builds(Word, phonemes=st.text("abə", min_size=1, max_size=10), span=st.just((0, 1)), after=st.just(", "))
pauses = st.sampled_from([0.0, 0.0, 0.0, 0.35])


def texts_of(most_words: int) -> st.SearchStrategy[list[tuple[Reading, float]]]:
    sentences = st.lists(plain, min_size=1, max_size=most_words).map(lambda found: Reading(tuple(found)))
    return st.lists(st.tuples(sentences, pauses), min_size=1, max_size=15)


texts = texts_of(3) | texts_of(12) | texts_of(40)


def length(words: tuple[Word, ...]) -> int:
    return sum(len(word.symbols) for word in words)


@given(texts, st.integers(30, FIRST_SYMBOLS))
def test_a_device_twice_as_fast_as_speech_is_late_for_no_more_than_one_short_sentence(
    text: list[tuple[Reading, float]], first: int
) -> None:
    said, ready, heard = 0, 0.0, 0.0
    for n in (length(chunk.words) for chunk in pack(text, first_symbols=first)):
        ready += n / 2
        if n > first:
            assert ready <= heard
            assert n <= 2 * said
        said, heard = said + n, max(ready, heard) + n


@given(texts)
def test_the_first_chunk_is_not_tiny_and_waits_for_no_more_text_than_that_takes(
    text: list[tuple[Reading, float]],
) -> None:
    seen: list[Reading] = []

    def noted() -> Iterator[tuple[Reading, float]]:
        for reading, pause_s in text:
            seen.append(reading)
            yield reading, pause_s

    made = pack(noted())
    first = next(made)
    assert sum(length(reading.words) for reading in seen[:-1]) < TINY_SYMBOLS
    assert length(first.words) <= FIRST_SYMBOLS
    assert length(first.words) >= TINY_SYMBOLS or first.pause_s or not list(made)


@given(texts_of(12))
def test_a_short_sentence_is_cut_only_to_follow_a_tiny_first_one(text: list[tuple[Reading, float]]) -> None:
    short = said("a" * TINY_SYMBOLS)
    short += [item for item in text if length(item[0].words) <= FIRST_SYMBOLS]
    assert chunk_ends(pack(short)) <= sentence_ends(short)


@given(texts)
def test_for_the_patient_every_chunk_is_full_and_only_what_is_too_long_is_cut(
    text: list[tuple[Reading, float]],
) -> None:
    fit = [item for item in text if length(item[0].words) <= TARGET_SYMBOLS]
    made = list(pack(fit, patient=True))
    assert chunk_ends(made) <= sentence_ends(fit)
    starts = dict(zip([0, *sorted(sentence_ends(fit))], (reading for reading, _ in fit), strict=False))
    n_words = 0
    for chunk in made[:-1]:
        n_words += len(chunk.words)
        n = length(chunk.words)
        assert chunk.pause_s or n >= ENOUGH_SYMBOLS or n + length(starts[n_words].words) > TARGET_SYMBOLS


def chunk_ends(made: Iterable[Chunk]) -> set[int]:
    """After how many words."""
    return set(itertools.accumulate(len(chunk.words) for chunk in made))


def sentence_ends(text: list[tuple[Reading, float]]) -> set[int]:
    return set(itertools.accumulate(len(reading.words) for reading, _ in text))


def test_the_first_sentence_is_a_chunk_of_its_own_and_comes_at_once() -> None:
    def endless() -> Iterator[tuple[Reading, float]]:
        yield from said("hˈI ðˈɛɹ, hˌW ˈɑɹ ju dˈuɪŋ tədˈA.")
        raise AssertionError("asked for more than the first sentence")

    assert next(pack(endless())).phonemes == "hˈI ðˈɛɹ, hˌW ˈɑɹ ju dˈuɪŋ tədˈA."


def test_tiny_sentences_begin_together_and_one_more_comes_with_them() -> None:
    def endless() -> Iterator[tuple[Reading, float]]:
        for text in ("jˈɛs.", "nˈO.", "ˌI θˈɪŋk sO tˈu."):
            yield from said(text)
        raise AssertionError("asked for more than is enough")

    assert next(pack(endless())).phonemes == "jˈɛs. nˈO. ˌI θˈɪŋk sO tˈu."


def test_a_tiny_sentence_takes_a_clause_of_a_long_one() -> None:
    made = list(pack([*said("jˈɛs."), *said("aaa " * 15 + "aaa, " + "bbb " * 15 + "bbb.")]))
    assert [chunk.phonemes[-4:] for chunk in made] == ["aaa,", "bbb."]


def test_a_tiny_sentence_stands_alone_where_it_must() -> None:
    uncut = said("aaa " * 30 + "aaa.")
    paused = [(said("jˈɛs.")[0][0], 0.5)]
    slow = [(replace(reading, manner=Manner(rate=0.5)), pause_s) for reading, pause_s in said("nˈO.")]
    for text in ([*said("jˈɛs."), *uncut], [*paused, *said("nˈO.")], [*said("jˈɛs."), *slow]):
        first, _ = pack(text)
        assert first.phonemes == "jˈɛs."


def test_after_a_short_beginning_one_sentence_is_enough() -> None:
    made = list(pack([*said("aaaa bbbb cccc dddd eeee ffff."), *said("a" * 65 + "."), *said("b" * 30 + ".")]))
    assert [chunk.phonemes[0] for chunk in made] == ["a", "a", "b"]


def test_a_long_first_sentence_is_cut_at_a_clause() -> None:
    made = list(pack(said("aaa " * 10 + "aaa, " + "bbb " * 10 + "bbb, " + "ccc " * 40 + "ccc.")))
    assert made[0].phonemes.endswith("bbb,")
    assert made[1].phonemes.startswith("ccc")


def test_a_long_first_sentence_without_marks_is_cut_before_a_conjunction() -> None:
    made = list(pack(said("aaa " * 15 + "ˈænd " + "bbb " * 40)))
    assert made[1].phonemes.startswith("ˈænd")


def test_short_sentences_share_a_chunk_and_stay_apart() -> None:
    made = list(pack([(Reading((Word("bbbbbbbbb", (0, 1), after="."),)), 0.0)] * 80))
    assert made[-2].phonemes == ". ".join(["bbbbbbbbb"] * 10) + "."
    assert [len(chunk.phonemes) + 1 for chunk in made[:4]] == [33, 55, 110, 110]


def test_items_without_a_mark_are_set_apart() -> None:
    (made,) = pack([*said("mˈɪlk"), *said("ˈɛɡz"), *said("bɹˈɛd")])
    assert made.phonemes == "mˈɪlk, ˈɛɡz, bɹˈɛd"


def test_what_was_dropped_is_told_even_when_nothing_is_said() -> None:
    assert list(pack([(Reading((), ("☃",)), 0.0)])) == [Chunk((), 0.0, ("☃",))]
    assert list(pack([(Reading(()), 2.0)])) == [Chunk((), 2.0)]
    assert list(pack([])) == []


def pronounce(spoken: AlignedText, code: str, given_phonemes: Mapping[int, str]) -> Reading:
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

    def counting(spoken: AlignedText, code: str, given_phonemes: Mapping[int, str]) -> Reading:
        seen.append(spoken.text)
        return pronounce(spoken, code, given_phonemes)

    list(itertools.islice(chunks("This is said, and it will do. " * 1000, "en-us", counting), 1))
    assert len(seen) == 1


def test_a_wrong_mark_is_told_before_anything_is_said() -> None:
    with pytest.raises(InvalidInput):
        next(chunks("One. [pause:99s]", "en-us", pronounce))
