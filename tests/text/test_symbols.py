"""No symbol is lost in silence: each is spoken, or counted and named."""

import sys
from pathlib import Path
from unicodedata import category

import pytest

from tutti.text import chunks
from tutti.text.g2p import G2P
from tutti.text.options import TextOptions, normalization

SYMBOLS = [
    char for char in map(chr, range(sys.maxunicode + 1)) if category(char) in ("Sm", "Sc", "Sk", "So", "No", "Nl")
]
# Marks that structure a text and have no sound: dashes, quotes, dots, markup, the sign of a removed object.
STRUCTURE = frozenset("`´|−∙⋯\u1fef\u1ffd\ufffc")


def read(text: str, g2p: G2P, **switches: bool) -> tuple[int, list[str]]:
    """The number of words of a text, and what of it is not spoken."""
    options = TextOptions(normalization=normalization(switches))
    made = list(chunks(text, "en-us", g2p.pronounce, options=options))
    return sum(len(chunk.words) for chunk in made), [symbol for chunk in made for symbol in chunk.dropped]


@pytest.fixture(scope="module")
def g2p(small_home: Path) -> G2P:
    return G2P(small_home)


def test_every_symbol_of_unicode_is_spoken_or_named(g2p: G2P) -> None:
    lost = []
    for symbol in SYMBOLS:
        n_words, dropped = read(f"dog {symbol} cat", g2p)
        if n_words == 2 and not dropped and symbol not in STRUCTURE:
            lost.append(symbol)
    assert not lost


@pytest.mark.parametrize("text", ["dog{}cat", "dog{} cat", "dog {}G cat", "dog 5{} cat"])
def test_a_symbol_beside_letters_is_spoken_or_named(text: str, g2p: G2P) -> None:
    without, _ = read(text.replace("{}", ""), g2p)
    for symbol in "ΔΩλ∇♭♯℃★†‡☃→∑°½²₂³⁺⁻":
        n_words, dropped = read(text.format(symbol), g2p)
        assert n_words > without or dropped, symbol


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("dog :) cat", [":)"]),
        ("The cat! ;-)", [";-)"]),
        ("dog ^_^", ["^_^"]),
        ("- [x] dog\n- [ ] cat", ["[x]", "[ ]"]),
        ("dog 😀 cat", ["😀"]),
        ("Smith† dog", ["†"]),
        ("dogЖcat", ["Ж"]),
        ("a cat (see the dog) and a dog: 8)", []),
        ("the dog :: cat", []),
    ],
)
def test_emoticons_boxes_and_foreign_letters_are_named(text: str, named: list[str], g2p: G2P) -> None:
    assert read(text, g2p)[1] == named


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dog 😂😂 cat", "dog face with tears of joy cat"),
        ("dog 👍🏽", "dog thumbs up sign"),
        ("dog 🇺🇸", "dog flag U S"),
        ("dog :) cat", "dog smiling face cat"),
        ("dog <3", "dog heart"),
    ],
)
def test_emoji_are_spoken_by_name_on_request(text: str, words: str, g2p: G2P) -> None:
    assert read(text, g2p, emoji_normalization=True) == (len(words.split()), [])
    assert read(text, g2p)[1]
