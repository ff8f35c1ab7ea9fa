"""Markdown and plain text: chapters by their headings, every word in exactly one of them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.chapters import Part, chapters
from tutti.errors import InvalidInput

LINE = st.sampled_from(
    ["# one", "## two", "### three", "text", "", "====", "----", "```", "~~~", "Chapter 1", "CHAPTER II. The Cave",
     "PART ONE", "Epilogue", "chapter one was short, and", "- item", "> said", "---", "| a | b |", "#hash", "1. first"]
)  # fmt: skip


def book(text: str, name: str) -> Book:
    return read_book(io.BytesIO(text.encode()), name)


@given(lines=st.lists(LINE, max_size=30), name=st.sampled_from(["b.md", "b.txt"]))
def test_every_line_is_in_exactly_one_chapter_in_its_order(lines: list[str], name: str) -> None:
    text = "\n".join(["words", *lines])
    found = book(text, name)
    assert [line for chapter in found.chapters for line in chapter.text.split("\n") if line] == [
        line for line in text.split("\n") if line
    ]
    assert all(chapter.title for chapter in found.chapters)


@given(
    st.lists(st.builds(Part, st.sampled_from("ABC"), st.integers(0, 3), st.sampled_from(["x", "y z"]), st.booleans()))
)
def test_no_part_is_lost_between_chapters(parts: list[Part]) -> None:
    assert "\n\n".join(chapter.text for chapter in chapters(parts)) == "\n\n".join(part.text for part in parts)


def test_markdown_has_front_matter_headings_of_both_kinds_and_fences() -> None:
    found = book(
        "---\ntitle: 'The Book'\nauthor: Ada\n---\n\nOne\n===\n\ntext\n\n```\n# not a heading\n```\n\n# *Two* #\n\n"
        "more\n\n[ref]: https://example.org\n<!-- hidden -->",
        "b.md",
    )
    assert (found.title, found.author) == ("The Book", "Ada")
    assert [chapter.title for chapter in found.chapters] == ["One", "Two"]
    assert "not a heading" in found.chapters[0].text
    assert "hidden" not in found.chapters[1].text
    assert "example" not in found.chapters[1].text


def test_plain_text_has_chapter_lines_that_stand_alone() -> None:
    found = book(
        "Title: The Cave\nAuthor: Ada\n\nPROLOGUE\n\nIt began.\n\nCHAPTER I. The Cave\n\nDark. In\n"
        "chapter two of his life it was\ndark.\n\nChapter the Second\n\nLight.\n",
        "cave.txt",
    )
    assert (found.title, found.author) == ("The Cave", "Ada")
    assert [chapter.title for chapter in found.chapters] == [
        "The Cave",
        "PROLOGUE",
        "CHAPTER I. The Cave",
        "Chapter the Second",
    ]


def test_a_text_without_headings_is_one_chapter_named_after_its_file() -> None:
    assert [chapter.title for chapter in book("Just words.", "a walk.txt").chapters] == ["a walk"]


def test_line_ends_of_all_systems_are_the_same() -> None:
    assert book("a\r\n\r\nb\rc", "x.txt").chapters[0].text == "a\n\nb\nc"


def test_bytes_that_are_no_text_are_an_error_that_names_the_cure() -> None:
    with pytest.raises(InvalidInput, match=r"x.txt is not utf-8 text \(byte 3\); say which encoding"):
        read_book(io.BytesIO("café".encode("latin-1")), "x.txt")
    assert read_book(io.BytesIO("café".encode("latin-1")), "x.txt", "latin-1").chapters[0].text == "café"
