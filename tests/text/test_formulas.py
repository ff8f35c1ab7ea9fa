"""Equations in plain text: a minus sign is one only between the operands of an equation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize import normalize


def normalized(written: str, code: str = "en-us") -> str:
    return normalize(AlignedText.of(written), code).text


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("x=1 costs $25", "x equals one costs twenty-five dollars"),
        ("3×4=12 and 24/7", "three times four equals twelve and twenty-four seven"),
        (
            "The well-known x = 1 state-of-the-art thing.",
            "The well-known x equals one state-of-the-art thing.",
        ),
        ("2 + 2 = 4 for thirty-two people", "two plus two equals four for thirty-two people"),
        ("Set timeout=30 for a well-known result", "Set timeout equals thirty for a well-known result"),
        ("72°F if k = 2", "seventy-two degrees Fahrenheit if k equals two"),
        ("2020-21 if k = 2", "twenty twenty to twenty-one if k equals two"),
        ("a $1.5m-a-year deal with n=3", "a one point five million dollar-a-year deal with n equals three"),
        ("the x-axis has y = 2", "the x-axis has y equals two"),
        ("twenty-one e-mails, p<0.05", "twenty-one e-mails, p less than zero point zero five"),
    ],
)
def test_a_hyphen_outside_of_an_equation_stays_one(written: str, spoken: str) -> None:
    assert normalized(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("n - 1 = 4", "n minus one equals four"),
        ("x-1=0", "x minus one equals zero"),
        ("y = -x", "y equals minus x"),
        ("f(x) = x² - 4x + 4", "f of x equals x squared minus four X plus four"),
        ("a - b = c", "\u1d00 minus b equals c"),
        ("O(n log n)", "O of n log n"),
        ("f(x) = max(0, x)", "f of x equals max(zero, x)"),
        ("(F - 32) × 5 = 2", "(F minus thirty-two) times five equals two"),
    ],
)
def test_equations_are_spelled_out(written: str, spoken: str) -> None:
    assert normalized(written) == spoken


numbers = st.integers(2, 98).map(str)
operands = numbers | st.sampled_from(["x", "y", "n", "k", "2x", "x^2", "y²", "f(x)", "0.5"])
equations = st.tuples(operands, st.lists(st.tuples(st.sampled_from("-+="), operands), min_size=1, max_size=4)).map(
    lambda parts: (parts[0], [*parts[1], ("=", "7")])
)
hyphenated = st.sampled_from(
    ["well-known", "thirty-two", "state-of-the-art", "$25", "72°F", "e-mail", "x-axis", "twenty-first", "24/7", "8%"]
)


@given(st.lists(st.one_of(equations, hyphenated), min_size=1, max_size=8), st.sampled_from(["", " "]))
def test_every_minus_comes_from_the_minus_of_an_equation(
    parts: list[str | tuple[str, list[tuple[str, str]]]], gap: str
) -> None:
    words, n_minus = [], 0
    for part in parts:
        if isinstance(part, str):
            words.append(part)
            continue
        first, rest = part
        words.append(first + "".join(f"{gap}{sign}{gap}{operand}" for sign, operand in rest))
        n_minus += sum(sign == "-" for sign, _ in rest)
    written = " so ".join(["this", *words])
    assert normalized(written).split().count("minus") == n_minus
