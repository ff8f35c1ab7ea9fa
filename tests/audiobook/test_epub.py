"""EPUB: order from the spine, chapters from the table of contents, one clear error for a broken file."""

import io
import random
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.audiobook.make_epub import CONTAINER, epub, page, png, zip_file
from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.archive import resolve_link
from tutti.errors import InvalidInput, TuttiError

TWO = {
    "b.xhtml": page("<h2>B</h2><p>second</p>"),
    "a.xhtml": page("<h2>A</h2><p>first</p><h2 id='c'>C</h2><p>third</p>"),
}


def read(data: bytes) -> Book:
    return read_book(io.BytesIO(data), "book.epub")


def titles(book: Book) -> list[str]:
    return [chapter.title for chapter in book.chapters]


def test_title_author_language_and_cover_come_from_the_package() -> None:
    book = read(epub(TWO, title="War & Peace", authors=("Ada", "Bob"), language="en-GB", cover=png(7, 5)))
    assert (book.title, book.author, book.language) == ("War & Peace", "Ada, Bob", "en-GB")
    assert book.cover is not None
    assert (book.cover.data, book.cover.kind, book.cover.width, book.cover.height) == (png(7, 5), "png", 7, 5)


def test_year_and_series_come_from_the_package() -> None:
    for metadata in (
        '<dc:date>2019-05-01</dc:date><meta name="calibre:series" content="Winters"/>'
        '<meta name="calibre:series_index" content="2.0"/>',
        '<dc:date>May 2019</dc:date><meta property="belongs-to-collection" id="c">Winters</meta>'
        '<meta refines="#c" property="group-position">2</meta>',
    ):
        book = read(epub(TWO, metadata=metadata))
        assert (book.year, book.series) == ("2019", "Winters #2")
    assert (read(epub(TWO)).year, read(epub(TWO)).series) == ("", "")


def test_order_comes_from_the_spine_and_without_contents_chapters_from_headings() -> None:
    book = read(epub(TWO, spine=("a.xhtml", "b.xhtml")))
    assert titles(book) == ["A", "C", "B"]
    assert book.chapters[0].text == "A\n\nfirst"


@pytest.mark.parametrize(
    "contents",
    [
        {
            "nav": "<li><a href='a.xhtml'>One</a></li><li><a href='a.xhtml#c'>Two</a></li>"
            "<li><a href='b.xhtml'>Three</a></li>"
        },
        {
            "ncx": "".join(
                f"<navPoint><navLabel><text>{title}</text></navLabel><content src='{src}'/></navPoint>"
                for title, src in (("One", "a.xhtml"), ("Two", "a.xhtml#c"), ("Three", "b.xhtml"))
            )
        },
    ],
)
def test_the_contents_page_names_the_chapters_also_inside_a_document(contents: dict[str, str]) -> None:
    book = read(epub(TWO, spine=("a.xhtml", "b.xhtml"), **contents))  # type: ignore[arg-type]
    assert [(chapter.title, chapter.text) for chapter in book.chapters] == [
        ("One", "A\n\nfirst"),
        ("Two", "C\n\nthird"),
        ("Three", "B\n\nsecond"),
    ]


def test_nested_contents_are_cut_at_the_level_of_chapters() -> None:
    part = "<li><a href='a.xhtml'>Part</a><ol><li><a href='a.xhtml#c'>Deep</a></li></ol></li>"
    nav = f"{part}<li><a href='b.xhtml'>Other</a></li>"
    book = read(epub(TWO, spine=("a.xhtml", "b.xhtml"), nav=nav))
    assert titles(book) == ["Part", "Other"]
    assert book.chapters[0].text == "A\n\nfirst\n\nC\n\nthird"


def test_documents_without_headings_or_contents_are_a_chapter_each() -> None:
    book = read(epub({"1.xhtml": page("<p>one</p>", "Eins"), "2.xhtml": page("<p>two</p>")}, title="T"))
    assert titles(book) == ["Eins", "2"]


def test_a_missing_document_is_noted_and_the_rest_is_read() -> None:
    book = read(epub(TWO, spine=("a.xhtml", "gone.xhtml", "b.xhtml"), cover=b"GIF89a"))
    assert titles(book) == ["A", "C", "B"]
    assert "gone.xhtml is missing" in book.notes[0]
    assert "cover" in book.notes[1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an EPUB"),
        (b"PK\x03\x04 and then nothing", "not an EPUB"),
        (zip_file({"x": "y"}), "container.xml"),
        (zip_file({"META-INF/container.xml": CONTAINER}), "package document is missing"),
        (zip_file({"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": "<package>"}), "not well-formed"),
        (epub({}), "no text"),
        (epub(TWO, spine=("gone",)), "gone is missing"),
        (epub({"a.xhtml": page("<p>é</p>").encode("latin-1")}), "not utf-8"),
        (epub(TWO, extra={"META-INF/encryption.xml": "<e><EncryptionMethod Algorithm='aes'/></e>"}), "DRM"),
        (
            zip_file({"META-INF/container.xml": f"<!DOCTYPE x [<!ENTITY a 'b'><!ENTITY c '&a;&a;'>]>{CONTAINER[21:]}"}),
            "declares XML entities",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_broken_file_is_one_clear_error(data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(data)


def test_a_zip_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.audiobook.formats.epub.MAX_BYTES", 100_000)
    with pytest.raises(InvalidInput, match="unpacks to more"):
        read(epub({"a.xhtml": "<p>" + "a" * 10_000_000}))


def test_all_documents_together_have_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.audiobook.formats.archive.MAX_UNPACKED", 50_000)
    with pytest.raises(InvalidInput, match="unpacks to more"):
        read(epub({f"{n}.xhtml": "<p>" + "a" * 10_000 for n in range(9)}))


def test_a_book_has_a_character_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.audiobook.book.MAX_CHARACTERS", 10)
    with pytest.raises(InvalidInput, match="the limit is 10"):
        read(epub(TWO))


@pytest.mark.parametrize(
    "href", ["../../../etc/passwd", "/etc/passwd", "http://x.org/a", "//x/y", "http://[", "file:///a"]
)
def test_a_link_cannot_lead_out_of_the_archive(href: str) -> None:
    path, _ = resolve_link("OEBPS/a.xhtml", href)
    assert path not in zipfile.ZipFile(io.BytesIO(epub(TWO))).namelist()
    book = epub({"a.xhtml": page("<h1>x</h1><p>y</p>")}, nav=f"<li><a href='{href}'>out</a></li>")
    assert titles(read(book)) == ["The Third Winter"] or titles(read(book)) == ["x"]


@given(seed=st.integers(0, 2**32), n_errors=st.integers(1, 20))
def test_a_damaged_file_is_parsed_or_refused_and_never_crashes(seed: int, n_errors: int) -> None:
    rng = random.Random(seed)
    data = bytearray(epub(TWO, nav="<li><a href='a.xhtml'>One</a></li>", cover=png()))
    for _ in range(n_errors):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(TuttiError):
        read(bytes(data))
