"""Chunker: nothing lost, nothing too long, audio early and without gaps, pauses between chunks."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling
from tutti.errors import InvalidInput
from tutti.speech import MAX_PHONEMES
from tutti.text import chunks
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, ChunkPace, InlineStyle, PhonemeWord, Pronunciation
from tutti.text.chunker import (
    EARLY_SYMBOLS,
    ENOUGH_SYMBOLS,
    SLOW,
    TARGET_SYMBOLS,
    TINY_SYMBOLS,
    Chunker,
)
from tutti.text.options import TextOptions

FIRST_SYMBOLS = ChunkPace().first_symbols

words = st.builds(
    PhonemeWord,
    phonemes=st.text("abˈə", min_size=1, max_size=12) | st.just("ˈænd") | st.text("ab", min_size=500, max_size=1300),
    source=st.tuples(st.integers(0, 9), st.integers(10, 20)),
    before=st.sampled_from(["", "“", "("]),
    after=st.sampled_from([" ", "", ", ", ". ", "; ", "… ", "."]),
    style=st.none(),
)
sentences_with_drops = st.builds(
    Pronunciation, st.lists(words, max_size=60).map(tuple), st.lists(st.sampled_from("€☃"), max_size=2).map(tuple)
)
any_text = st.lists(st.tuples(sentences_with_drops, st.just(0.0) | st.floats(0.1, 60)), max_size=12)

Sentences = list[tuple[Pronunciation, float]]  # each with the pause after it
_JOINS = str.maketrans("", "", " ,")  # what the chunker may put between two sentences


def symbols(result: list[Chunk]) -> str:
    return "".join(word.symbols for chunk in result for word in chunk.words).translate(_JOINS)


@given(any_text, st.booleans(), st.integers(10, MAX_PHONEMES))
def test_no_word_is_lost_doubled_or_moved(text: Sentences, whole_text: bool, joined: int) -> None:
    result = list(Chunker(whole_text=whole_text, pace=ChunkPace(joined_symbols=joined)).chunks(text))
    all_words = [word for sentence, _ in text for word in sentence.words]
    assert symbols(result) == "".join(word.symbols for word in all_words).translate(_JOINS)
    assert [s for chunk in result for s in chunk.dropped] == [s for sentence, _ in text for s in sentence.dropped]
    if all(len(word.symbols) <= TARGET_SYMBOLS for word in all_words):
        result_words = [word for chunk in result for word in chunk.words]
        assert [(w.phonemes, w.source, w.before, w.after.rstrip(" ,")) for w in result_words] == [
            (w.phonemes, w.source, w.before, w.after.rstrip(" ,")) for w in all_words
        ]
        ends = {id(sentence.words[-1]) for sentence, _ in text if sentence.words}
        assert all(p.after == w.after for p, w in zip(result_words, all_words, strict=True) if id(w) not in ends)


speeds = st.sampled_from([0.25, 0.5, 0.75, 1.0, 4.0])


@given(any_text, st.booleans(), st.integers(20, 100), st.integers(30, 2 * MAX_PHONEMES), speeds, speeds)
def test_no_chunk_takes_the_device_for_long(
    text: Sentences, whole_text: bool, first: int, target: int, speed: float, rate: float
) -> None:
    marked = [(replace(sentence, inline_style=InlineStyle(rate=rate)), pause_s) for sentence, pause_s in text]
    chunker = Chunker(whole_text=whole_text, pace=ChunkPace(first, speed=speed), target_symbols=target)
    share = min(1.0, speed * rate / SLOW)
    longest = max(int(share * min(target, MAX_PHONEMES)), TINY_SYMBOLS)
    assert all(len(chunk.phonemes) <= longest for chunk in chunker.chunks(marked))


@given(st.integers(51, 300), st.booleans(), st.sampled_from([50, 150, MAX_PHONEMES]))
def test_a_clause_that_is_too_long_is_cut_into_parts_of_which_none_is_tiny(
    n_words: int, whole_text: bool, joined: int
) -> None:
    chunker = Chunker(whole_text=whole_text, pace=ChunkPace(joined_symbols=joined))
    result = list(chunker.chunks(one_sentence("deep " * n_words)))
    assert all(ENOUGH_SYMBOLS - 10 <= length(chunk.words) <= TARGET_SYMBOLS for chunk in result)
    assert all(length(chunk.words) <= max(joined, ENOUGH_SYMBOLS) for chunk in result[:-1])


@given(any_text, st.booleans())
def test_every_pause_ends_a_chunk(text: Sentences, whole_text: bool) -> None:
    result = list(Chunker(whole_text=whole_text).chunks(text))
    pauses = [pause_s for _, pause_s in text if pause_s]
    assert [chunk.pause_s for chunk in result if chunk.pause_s] == pauses
    for part, chunk_group in zip(_split_at_pauses(text), _chunks_up_to_pauses(result), strict=False):
        assert symbols(chunk_group) == "".join(w.symbols for r in part for w in r.words).translate(_JOINS)


def _split_at_pauses(text: Sentences) -> Iterator[list[Pronunciation]]:
    part: list[Pronunciation] = []
    for sentence, pause_s in text:
        part.append(sentence)
        if pause_s:
            yield part
            part = []


def _chunks_up_to_pauses(result: list[Chunk]) -> Iterator[list[Chunk]]:
    group: list[Chunk] = []
    for chunk in result:
        group.append(chunk)
        if chunk.pause_s:
            yield group
            group = []


def one_sentence(text: str) -> Sentences:
    stems = [(word.rstrip(",."), word) for word in text.split()]
    sentence = tuple(PhonemeWord(stem, (0, 1), after=word[len(stem) :] + " ") for stem, word in stems)
    return [(Pronunciation(sentence), 0.0)]


# Sentences that may be cut after every word, each with a pause after it or none.
plain_words = st.builds(
    PhonemeWord,
    phonemes=st.text("abə", min_size=1, max_size=10),
    source=st.just((0, 1)),
    before=st.just(""),
    after=st.just(", "),
    style=st.none(),
)
pauses = st.sampled_from([0.0, 0.0, 0.0, 0.35])


def texts_of(most_words: int) -> st.SearchStrategy[Sentences]:
    sentences = st.lists(plain_words, min_size=1, max_size=most_words).map(lambda found: Pronunciation(tuple(found)))
    return st.lists(st.tuples(sentences, pauses), min_size=1, max_size=15)


texts = texts_of(3) | texts_of(12) | texts_of(40)


def length(words: tuple[PhonemeWord, ...]) -> int:
    return sum(len(word.symbols) for word in words)


@given(texts, st.integers(30, FIRST_SYMBOLS), st.sampled_from([0.5, 0.6, 0.7, 0.9]))
def test_a_device_of_the_given_pace_is_late_for_no_more_than_one_short_sentence(
    text: Sentences, first: int, pace: float
) -> None:
    n_before, ready, played = 0, 0.0, 0.0
    for n in (length(chunk.words) for chunk in Chunker(pace=ChunkPace(first, pace)).chunks(text)):
        ready += n * pace
        if n > first:
            assert ready <= played
            assert n * pace <= n_before
        n_before, played = n_before + n, max(ready, played) + n


@given(texts)
def test_the_first_chunk_is_not_tiny_and_needs_no_more_text_than_that(
    text: Sentences,
) -> None:
    requested: list[Pronunciation] = []

    def recorded() -> Iterator[tuple[Pronunciation, float]]:
        for sentence, pause_s in text:
            requested.append(sentence)
            yield sentence, pause_s

    result = Chunker().chunks(recorded())
    first = next(result)
    assert sum(length(sentence.words) for sentence in requested[:-1]) < TINY_SYMBOLS
    assert length(first.words) <= FIRST_SYMBOLS
    assert length(first.words) >= TINY_SYMBOLS or first.pause_s or not list(result)


@given(texts_of(12))
def test_a_short_sentence_is_cut_only_to_follow_a_tiny_first_one(text: Sentences) -> None:
    short = one_sentence("a" * TINY_SYMBOLS)
    short += [sentence for sentence in text if length(sentence[0].words) <= FIRST_SYMBOLS]
    assert chunk_ends(Chunker().chunks(short)) <= sentence_ends(short)


@given(texts)
def test_with_whole_text_every_chunk_is_full_and_only_long_sentences_are_cut(
    text: Sentences,
) -> None:
    fit = [sentence for sentence in text if length(sentence[0].words) <= TARGET_SYMBOLS]
    result = list(Chunker(whole_text=True).chunks(fit))
    assert chunk_ends(result) <= sentence_ends(fit)
    starts = dict(zip([0, *sorted(sentence_ends(fit))], (sentence for sentence, _ in fit), strict=False))
    n_words = 0
    for chunk in result[:-1]:
        n_words += len(chunk.words)
        n = length(chunk.words)
        assert chunk.pause_s or n >= ENOUGH_SYMBOLS or n + length(starts[n_words].words) > TARGET_SYMBOLS


@given(texts, st.integers(10, MAX_PHONEMES))
def test_sentences_are_joined_up_to_the_limit_of_the_pace_and_none_is_cut_for_it(text: Sentences, joined: int) -> None:
    fit = [sentence for sentence in text if length(sentence[0].words) <= TARGET_SYMBOLS]
    result = list(Chunker(whole_text=True, pace=ChunkPace(joined_symbols=joined)).chunks(fit))
    assert chunk_ends(result) <= sentence_ends(fit)
    n_words = 0
    for chunk in result:
        n_sentences = sum(n_words < end <= n_words + len(chunk.words) for end in sentence_ends(fit))
        n_words += len(chunk.words)
        assert n_sentences <= 1 or length(chunk.words) <= joined


def chunk_ends(result: Iterable[Chunk]) -> set[int]:
    """Return after how many words chunks end."""
    return set(itertools.accumulate(len(chunk.words) for chunk in result))


def sentence_ends(text: Sentences) -> set[int]:
    return set(itertools.accumulate(len(sentence.words) for sentence, _ in text))


def test_the_first_sentence_is_a_chunk_before_more_text_is_requested() -> None:
    def endless() -> Iterator[tuple[Pronunciation, float]]:
        yield from one_sentence("hˈI ðˈɛɹ, hˌW ˈɑɹ ju dˈuɪŋ tədˈA.")
        raise AssertionError("requested more than the first sentence")

    assert next(Chunker().chunks(endless())).phonemes == "hˈI ðˈɛɹ, hˌW ˈɑɹ ju dˈuɪŋ tədˈA."


def test_tiny_first_sentences_share_a_chunk_with_the_next() -> None:
    def endless() -> Iterator[tuple[Pronunciation, float]]:
        for text in ("jˈɛs.", "nˈO.", "ˌI θˈɪŋk sO tˈu."):
            yield from one_sentence(text)
        raise AssertionError("requested more than is enough")

    assert next(Chunker().chunks(endless())).phonemes == "jˈɛs. nˈO. ˌI θˈɪŋk sO tˈu."


def test_a_tiny_first_sentence_shares_a_chunk_with_a_clause_of_a_long_one() -> None:
    text = [*one_sentence("jˈɛs."), *one_sentence("aaa " * 15 + "aaa, " + "bbb " * 15 + "bbb.")]
    result = list(Chunker().chunks(text))
    assert [chunk.phonemes[-4:] for chunk in result] == ["aaa,", "bbb."]


def test_a_tiny_first_sentence_is_a_chunk_if_nothing_can_join_it() -> None:
    long = one_sentence("aaa " * 30 + "aaa.")
    paused = [(one_sentence("jˈɛs.")[0][0], 0.5)]
    slow = [
        (replace(sentence, inline_style=InlineStyle(rate=0.5)), pause_s) for sentence, pause_s in one_sentence("nˈO.")
    ]
    for text in ([*one_sentence("jˈɛs."), *long], [*paused, *one_sentence("nˈO.")], [*one_sentence("jˈɛs."), *slow]):
        first, _ = Chunker().chunks(text)
        assert first.phonemes == "jˈɛs."


def test_after_a_short_first_chunk_the_second_is_one_sentence() -> None:
    result = list(
        Chunker().chunks(
            [
                *one_sentence("aaaa bbbb cccc dddd eeee ffff."),
                *one_sentence("a" * 65 + "."),
                *one_sentence("b" * 30 + "."),
            ]
        )
    )
    assert [chunk.phonemes[0] for chunk in result] == ["a", "a", "b"]


def test_a_long_first_sentence_is_cut_at_a_clause() -> None:
    result = list(Chunker().chunks(one_sentence("aaa " * 10 + "aaa, " + "bbb " * 5 + "bbb, " + "ccc " * 40 + "ccc.")))
    assert result[0].phonemes.endswith("bbb,")
    assert result[1].phonemes.startswith("ccc")


@pytest.mark.parametrize(
    ("n_first", "n_second", "expected"),
    [(10, 5, 2), (10, 10, 1), (20, 2, 2)],
    ids=["both are early", "the second would be late", "none is early: the last that fits"],
)
def test_of_a_long_first_sentence_an_early_clause_is_enough(n_first: int, n_second: int, expected: int) -> None:
    sentence = "aaa " * n_first + "aaa, " + "bbb " * n_second + "bbb, " + "ccc " * 40 + "ccc."
    first, *_ = Chunker().chunks(one_sentence(sentence))
    assert first.phonemes.count(",") == expected
    assert (len(first.phonemes) <= EARLY_SYMBOLS) == (n_first == 10)
    slow, *_ = Chunker(pace=ChunkPace(first_symbols=99)).chunks(one_sentence(sentence))
    assert slow.phonemes.count(",") == 2  # what is cut short anyway is not cut shorter


def test_a_long_first_sentence_without_marks_is_cut_before_a_conjunction() -> None:
    result = list(Chunker().chunks(one_sentence("aaa " * 15 + "ˈænd " + "bbb " * 40)))
    assert result[1].phonemes.startswith("ˈænd")


def test_short_sentences_share_a_chunk_with_a_space_between() -> None:
    result = list(Chunker().chunks([(Pronunciation((PhonemeWord("bbbbbbbbb", (0, 1), after="."),)), 0.0)] * 80))
    assert result[-2].phonemes == ". ".join(["bbbbbbbbb"] * 10) + "."
    assert [len(chunk.phonemes) + 1 for chunk in result[:4]] == [33, 55, 110, 110]


def test_sentences_without_punctuation_are_separated_by_commas() -> None:
    (result,) = Chunker().chunks([*one_sentence("mˈɪlk"), *one_sentence("ˈɛɡz"), *one_sentence("bɹˈɛd")])
    assert result.phonemes == "mˈɪlk, ˈɛɡz, bɹˈɛd"


def test_dropped_symbols_and_pauses_are_chunks_even_without_words() -> None:
    assert list(Chunker().chunks([(Pronunciation((), ("☃",)), 0.0)])) == [Chunk((), 0.0, ("☃",))]
    assert list(Chunker().chunks([(Pronunciation(()), 2.0)])) == [Chunk((), 2.0)]
    assert list(Chunker().chunks([])) == []


def pronounce(aligned: AlignedText, code: str, ipa_overrides: Mapping[int, str]) -> Pronunciation:
    words, start = [], 0
    for text in aligned.text.split():
        start = aligned.text.index(text, start)
        words.append(PhonemeWord(text, aligned.source(start, start + len(text))))
        start += len(text)
    return Pronunciation(tuple(words))


def test_a_text_becomes_chunks_with_pauses_sources_and_dropped_symbols() -> None:
    text = "It cost **$5**. 😀\n\nNew [pause:1.5s] end"
    result = list(chunks(text, "en-us", pronounce))
    assert [(chunk.phonemes, chunk.pause_s, chunk.dropped) for chunk in result] == [
        ("It cost five dollars.", 0.35, ("😀",)),
        ("New", 1.5, ()),
        ("end", 0.0, ()),
    ]
    assert [text[slice(*word.source)] for word in result[0].words] == ["It", "cost", "$5", "$5**."]


def test_only_requested_chunks_are_pronounced() -> None:
    requested: list[str] = []

    def counting(aligned: AlignedText, code: str, ipa_overrides: Mapping[int, str]) -> Pronunciation:
        requested.append(aligned.text)
        return pronounce(aligned, code, ipa_overrides)

    spoken = (chunk for chunk in chunks("This is said, and it will do. " * 1000, "en-us", counting) if chunk.words)
    next(spoken)
    assert len(requested) == 1


def test_a_wrong_mark_is_an_error_before_the_first_chunk() -> None:
    with pytest.raises(InvalidInput):
        next(chunks("One. [pause:99s]", "en-us", pronounce))


def test_words_that_nobody_wants_come_as_one_and_nothing_else_changes() -> None:
    text = "Deep water runs still (over 5 stones). @ Then it falls! <break time='2s'/> And so on."
    pronounce = Spelling().pronounce
    with_words = list(chunks(text, "en-us", pronounce))
    without = list(chunks(text, "en-us", pronounce, options=TextOptions(with_words=False)))
    assert any(len(chunk.words) > 1 for chunk in with_words)
    assert all(len(chunk.words) == min(1, len(known.words)) for chunk, known in zip(without, with_words, strict=True))
    for chunk, known in zip(without, with_words, strict=True):
        assert (chunk.phonemes, chunk.source) == (known.phonemes, known.source)
        assert chunk._replace(words=()) == known._replace(words=())
