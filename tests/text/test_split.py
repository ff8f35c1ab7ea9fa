"""The sentence splitter loses nothing, knows abbreviations, and tells meant line breaks from wrapping."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.text.aligned_text import AlignedText
from tutti.text.markdown import HARD_BREAK
from tutti.text.split import MAX_SENTENCE, MAX_WORD, sentences

prose = st.text(st.sampled_from("abI U.S.Dr. e.g.12,!?…\"')(\n ।。」—;" + HARD_BREAK), max_size=200)


def split(text: str) -> list[str]:
    return [sentence.aligned.text for sentence in sentences(AlignedText.of(text))]


@given(prose)
def test_only_white_space_is_lost(text: str) -> None:
    assert "".join("".join(split(text)).split()) == "".join(text.split())


@given(prose)
def test_each_sentence_has_its_own_source(text: str) -> None:
    done = 0
    for sentence in sentences(AlignedText.of(text)):
        start, end = sentence.aligned.source()
        assert done <= start < end <= len(text)
        assert text[start:end].split() == sentence.aligned.text.split() or HARD_BREAK in text[start:end]
        assert "\n" not in sentence.aligned.text
        assert sentence.aligned.text == sentence.aligned.text.strip() != ""
        done = end


@given(st.lists(st.text("abc", min_size=1, max_size=3000), max_size=5), st.sampled_from(["", " ", ", ", "\n"]))
def test_sentences_and_words_have_a_maximal_length(words: list[str], gap: str) -> None:
    for sentence in split(gap.join(words)):
        assert len(sentence) <= MAX_SENTENCE + MAX_SENTENCE // MAX_WORD
        assert all(len(word.strip(",")) <= MAX_WORD for word in sentence.split())


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met J. K. Rowling.|She smiled.",
        "We use tools, e.g. saws, i.e. sharp ones, etc. in the U.S. Army.|Nobody minds.",
        "He lives in the U.S. and works.|The pay is good.",
        "He lives in the U.S.|The pay is good.",
        "It costs $3.50 or 4.|Version 2.0.1 is out.",
        "They met at 5 p.m. on Jan. 5 at No. 7.|He left at 6 p.m.|She stayed.",
        "Mr. and Mrs. Brown vs. Acme Inc. was long.|See fig. 3 and pp. 4-5.",
        'He said, "Stop."|Then he ran.|"Why?" she asked.|"No reason!"|(It was late.)|Good.',
        "Wait… what?|Well…|Then go!|No way!!!|Yes.",
        "Vive en EE. UU. desde 1999.|Va a EE. UU.|El presidente habla.|C'est clair, c.-à-d. ici.",
        "i came home. then i slept. hey! how are you?".replace(". t", ".|t")
        .replace(". h", ".|h")
        .replace("! h", "!|h"),
        "今天很好。|我们走吧！|好吗？|「そうだ。」と言った。|「行く。」|彼は走った。",
        "यह अच्छा है।|बहुत अच्छा॥|हाँ?",
        "¿Qué tal?|¡Bien!|El Sr. López vino.|La Dra. Ruiz no.",
        "So said I.|The cat sat.|Dogs bark.",
        "It works.[1]|It does.",
        "Cats, dogs, etc.|See below.",
    ],
)
def test_where_sentences_end(text: str) -> None:
    assert split(text.replace("|", "" if "今" in text else " ")) == text.split("|")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "This line was wrapped by an editor at about sixty\ncharacters and goes on here. It has an\nend.",
            ["This line was wrapped by an editor at about sixty characters and goes on here.", "It has an end."],
        ),
        ("Roses are red\nViolets are blue", ["Roses are red", "Violets are blue"]),
        ("Buy:\n1. Milk\n2. Bread", ["Buy:", "1. Milk", "2. Bread"]),
        (
            "Dear Sir,\nThank you for the long letter that you sent me in the last week of\nMay. It came.",
            ["Dear Sir,", "Thank you for the long letter that you sent me in the last week of May.", "It came."],
        ),
        (f"{HARD_BREAK}one\n{HARD_BREAK}two", ["one", "two"]),
        ("1. First, we go. Then we stay.", ["1. First, we go.", "Then we stay."]),
    ],
)
def test_wrapped_lines_are_joined_and_meant_line_breaks_end_sentences(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_only_a_blank_line_with_text_behind_it_ends_a_paragraph() -> None:
    found = list(sentences(AlignedText.of("\n\nOne. Two.\n \nThree.\nFour.\n\n")))
    assert [(s.aligned.text, s.paragraph_end) for s in found] == [
        ("One.", False),
        ("Two.", True),
        ("Three.", False),
        ("Four.", False),
    ]


def test_sentences_are_split_lazily() -> None:
    assert len(list(itertools.islice(sentences(AlignedText.of("So it goes. " * 100_000)), 3))) == 3


@pytest.mark.parametrize(
    "unit", [".", "a.", "a. ", '"', "1,", "?!", ". ", "\n", "\n a", "(", "a", "。", "「。", "1. ", "\u2028a", " "]
)
def test_adversarial_text_takes_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert sum(len(s.replace(" ", "")) for s in split(text)) == len("".join(text.split()))


@pytest.mark.parametrize(
    ("text", "n_sentences"),
    [
        ("Am 3. Mai kam er. Dann ging er.", 2),
        ("Im 19. Jahrhundert und der 2. Platz.", 1),
        ("Ludwig XIV. war der Sonnenkönig.", 1),
        ("Goethestr. 5 in Berlin.", 1),
        ("I am 42. The dog is 3. We left.", 3),
        ("He was the 2. Then he left in 1999. John came.", 3),
        ("Look at my abs. He has none. Open a tab. Close it.", 4),
    ],
)
def test_an_ordinal_with_a_full_stop_does_not_end_a_sentence(text: str, n_sentences: int) -> None:
    assert len(split(text)) == n_sentences
