"""Parts that nobody wants to hear are left out, each with a note; notes are announced; nothing else is lost."""

import io

import pytest

from tests.audiobook.make_epub import epub, page, png
from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.parts import PARTS, parse_skip
from tutti.errors import InvalidInput

STORY = page("<h1>Snow</h1><p>It began to fall.</p>")
COPYRIGHT = page("<p>Copyright © 2026 A. Writer. All rights reserved.</p><p>ISBN 978-3-16-148410-0</p>")
COVER = page('<img src="c.png" alt="cover"/>')


def read(pages: dict[str, str], *skip: str, **options: object) -> Book:
    return read_book(io.BytesIO(epub(pages, **options)), "b.epub", None, skip)  # type: ignore[arg-type]


def text(book: Book) -> str:
    return "\n\n".join(chapter.text for chapter in book.chapters)


@pytest.mark.parametrize("alt", ["cover", "Cover", "Cover image", "book cover", "Front cover.", "Couverture"])
def test_the_audiobook_does_not_begin_with_the_word_cover(alt: str) -> None:
    book = read({"titlepage.xhtml": COVER.replace("cover", alt), "a.xhtml": STORY}, cover=png())
    assert text(book) == "Snow\n\nIt began to fall."
    assert any(note.startswith("skipped: cover") for note in book.notes)


def test_other_pictures_are_still_described() -> None:
    book = read({"a.xhtml": page('<p>x</p><img alt="A cover of snow lay on the bridge"/>')})
    assert "A cover of snow lay on the bridge." in text(book)


@pytest.mark.parametrize("name", ["cover.xhtml", "Cover-Page.xhtml"])
def test_a_cover_page_is_skipped_unless_it_has_a_chapter_on_it(name: str) -> None:
    cover = page("<h1>The Third Winter</h1><p>Ada Example</p>")
    assert text(read({name: cover, "a.xhtml": STORY})) == "Snow\n\nIt began to fall."
    long = page(f"<p>{'It began to fall. ' * 50}</p>")
    assert "It began to fall. It began" in text(read({name: long, "a.xhtml": STORY}))


def test_a_copyright_page_is_read_unless_it_is_to_be_skipped() -> None:
    pages = {"c.xhtml": COPYRIGHT, "a.xhtml": STORY}
    assert "All rights reserved" in text(read(pages))
    book = read(pages, "copyright")
    assert text(book) == "Snow\n\nIt began to fall."
    assert any(note.startswith("skipped: copyright (") for note in book.notes)


def test_notes_are_announced_where_they_stand_or_skipped() -> None:
    story = page(
        '<p>It fell.<a epub:type="noteref" href="#n1">1</a></p><section epub:type="footnotes"><ol>'
        '<li id="n1"><p>See the almanac.</p></li><li id="n2">And the atlas.</li></ol></section>'
    )
    assert text(read({"a.xhtml": story})) == "It fell.\n\nNote 1. See the almanac.\nNote 2. And the atlas."
    assert text(read({"a.xhtml": story}, "notes")) == "It fell."
    aside = page(
        '<p>It fell.</p><aside epub:type="footnote" id="n"><p><a href="#r">3</a>. See it.</p><p>More.</p></aside>'
    )
    assert text(read({"a.xhtml": aside})) == "It fell.\n\nNote 3. See it.\n\nMore."
    assert text(read({"a.xhtml": aside}, language="de")) == "It fell.\n\nAnmerkung 3. See it.\n\nMore."
    assert text(read({"a.xhtml": aside}, "notes")) == "It fell."


def test_what_follows_a_skipped_part_on_its_page_is_read() -> None:
    story = page(
        '<section epub:type="dedication"><section><p>For Ada.</p></section></section><p>It fell.</p>'
        '<div epub:type="acknowledgments"><div>Thanks.</div>Again.</div><p>It stopped.</p>'
    )
    assert text(read({"a.xhtml": story})) == "For Ada.\n\nIt fell.\n\nThanks.\n\nAgain.\n\nIt stopped."
    assert text(read({"a.xhtml": story}, "dedication", "acknowledgments")) == "It fell.\n\nIt stopped."


def test_chapters_are_skipped_by_their_titles_in_every_format() -> None:
    markdown = b"# One\n\nIt fell.\n\n# Bibliography\n\nThe Almanac.\n\n# INDEX\n\nsnow 3\n\n# Two\n\nIt stopped."
    book = read_book(io.BytesIO(markdown), "b.md", None, ["bibliography", "index"])
    assert [chapter.title for chapter in book.chapters] == ["One", "Two"]


def test_what_was_to_be_skipped_and_is_not_there_is_said() -> None:
    assert read({"a.xhtml": STORY}, "index").notes == (
        "nothing was skipped as index: the book has none that could be found",
    )


def test_names_of_parts_are_checked() -> None:
    assert parse_skip(" Notes, copyright,") == {"notes", "copyright"}
    assert set(PARTS) >= {"copyright", "notes", "cover"}
    with pytest.raises(InvalidInput, match="did you mean copyright") as error:
        parse_skip("copyrigth")
    assert error.value.param == "skip"
