"""PDF books: every word is read once, lines become paragraphs, running heads are left out and counted."""

import io
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audiobook.make_pdf import make_pdf
from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.pdf import paragraphs, without_running_heads
from tutti.errors import InvalidInput, NothingToSpeak

FULL = "The old bridge stands still under the water tonight and runs"  # a line of full width


def book(data: bytes, name: str = "b.pdf") -> Book:
    return read_book(io.BytesIO(data), name)


def text_of(parsed: Book) -> str:
    return "\n\n".join(chapter.text for chapter in parsed.chapters)


WORDS = st.lists(st.sampled_from(["deep", "water", "runs", "Still,", "under", "stone.", "(old)", "café"]), min_size=1)
LINES = st.lists(WORDS.map(" ".join), min_size=1, max_size=6)


@settings(max_examples=25)
@given(st.lists(LINES, min_size=1, max_size=2))
def test_every_word_is_read_once_in_order(pages: list[list[str]]) -> None:
    """Two pages are too few for a running head."""
    words = " ".join(line for page in pages for line in page).split()
    assert text_of(book(make_pdf(pages))).split() == words


def test_lines_become_paragraphs() -> None:
    lines = [FULL, "and runs deep.", FULL, FULL, "It ends here.", "Chapter Two", FULL]
    assert paragraphs(lines).split("\n\n") == [
        f"{FULL} and runs deep.",
        f"{FULL} {FULL} It ends here.",
        "Chapter Two",
        FULL,
    ]


def test_each_item_of_a_list_is_a_paragraph() -> None:
    assert paragraphs([FULL, "• deep water", "• still stone", FULL]).split("\n\n") == [
        *(FULL, "• deep water", f"• still stone {FULL}"),
    ]


def test_divided_words_are_whole_again_and_hyphens_before_names_stay() -> None:
    assert paragraphs([f"{FULL} won-", "derful things"]) == f"{FULL} wonderful things"
    assert paragraphs([f"{FULL} Anglo-", "Saxon things"]) == f"{FULL} Anglo- Saxon things"
    assert paragraphs([f"{FULL} 1914-", "1918"]) == f"{FULL} 1914- 1918"


def test_a_paragraph_continues_on_the_next_page() -> None:
    assert (
        text_of(book(make_pdf([[FULL, FULL], ["deep and still.", FULL]]))) == f"{FULL} {FULL} deep and still.\n\n{FULL}"
    )


def test_running_heads_and_page_numbers_are_left_out_and_counted() -> None:
    pages = [["The Sea", f"{FULL} {chr(97 + n)}", f"line {chr(97 + n)} of the text.", f"{n + 1}"] for n in range(6)]
    parsed = book(make_pdf(pages))
    assert "The Sea" not in text_of(parsed)
    assert text_of(parsed).split() == [word for page in pages for line in page[1:3] for word in line.split()]
    assert parsed.notes == ("lines left out as running heads or page numbers: 12",)


def test_a_number_within_a_page_and_a_line_of_two_pages_stay() -> None:
    pages = [["One.", "1918", "Two."], ["One.", "and more", "Three."]]
    assert without_running_heads(pages) == (pages, 0)


def test_chapters_come_from_the_outline() -> None:
    pages = [["Before."], ["One", FULL, "More."], ["Two", "and a Half", FULL, "Three", FULL]]
    marks = [("One", 1, 1), ("Two and a half", 2, 1), ("Three", 2, 1)]
    parsed = book(make_pdf(pages, marks, title="The Sea", author="A. Writer"))
    assert (parsed.title, parsed.author) == ("The Sea", "A. Writer")
    assert [(chapter.title, chapter.text) for chapter in parsed.chapters] == [
        ("The Sea", "Before."),
        ("One", f"One\n\n{FULL} More."),
        ("Two and a half", f"Two and a Half\n\n{FULL}"),
        ("Three", f"Three\n\n{FULL}"),
    ]


def test_parts_of_the_outline_are_levels() -> None:
    pages = [["Part One", "One", FULL], ["Two", f"{FULL} deep"], ["Part Two", "Three", f"{FULL} still"]]
    marks = [("Part One", 0, 1), ("One", 0, 2), ("Two", 1, 2), ("Part Two", 2, 1), ("Three", 2, 2)]
    parsed = book(make_pdf(pages, marks))
    assert [chapter.title for chapter in parsed.chapters] == ["Part One: One", "Two", "Part Two: Three"]
    assert text_of(parsed).split() == " ".join(line for page in pages for line in page).split()


def test_without_an_outline_chapters_come_from_lines() -> None:
    pages = [["Chapter 1", FULL, "It ends."], ["Chapter 2", FULL]]
    assert [chapter.title for chapter in book(make_pdf(pages)).chapters] == ["Chapter 1", "Chapter 2"]


def test_pages_without_text_are_named() -> None:
    assert book(make_pdf([[], [FULL], []])).notes == ("pages without text, perhaps pictures: 2 of 3",)
    with pytest.raises(NothingToSpeak, match="perhaps pictures: 1 of 1"):
        book(make_pdf([[]]))


def test_a_password_is_needed_only_if_there_is_one() -> None:
    with pytest.raises(InvalidInput, match="password"):
        book(make_pdf([[FULL]], password="secret"))
    assert text_of(book(make_pdf([[FULL]], password=""))) == FULL


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"PK\x03\x04", b"<html>"])
def test_what_is_no_pdf_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"b\.pdf"):
        book(data)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_damaged_file_is_read_or_refused(seed: int, n_bytes: int) -> None:
    data = bytearray(make_pdf([[FULL], ["One", FULL]], [("One", 1, 1)]))
    for n in range(n_bytes):
        data[(seed * (n + 1) * 2654435761) % len(data)] = (seed >> n % 24) & 0xFF
    try:
        parsed = book(bytes(data))
    except InvalidInput:
        return
    assert parsed.chapters


def test_the_title_is_that_of_the_file_if_the_document_has_none(tmp_path: Path) -> None:
    assert book(make_pdf([[FULL]]), "my sea.pdf").title == "my sea"
    starts = [chapter.title for chapter in book(make_pdf([[FULL]])).chapters]
    assert all(a != b for a, b in pairwise(starts))
