"""Blocks of code: read, skipped or announced, in captions by their language, and never cut while they arrive."""

import pytest

from tests.fakes import Spelling
from tutti.text import chunks
from tutti.text.clean import clean
from tutti.text.incremental import Segmenter, split_text
from tutti.text.marks import shown_word
from tutti.text.options import CodeBlocks, TextOptions

TEXT = "Use this:\n\n```python\nx = one\ny = two\n```\n\nThen go."


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("read", "Use this: x = one y = two Then go."),
        ("skip", "Use this: Then go."),
        ("announce", "Use this: Code block in Python, 2 lines. Then go."),
    ],
)
def test_a_block_is_read_skipped_or_announced(option: CodeBlocks, words: str) -> None:
    assert clean(TEXT, "en-us", option).aligned.text.split() == words.split()


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("```\na\n```", "Code block, 1 line."),
        ("~~~js\na\n\nb\n~~~", "Code block in JavaScript, 3 lines."),
        ("  ```brainfuck title=x\n  a\n  ```", "Code block in brainfuck, 1 line."),
        ("````md\n```\na\n```\n````", "Code block in Markdown, 3 lines."),
        ("```py\nnever closed", "Code block in Python."),
        ("```py\na\n```js\nb\n```", "Code block in Python, 3 lines."),
    ],
)
def test_an_announcement_names_language_and_length(block: str, words: str) -> None:
    assert clean(block).aligned.text.strip() == words


def test_tildes_between_two_scenes_are_no_code() -> None:
    assert clean("One.\n\n~~~\n\nTwo.\n\n~~~~\n\nThree.").aligned.text.split() == ["One.", "Two.", "Three."]


def test_an_announcement_is_in_the_language_of_the_text() -> None:
    assert clean("```py\na\n```", "es").aligned.text.strip() == "Bloque de código en Python, 1 línea."


def test_an_announcement_points_at_the_line_that_opens_the_block() -> None:
    words = [word for chunk in chunks(TEXT, "en-us", Spelling().pronounce) for word in chunk.words]
    announced = {
        word.source for word in words if word.source[0] >= TEXT.index("```") and word.source[1] < TEXT.index("Then")
    }
    assert {TEXT[slice(*source)] for source in announced} == {"```python"}
    assert shown_word("```python") == "[python code]"
    assert shown_word("```") == "[code]"


def test_a_block_that_arrives_in_pieces_is_one_block() -> None:
    segmenter, released = Segmenter(), []
    text = "Look at this. Here it is:\n\n```python\n" + "print(1). Then go on. And on.\n\n" * 200 + "```\n\nDone. Yes."
    for at in range(0, len(text), 7):
        segmenter.add(text[at : at + 7])
        while segment := segmenter.take():
            released.append(segment)
    segmenter.flush()
    if segment := segmenter.take():
        released.append(segment)
    assert "".join(segment.text for segment in released) == text
    spoken = " ".join(clean(segment.marked_text).aligned.text for segment in released).split()
    assert spoken == clean(text).aligned.text.split()


@pytest.mark.parametrize("option", ["skip", "announce"])
def test_a_block_longer_than_a_window_stays_code(option: CodeBlocks) -> None:
    text = "Before.\n\n```\n" + "word word. Word.\n\n" * 3000 + "```\n\nAfter."
    assert "".join(segment.text for segment in split_text(text)) == text
    words = [
        text[slice(*word.source)]
        for chunk in chunks(text, "en-us", Spelling().pronounce, options=TextOptions(option))
        for word in chunk.words
    ]
    assert [word for word in words if word != "```"] == ["Before.", "After."]


def test_a_flush_inside_a_block_does_not_turn_it_inside_out() -> None:
    segmenter = Segmenter()
    segmenter.add("```py\na = 1\n")
    segmenter.flush()
    first = segmenter.take()
    segmenter.add("b = 2\n```\nAnd then.")
    segmenter.flush()
    second = segmenter.take()
    assert first
    assert second
    assert clean(second.marked_text).aligned.text.split() == ["And", "then."]
