"""Word, OpenDocument and FictionBook: all that is seen is read, in order, and notes stand behind their paragraph."""

import io

import pytest

from tests.audiobook.make_epub import png, zip_file
from tests.audiobook.make_office import docx, fb2, odt, w_p, w_run, zipped
from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.errors import InvalidInput


def book(data: bytes, name: str, **options: object) -> Book:
    return read_book(io.BytesIO(data), name, **options)  # type: ignore[arg-type]


def texts(read: Book) -> dict[str, str]:
    return {chapter.title: chapter.text for chapter in read.chapters}


# -- .docx -------------------------------------------------------------------------------------------------------


def test_chapters_of_word_come_from_heading_styles_also_of_another_language_and_derived_ones() -> None:
    body = w_p("Snow", style="berschrift1") + w_p("It fell.") + w_p("Ice", style="Mine") + w_p("It held.")
    read = book(docx(body, title="Winter", author="Ada"), "x.docx")
    assert (read.title, read.author, read.language) == ("Winter", "Ada", "en")
    assert texts(read) == {"Snow": "Snow\n\nIt fell.", "Ice": "Ice\n\nIt held."}


def test_a_word_document_without_headings_has_the_chapters_of_its_lines() -> None:
    body = "".join(w_p(line) for line in ("Chapter 1", "It fell.", "Chapter 2", "It held."))
    assert texts(book(docx(body), "x.docx")) == {
        "Chapter 1": "Chapter 1\n\nIt fell.",
        "Chapter 2": "Chapter 2\n\nIt held.",
    }


def test_a_footnote_of_word_is_announced_behind_its_paragraph() -> None:
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = w_p("It fell.", reference, " All night.") + w_p("Then it stopped.")
    read = book(docx(body, footnotes={"2": w_p("See the almanac.")}), "x.docx")
    assert read.chapters[0].text == "It fell. All night.\n\nNote 1. See the almanac.\n\nThen it stopped."
    skipped = book(docx(body, footnotes={"2": w_p("See the almanac.")}), "x.docx", skip={"notes"})
    assert skipped.chapters[0].text == "It fell. All night.\n\nThen it stopped."
    assert skipped.notes == ("skipped: notes (24 characters)",)


def test_what_word_does_not_show_is_not_read() -> None:
    body = w_p(
        "Seen", w_run("hidden", properties="<w:vanish/>"), w_run(" shown", properties='<w:vanish w:val="0"/>'),
        "<w:del><w:r><w:delText>deleted</w:delText><w:t>too</w:t></w:r></w:del>",
        "<w:r><w:instrText>PAGE</w:instrText></w:r>", "<w:ins><w:r><w:t> inserted</w:t></w:r></w:ins>",
    )  # fmt: skip
    assert book(docx(body), "x.docx").chapters[0].text == "Seen shown inserted"


def test_lists_tables_breaks_and_pictures_of_word() -> None:
    cells = "".join(f"<w:tc>{w_p(text)}</w:tc>" for text in ("Ada", "1815"))
    picture = '<w:r><w:drawing><wp:docPr id="1" name="Pic" descr="A bridge in snow"/></w:drawing></w:r>'
    body = (
        w_p("First", number="1") + w_p("Second", number="1") + w_p("Loose", number="2")
        + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
        + w_p("One", "<w:r><w:br/></w:r>", "two", "<w:r><w:tab/></w:r>", "three")
        + w_p(picture)
    )  # fmt: skip
    text = book(docx(body), "x.docx").chapters[0].text
    for part in ("1. First\n2. Second\n• Loose", "Ada", "1815", "One\ntwo three", "A bridge in snow."):
        assert part in text, text


def test_the_contents_of_word_are_skipped_and_it_is_said() -> None:
    body = w_p("Snow 1", style="TOC1") + w_p("Snow", style="berschrift1") + w_p("It fell.")
    read = book(docx(body), "x.docx")
    assert read.chapters[0].text == "Snow\n\nIt fell."
    assert read.notes == ("skipped: contents (6 characters)",)


# -- .odt --------------------------------------------------------------------------------------------------------


def test_chapters_of_opendocument_come_from_headings_and_the_author_wrote_it() -> None:
    body = '<text:h text:outline-level="1">Snow</text:h><text:p>It <text:span>fell</text:span>.</text:p>'
    body += '<text:h text:outline-level="1">Ice</text:h><text:p>It<text:s text:c="2"/>held.</text:p>'
    read = book(odt(body, title="Winter", author="Ada"), "x.odt")
    assert (read.title, read.author) == ("Winter", "Ada")
    assert texts(read) == {"Snow": "Snow\n\nIt fell.", "Ice": "Ice\n\nIt held."}


def test_a_note_of_opendocument_is_announced_behind_its_paragraph() -> None:
    note = (
        '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>'
        "<text:note-body><text:p>See the almanac.</text:p></text:note-body></text:note>"
    )
    read = book(odt(f"<text:p>It fell{note} all night.</text:p><text:p>It stopped.</text:p>"), "x.odt")
    assert read.chapters[0].text == "It fell all night.\n\nNote 1. See the almanac.\n\nIt stopped."
    german = book(odt(f"<text:p>Schnee{note}.</text:p>", language="de-DE"), "x.odt")
    assert "Anmerkung 1. See the almanac." in german.chapters[0].text


def test_lists_tables_pictures_and_hidden_parts_of_opendocument() -> None:
    item = "<text:list-item><text:p>{}</text:p></text:list-item>"
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:p text:style-name="P9">Winter</text:p>'
        f'<text:list text:style-name="L1">{item.format("First")}{item.format("Second")}</text:list>'
        f'<text:list text:style-name="L2">{item.format("Loose")}</text:list>'
        "<table:table><table:table-row><table:table-cell><text:p>Ada</text:p></table:table-cell></table:table-row>"
        "</table:table><text:p>x<office:annotation><text:p>comment</text:p></office:annotation>"
        "<draw:frame><svg:title>A bridge in snow</svg:title></draw:frame>y</text:p>"
        "<text:table-of-content><text:index-body><text:p>Snow 1</text:p></text:index-body></text:table-of-content>"
    )
    read = book(odt(body), "x.odt")
    text = "\n\n".join(chapter.text for chapter in read.chapters)
    for part in ("Winter", "1. First\n2. Second\n• Loose", "Ada.", "x\n\nA bridge in snow.\n\ny"):
        assert part in text, text
    assert not {"deleted", "comment", "Snow"} & set(text.replace(".", "").split())
    assert read.notes == ("skipped: contents (6 characters)",)


def test_a_password_is_named() -> None:
    manifest = '<m:manifest xmlns:m="x"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
    with pytest.raises(InvalidInput, match="protected with a password"):
        book(odt("", extra={"META-INF/manifest.xml": manifest}), "x.odt")


# -- .fb2 --------------------------------------------------------------------------------------------------------

SECTION = "<section><title><p>{}</p></title><p>{}</p></section>"


def test_fictionbook_has_title_authors_cover_and_chapters() -> None:
    sections = SECTION.format("Snow", "It <emphasis>fell</emphasis>.") + SECTION.format("Ice", "It held.")
    data = fb2(sections, authors=(("Ada", "Example"), ("Bob", "Other")), cover=png(7, 5), language="ru")
    for name, content in (("x.fb2", data), ("x.fb2.zip", zipped(data, "a.fb2")), ("x.fbz", zipped(data, "a.fb2"))):
        read = book(content, name)
        assert (read.title, read.author, read.language) == ("The Third Winter", "Ada Example, Bob Other", "ru")
        assert read.cover is not None
        assert (read.cover.data, read.cover.width) == (png(7, 5), 7)
        assert texts(read) == {"Snow": "Snow\n\nIt fell.", "Ice": "Ice\n\nIt held."}


def test_fictionbook_has_a_year_and_a_series() -> None:
    about = '<date value="2019-05-01">May 2019</date><sequence name="Winters" number="2"/>'
    read = book(fb2(SECTION.format("Snow", "It fell."), about=about), "x.fb2")
    assert (read.year, read.series) == ("2019", "Winters #2")


def test_fictionbook_in_a_declared_encoding() -> None:
    data = fb2(SECTION.format("Снег", "Он падал."), title="Зима", encoding="windows-1251")
    read = book(data, "x.fb2")
    assert (read.title, read.chapters[0].text) == ("Зима", "Снег\n\nОн падал.")


def test_notes_parts_and_poems_of_fictionbook() -> None:
    sections = (
        "<title><p>Ada</p><p>Winter</p></title><section><title><p>One</p><p>The Sea</p></title>"
        '<p>It fell<a l:href="#n1" type="note">[1]</a>.</p>'
        "<poem><stanza><v>Snow on snow,</v><v>ice on ice.</v></stanza></poem></section>"
    ) + SECTION.format("Two", "It held.")
    notes = '<section id="n1"><title><p>1</p></title><p>See the almanac.</p></section>'
    read = book(fb2(sections, notes=notes), "x.fb2")
    assert [chapter.title for chapter in read.chapters] == ["One The Sea", "Two", "Notes"]
    text = "\n\n".join(chapter.text for chapter in read.chapters)
    assert "It fell.\n\nSnow on snow,\nice on ice." in text
    assert "Note 1. See the almanac." in text
    skipped = book(fb2(sections, notes=notes), "x.fb2", skip={"notes"})
    assert "almanac" not in "".join(chapter.text for chapter in skipped.chapters)


# -- all ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.docx", "x.odt", "x.fb2", "x.fbz"])
def test_what_is_no_such_book_is_refused_with_the_reason(name: str) -> None:
    for data in (b"", b"not a book", b"PK nothing", zip_file({"other.xml": "<x/>"})):
        with pytest.raises(InvalidInput):
            book(data, name)


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.docx", zip_file({"word/document.xml": f"{BOMB}<x>&b;</x>"})),
        ("x.odt", zip_file({"content.xml": f"{BOMB}<x>&b;</x>"})),
        ("x.fb2", f"{BOMB}<x>&b;</x>".encode()),
    ],
)
def test_documents_with_entities_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="entities"):
        book(data, name)


@pytest.mark.parametrize("make", [docx, odt, fb2])
def test_elements_that_lie_too_deep_are_refused(make: object) -> None:
    name = f"x.{getattr(make, '__name__', '')}"
    with pytest.raises(InvalidInput, match="too many elements"):
        book(make("<a>" * 1000 + "</a>" * 1000), name)  # type: ignore[operator]
