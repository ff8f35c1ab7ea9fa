"""Markdown and plain text: chapters by headings, every line in exactly one chapter."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.chapters import Section, chapters
from tutti.errors import InvalidInput

LINE = st.sampled_from(
    ["# one", "## two", "### three", "text", "", "====", "----", "```", "~~~", "Chapter 1", "CHAPTER II. The Cave",
     "PART ONE", "Epilogue", "chapter one was short, and", "- item", "> said", "---", "| a | b |", "#hash", "1. first"]
)  # fmt: skip


def book(text: str, name: str) -> Book:
    return read_book(io.BytesIO(text.encode()), name)


@given(lines=st.lists(LINE, max_size=30), name=st.sampled_from(["b.md", "b.txt"]))
def test_every_line_is_in_exactly_one_chapter_in_order(lines: list[str], name: str) -> None:
    text = "\n".join(["words", *lines])
    parsed = book(text, name)
    assert [line for chapter in parsed.chapters for line in chapter.text.split("\n") if line] == [
        line for line in text.split("\n") if line
    ]
    assert all(chapter.title for chapter in parsed.chapters)


@given(
    st.lists(
        st.builds(Section, st.sampled_from("ABC"), st.integers(0, 3), st.sampled_from(["x", "y z"]), st.booleans())
    )
)
def test_no_section_is_lost_between_chapters(sections: list[Section]) -> None:
    assert "\n\n".join(chapter.text for chapter in chapters(sections)) == "\n\n".join(
        section.text for section in sections
    )


def test_markdown_has_front_matter_both_kinds_of_headings_and_fences() -> None:
    parsed = book(
        "---\ntitle: 'The Book'\nauthor: Ada\n---\n\nOne\n===\n\ntext\n\n```\n# not a heading\n```\n\n# *Two* #\n\n"
        "more\n\n[ref]: https://example.org\n<!-- hidden -->",
        "b.md",
    )
    assert (parsed.title, parsed.author) == ("The Book", "Ada")
    assert [chapter.title for chapter in parsed.chapters] == ["One", "Two"]
    assert "not a heading" in parsed.chapters[0].text
    assert "hidden" not in parsed.chapters[1].text
    assert "example" not in parsed.chapters[1].text


def test_plain_text_has_chapter_lines_after_a_blank_line() -> None:
    parsed = book(
        "Title: The Cave\nAuthor: Ada\n\nPROLOGUE\n\nIt began.\n\nCHAPTER I. The Cave\n\nDark. In\n"
        "chapter two of his life it was\ndark.\n\nChapter the Second\n\nLight.\n",
        "cave.txt",
    )
    assert (parsed.title, parsed.author) == ("The Cave", "Ada")
    assert [chapter.title for chapter in parsed.chapters] == [
        "The Cave",
        "PROLOGUE",
        "CHAPTER I. The Cave",
        "Chapter the Second",
    ]


def test_a_text_without_headings_is_one_chapter_named_after_its_file() -> None:
    assert [chapter.title for chapter in book("Just words.", "a walk.txt").chapters] == ["a walk"]


def test_all_line_ends_become_the_same() -> None:
    assert book("a\r\n\r\nb\rc", "x.txt").chapters[0].text == "a\n\nb\nc"


def test_undecodable_bytes_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"x.txt is not utf-8 text \(byte 3\); set its encoding"):
        read_book(io.BytesIO("café".encode("latin-1")), "x.txt")
    assert read_book(io.BytesIO("café".encode("latin-1")), "x.txt", "latin-1").chapters[0].text == "café"
