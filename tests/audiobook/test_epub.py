"""EPUB: order from the spine, chapters from the contents, and clear words for whatever is wrong."""

import io
import random
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.audiobook.make_epub import CONTAINER, epub, page, png, zipped
from tutti.audiobook import book
from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.archive import resolved
from tutti.errors import InvalidInput, TuttiError

TWO = {
    "b.xhtml": page("<h2>B</h2><p>second</p>"),
    "a.xhtml": page("<h2>A</h2><p>first</p><h2 id='c'>C</h2><p>third</p>"),
}


def read(data: bytes) -> Book:
    return read_book(io.BytesIO(data), "book.epub")


def titles(found: Book) -> list[str]:
    return [chapter.title for chapter in found.chapters]


def test_the_package_says_who_wrote_what_with_which_cover() -> None:
    found = read(epub(TWO, title="War & Peace", authors=("Ada", "Bob"), language="en-GB", cover=png(7, 5)))
    assert (found.title, found.author, found.language) == ("War & Peace", "Ada, Bob", "en-GB")
    assert found.cover is not None
    assert (found.cover.data, found.cover.kind, found.cover.width, found.cover.height) == (png(7, 5), "png", 7, 5)


def test_the_spine_is_the_order_and_without_contents_headings_are_the_chapters() -> None:
    found = read(epub(TWO, spine=("a.xhtml", "b.xhtml")))
    assert titles(found) == ["A", "C", "B"]
    assert found.chapters[0].text == "A\n\nfirst"


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
    found = read(epub(TWO, spine=("a.xhtml", "b.xhtml"), **contents))  # type: ignore[arg-type]
    assert [(chapter.title, chapter.text) for chapter in found.chapters] == [
        ("One", "A\n\nfirst"),
        ("Two", "C\n\nthird"),
        ("Three", "B\n\nsecond"),
    ]


def test_nested_contents_are_cut_at_the_level_of_chapters() -> None:
    part = "<li><a href='a.xhtml'>Part</a><ol><li><a href='a.xhtml#c'>Deep</a></li></ol></li>"
    nav = f"{part}<li><a href='b.xhtml'>Other</a></li>"
    found = read(epub(TWO, spine=("a.xhtml", "b.xhtml"), nav=nav))
    assert titles(found) == ["Part", "Other"]
    assert found.chapters[0].text == "A\n\nfirst\n\nC\n\nthird"


def test_documents_without_headings_or_contents_are_a_chapter_each() -> None:
    found = read(epub({"1.xhtml": page("<p>one</p>", "Eins"), "2.xhtml": page("<p>two</p>")}, title="T"))
    assert titles(found) == ["Eins", "2"]


def test_what_is_missing_is_told_and_the_rest_is_read() -> None:
    found = read(epub(TWO, spine=("a.xhtml", "gone.xhtml", "b.xhtml"), cover=b"GIF89a"))
    assert titles(found) == ["A", "C", "B"]
    assert "gone.xhtml is missing" in found.notes[0]
    assert "cover" in found.notes[1]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not an EPUB"),
        (b"PK\x03\x04 and then nothing", "not an EPUB"),
        (zipped({"x": "y"}), "container.xml"),
        (zipped({"META-INF/container.xml": CONTAINER}), "package document is missing"),
        (zipped({"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": "<package>"}), "not well-formed"),
        (epub({}), "no text"),
        (epub(TWO, spine=("gone",)), "gone is missing"),
        (epub({"a.xhtml": page("<p>é</p>").encode("latin-1")}), "not utf-8"),
        (epub(TWO, extra={"META-INF/encryption.xml": "<e><EncryptionMethod Algorithm='aes'/></e>"}), "locked"),
        (
            zipped({"META-INF/container.xml": f"<!DOCTYPE x [<!ENTITY a 'b'><!ENTITY c '&a;&a;'>]>{CONTAINER[21:]}"}),
            "entities of its own",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_read_is_one_clear_error(data: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(data)


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.audiobook.formats.epub.MAX_BYTES", 100_000)
    with pytest.raises(InvalidInput, match="unpacks to more"):
        read(epub({"a.xhtml": "<p>" + "a" * 10_000_000}))


def test_all_documents_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.audiobook.formats.archive.MAX_UNPACKED", 50_000)
    with pytest.raises(InvalidInput, match="unpacks to more"):
        read(epub({f"{n}.xhtml": "<p>" + "a" * 10_000 for n in range(9)}))


def test_a_book_has_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "MAX_CHARACTERS", 10)
    with pytest.raises(InvalidInput, match="at most 10"):
        read(epub(TWO))


@pytest.mark.parametrize(
    "href", ["../../../etc/passwd", "/etc/passwd", "http://x.org/a", "//x/y", "http://[", "file:///a"]
)
def test_no_link_leads_out_of_the_book(href: str) -> None:
    path, _ = resolved("OEBPS/a.xhtml", href)
    assert path not in zipfile.ZipFile(io.BytesIO(epub(TWO))).namelist()
    found = epub({"a.xhtml": page("<h1>x</h1><p>y</p>")}, nav=f"<li><a href='{href}'>out</a></li>")
    assert titles(read(found)) == ["The Third Winter"] or titles(read(found)) == ["x"]


@given(seed=st.integers(0, 2**32), n_wounds=st.integers(1, 20))
def test_a_damaged_file_is_read_or_refused_and_never_breaks_the_reader(seed: int, n_wounds: int) -> None:
    chance = random.Random(seed)
    data = bytearray(epub(TWO, nav="<li><a href='a.xhtml'>One</a></li>", cover=png()))
    for _ in range(n_wounds):
        data[chance.randrange(len(data))] = chance.randrange(256)
    with suppress(TuttiError):
        read(bytes(data))
