"""Laws of the times of tokens and characters."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tutti.server.wires.token_times import Token, TokenTimes, char_times
from tutti.speech import WordTime

PIECES = st.lists(st.sampled_from(["deep ", "water", "'s", " — ", ". ", "still.", "今天", "。", "5", " "]), max_size=12)


def words_of(text: str) -> list[WordTime]:
    """A second for each run of letters."""
    return [WordTime(m[0], n, n + 0.8, m.span()) for n, m in enumerate(re.finditer(r"[^\W_]+", text))]


@given(PIECES, st.lists(st.integers(1, 3), max_size=12))
def test_every_token_comes_once_in_order_and_ends_after_it_begins(pieces: list[str], counts: list[int]) -> None:
    text, times, tokens = "".join(pieces), TokenTimes(), list[Token]()
    for piece in pieces:
        times.add(piece)
    words = words_of(text)
    for n in counts:
        tokens += times.take(words[:n])
        del words[:n]
    tokens += times.take(words, is_end=True)
    assert "".join(token.text for token in tokens) == "".join(text.split())
    assert all(token.end_s >= token.start_s for token in tokens)
    assert all(after.start_s >= before.start_s for before, after in pairwise(tokens))


def test_punctuation_belongs_to_its_token_and_its_times_are_those_of_its_words() -> None:
    times, text = TokenTimes(), "Well-known, it runs. "
    times.add(text)
    well, known, it, runs = words_of(text)
    assert times.take([well]) == []  # its second half is not known yet
    assert times.take([known]) == [Token("Well-known,", 0, 1.8, True)]
    assert times.take([it, runs]) == [Token("it", 2, 2.8, True), Token("runs.", 3, 3.8, True)]


def test_chinese_has_a_token_for_each_character() -> None:
    times = TokenTimes()
    times.add("今天好。")
    tokens = times.take([WordTime("今天", 0, 1, (0, 2)), WordTime("好", 1, 2, (2, 3))], is_end=True)
    assert [(token.text, token.start_s, token.end_s) for token in tokens] == [
        ("今", 0, 0.5), ("天", 0.5, 1), ("好", 1, 2), ("。", 2, 2),
    ]  # fmt: skip
    assert "".join(char.char for char in char_times(tokens)) == "今天好。 "


def test_characters_are_spread_evenly_and_followed_by_their_space() -> None:
    assert char_times([Token("ab", 1, 2, True), Token("c", 3, 4, True)]) == [
        ("a", 1), ("b", 1.5), (" ", 2), ("c", 3), (" ", 4),
    ]  # fmt: skip
