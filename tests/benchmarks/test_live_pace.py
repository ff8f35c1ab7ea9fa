"""The fake author writes the whole text, in pieces of a token's size."""

from benchmarks.live import TEXT, tokens


def test_the_tokens_are_the_text() -> None:
    assert "".join(tokens(TEXT)) == TEXT
    assert max(map(len, tokens(TEXT))) <= 6
