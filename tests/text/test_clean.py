"""Cleaning: readable text, correct sources, nothing pronounceable lost."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.text.aligned_text import PLACEHOLDER
from tutti.text.clean import clean
from tutti.text.markdown import HARD_BREAK

anything = st.text(st.characters(codec=None), max_size=60) | st.text(
    st.sampled_from(
        "ae\u0301\u0316\u0300 \n\t*_`#[]()|-.“”‘’–—…👍\u200d🏽🇩🇪1\ufe0f\u20e3\ud800\x00\ufffcक\u094d\u1112\u1161"
    ),
    max_size=40,
)


@given(anything)
def test_every_character_has_a_source_in_order(text: str) -> None:
    aligned = clean(text).aligned
    assert len(aligned.text) == len(aligned.starts) == len(aligned.ends)
    assert list(aligned.starts) == sorted(aligned.starts)
    assert all(0 <= a < b <= len(text) for a, b in zip(aligned.starts, aligned.ends, strict=True))


@given(anything)
def test_the_result_has_no_control_characters(text: str) -> None:
    cleaned = clean(text).aligned.text
    cleaned.encode("utf-8")
    assert PLACEHOLDER not in cleaned
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Co") and char != "\n" for char in cleaned)


@given(st.text(st.sampled_from("abc é ü ñ हिन्दी 漢字 한국어,!?\n'"), max_size=60))
def test_letters_are_composed_and_none_is_lost(text: str) -> None:
    cleaned = clean(unicodedata.normalize("NFD", text))
    letters = [char for char in unicodedata.normalize("NFC", text) if not char.isspace()]
    assert [char for char in cleaned.aligned.text if not char.isspace()] == letters
    assert cleaned.dropped == ()


@given(
    st.text(st.sampled_from("abcdefg ,.!?'\n"), max_size=80).filter(lambda text: ".." not in text and ". ." not in text)
)
def test_plain_text_is_unchanged(text: str) -> None:
    assert clean(text).aligned.text == text


def test_a_composed_letter_has_the_source_of_all_its_parts() -> None:
    aligned = clean("cafe\u0301!").aligned
    assert aligned.text == "café!"
    assert aligned.source(3, 4) == (3, 5)
    assert aligned.source(4, 5) == (5, 6)


@pytest.mark.parametrize(
    "symbol",
    ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "1️⃣", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏳️‍🌈", "☀", "✅", "⭐", "\ue000", "\ud800"],
)
def test_an_emoji_is_one_dropped_symbol(symbol: str) -> None:
    cleaned = clean(f"so {symbol} good")
    assert cleaned.aligned.text.split() == ["so", "good"]
    assert cleaned.dropped == ("\ufffd" if symbol in ("\ue000", "\ud800") else symbol,)


def test_words_around_an_emoji_stay_separate() -> None:
    assert clean("one😀two").aligned.text == "one two"
    assert clean("fun😀.").aligned.text == "fun."


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("zero\u200bwidth \u202eturned\u202c so\u00adft \ufeffmark", "zerowidth turned soft mark"),
        ("a\u00a0b\u3000c\td", "a b c d"),
        ("a\r\nb\rc\x85d", "a\nb\nc\nd"),
        ("it’s ‘so’ „low“ «there» 5′ 6″", "it's 'so' “low“ “there” 5' 6\""),
        ("3–5 – or — so ‐ − it", "3-5 — or — so - - it"),
        ("wait -- what--now", "wait — what—now"),
        ("wait..... . . . so", "wait… … so"),
        ("ＡＢＣ１２ 𝐇𝐢 ﬁne Ⅷ ‼", "ABC12 Hi fine VIII !!"),
    ],
)
def test_typography(written: str, expected: str) -> None:
    assert clean(written).aligned.text == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("**Bold**, *it*, ***both***, __so__, _too_, ~~no~~ and `code`.", "Bold, it, both, so, too, no and code."),
        ("这是**重点**内容", "这是重点内容"),
        ("2*3*4, 2**3, 5 * 6, snake_case", "2*3*4, 2**3, 5 * 6, snake_case"),
        ("See [the docs](https://a.b/c_(d)) and ![a cat](cat.png).", "See the docs and a cat."),
        ("Say [word](/wˈɜɹd/) and [pause:1s] [1] (a)", "Say [word](/wˈɜɹd/) and [pause:1s] [1] (a)"),
        ("Noted.[^1]", "Noted."),
        ("It costs \\$5 \\| so.", "It costs $5 | so."),
        ("It is so【4†source】.", "It is so."),
        ("See <https://a.b> or <me@a.b>.", "See https://a.b or me@a.b."),
        ("a<br>b <b>c</b> &amp; d &lt; e", f"a{HARD_BREAK}b c & d < e"),
        ("a < b and c > d", "a < b and c > d"),
        ("> quoted\n> more", "quoted\nmore"),
        ("- one\n- [x] two\n• three", f"{HARD_BREAK}one\n{HARD_BREAK}two\n{HARD_BREAK}three"),
        ("# Head\ntext", "\nHead\n\ntext"),
        ("a\n---\nb", "a\n\n\nb"),
        ("a\n\n* * *\n\nb\n\n***\n", "a\n\n[pause:0.8s]\n\nb\n\n\n\n"),
        ("| a | b |\n|---|:-:|\n| c | d |", f"{HARD_BREAK}a, b\n\n{HARD_BREAK}c, d"),
        ("Home | News", "Home, News"),
        ("P(A|B) and -5 and C# and #tag", "P(A|B) and -5 and C# and #tag"),
    ],
)
def test_markdown_is_removed(written: str, expected: str) -> None:
    assert clean(written).aligned.text == expected


def test_link_text_keeps_its_source() -> None:
    aligned = clean("[docs](http://a.b)").aligned
    assert aligned.source() == (1, 5)


@pytest.mark.parametrize(
    "unit",
    [
        "a\u0301\u0316",
        "[",
        "[a](",
        "*",
        "_ ",
        "| ",
        "<b ",
        "# ",
        "> ",
        "&a",
        "\n",
        "-",
        " \n",
        "😀",
        "\u0301",
        "`",
        "\\",
        "\ud800",
    ],
)
def test_adversarial_text_takes_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert len(clean(text).aligned) <= len(text)
