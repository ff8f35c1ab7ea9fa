"""Formulas in LaTeX: read as mathematics, with the source of the formula; prices and code are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.text.aligned_text import AlignedText
from tutti.text.latex import MAX_FORMULA, formula_words, is_open, read_formulas


def read(text: str, language: str = "en-us") -> str:
    return read_formulas(AlignedText.of(text), language).text


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("E = mc^2", "E equals M C squared"),
        (r"\int_0^1 x^2 dx = \frac{1}{3}", "the integral from zero to one of X squared D X equals one third"),
        (r"\alpha > 0", "alpha greater than zero"),
        (r"\frac{a+b}{2}", "\u1d00 plus B over two"),
        (r"\sqrt[3]{x}", "the cube root of X"),
        (r"\sum_{i=1}^{n} x_i", "the sum from I equals one to N of X I"),
        (r"\lim_{x \to 0} f(x)", "the limit as X approaches zero of F of X"),
        (r"n(n+1)", "N N plus one"),
        (r"x^{12}", "X to the twelfth"),
        (r"x^12", "X to the first two"),
        (r"90^\circ", "ninety degrees"),
        (r"\hat{y}_t", "Y hat T"),
        (r"\ell(\theta)", "L of theta"),
        (r"\text{if } x \leq 2", "if X less than or equal to two"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "the matrix one, two; three, four"),
        (r"\left( x \right)^2", "X squared"),
        (r"\unknowncommand{x}", "unknowncommand X"),
        ("{", ""),
        ("x^", "X to the"),
        (r"\frac{1}", "one over"),
    ],
)
def test_a_formula_in_words(formula: str, words: str) -> None:
    assert formula_words(formula) == words


@pytest.mark.parametrize(
    "wrap", ["$%s$", "$$%s$$", r"\(%s\)", r"\[%s\]", "$$\n%s\n$$", r"\begin{align*}%s\end{align*}"]
)
def test_every_delimiter_is_known(wrap: str) -> None:
    assert read("so " + wrap % "x = 1" + " holds") == "so X equals one holds"


@pytest.mark.parametrize(
    "text",
    [
        "It costs $20 today and $25 tomorrow.",
        "from $5-$10 to $20",
        "`$x$` and $HOME:$PATH",
        "```sh\necho $a $b$\n```",
        "US$5 or A$6",
        "a [link](x) \\* star",
    ],
)
def test_prices_and_code_are_left_alone(text: str) -> None:
    assert read(text) == text


def test_other_languages_say_the_word_for_a_formula() -> None:
    assert read(r"Es gilt $\frac{1}{2}$ und $x = 2$.", "fr") == "Es gilt  formule  und x = 2."


def test_a_very_long_formula_is_only_named() -> None:
    assert read("$$" + "x + " * MAX_FORMULA + "$$") == "formula"


@pytest.mark.parametrize(
    "sign", ["^", "_", r"\sqrt", r"\sqrt[", r"\frac", r"\hat", r"\binom", "{", r"\sum_", "^{", r"\frac{"]
)
def test_a_formula_may_be_nested_as_deep_as_it_is_long(sign: str) -> None:
    words = formula_words(sign * ((MAX_FORMULA - 10) // len(sign)) + " x + y")
    assert {"X", "plus"} <= set(words.split())


def test_the_words_have_the_source_of_their_formula() -> None:
    aligned = read_formulas(AlignedText.of("so $x^2$, yes"), "en-us")
    start = aligned.text.index("X squared")
    assert aligned.source(start, start + len("X squared")) == (3, 8)
    assert aligned.source(len(aligned) - 3) == (10, 13)


pieces = st.sampled_from(
    ["$", "$$", "\\(", "\\)", "\\[", "\\]", "\\frac", "{", "}", "^", "_", "x", "2", " ", "\\begin{align}", "\\sum",
     "\\end{align}", "\\sqrt", "[", "]", "&", "\\\\", "`", "```", "\n", "\\text", "-", "a b"]
)  # fmt: skip


@given(st.lists(pieces, max_size=30).map("".join))
def test_any_text_has_sources_in_order(text: str) -> None:
    aligned = read_formulas(AlignedText.of(text), "en-us")
    assert len(aligned.text) == len(aligned.starts) == len(aligned.ends)
    assert list(aligned.starts) == sorted(aligned.starts)
    assert all(0 <= a < b <= len(text) for a, b in zip(aligned.starts, aligned.ends, strict=True))


@pytest.mark.parametrize(
    ("text", "is_inside"),
    [("$$x + ", True), ("$$x$$ so ", False), (r"\[ x", True), (r"\[ x \] so", False), ("it costs $5 or ", False),
     ("so $x + ", True), ("so $x$, then ", False), (r"\begin{align} x", True), ("plain ", False)],
)  # fmt: skip
def test_an_open_formula_is_not_cut(text: str, is_inside: bool) -> None:
    assert is_open(text, len(text)) is is_inside
