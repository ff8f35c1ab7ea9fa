"""The test set is complete: every sentence can be scored in words and in phonemes."""

from collections import Counter

from benchmarks.score import expand, sentences, spread, word_errors, words
from tutti.text import vocab


def test_every_category_has_a_dozen_sentences() -> None:
    counts = Counter(sentence.category for sentence in sentences())
    assert len(counts) == 12
    assert min(counts.values()) >= 12


def test_no_sentence_comes_twice() -> None:
    texts = [sentence.text for sentence in sentences()]
    assert len(set(texts)) == len(texts)


def test_kokoro_knows_every_symbol_of_the_references() -> None:
    assert not [s.text for s in sentences() for p in s.phonemes if vocab.split_known(p)[1]]


def test_every_reading_is_words_and_scores_perfectly_against_itself() -> None:
    for sentence in sentences():
        for reading in sentence.readings:
            assert not any(c.isdigit() or c in "{}|$€£¥%°@/#&<>" for c in reading), reading
            assert words(reading), reading
        assert word_errors(sentence.readings, sentence.readings[-1]).wrong == 0


def test_choices_expand_in_every_combination() -> None:
    assert expand("{a|b} c {d|e f}") == ("a c d", "a c e f", "b c d", "b c e f")


def test_a_sample_of_the_set_has_every_category() -> None:
    assert {s.category for s in spread(sentences(), 24)} == {s.category for s in sentences()}
