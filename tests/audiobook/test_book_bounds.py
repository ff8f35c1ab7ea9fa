"""A book may not have any number of chapters, passages or characters, and only encodings that texts are written in."""

import encodings
import io
import pkgutil
from collections.abc import Callable

import pytest

from tests.audiobook.make_epub import epub, page
from tutti.audiobook.book import ENCODINGS, MAX_TITLE, Book, Chapter
from tutti.audiobook.formats import read_book
from tutti.audiobook.formats.chapters import MAX_CHAPTERS, MAX_HEADINGS
from tutti.audiobook.passages import MAX_PASSAGES, passages
from tutti.errors import InvalidInput


def book(data: str | bytes, name: str, encoding: str | None = None) -> Book:
    return read_book(io.BytesIO(data.encode() if isinstance(data, str) else data), name, encoding)


def contents(n_entries: int) -> bytes:
    """A table of contents whose entries point into one page of as many paragraphs."""
    paragraphs = "".join(f'<p id="i{n}">deep {n}</p>' for n in range(n_entries))
    links = "".join(f'<li><a href="a.xhtml#i{n}">{n}</a></li>' for n in range(n_entries))
    return epub({"a.xhtml": page(paragraphs)}, nav=f"<ol>{links}</ol>")


CHAPTERS: dict[str, Callable[[int], str | bytes]] = {
    "b.txt": lambda n: "\n\nChapter 1\n\nhi\n" * n,
    "b.md": lambda n: "# a\n\nb\n\n" * n,
    "b.html": lambda n: "<h1>a</h1><p>b</p>" * n,
    "b.epub": contents,
}


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_book_of_many_chapters_is_read_and_one_of_more_is_refused_with_the_cure(name: str) -> None:
    assert len(book(CHAPTERS[name](300), name).chapters) == 300
    with pytest.raises(InvalidInput, match=rf"{name} has over {MAX_CHAPTERS:,} chapters; split") as refused:
        book(CHAPTERS[name](MAX_CHAPTERS + 1), name)
    assert refused.value.param == "book"


@pytest.mark.parametrize("name", ["b.txt", "b.md", "b.html"])
def test_too_many_headings_are_refused_before_the_rest_is_parsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.audiobook.formats.chapters.chapters", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(InvalidInput, match=rf"over {MAX_HEADINGS:,} headings; split") as refused:
        book(CHAPTERS[name](MAX_HEADINGS + 1), name)
    assert refused.value.param == "book"


@pytest.mark.parametrize("name", ["b.txt", "b.md"])
def test_a_text_of_too_many_characters_is_refused_before_it_is_parsed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tutti.audiobook.book.MAX_CHARACTERS", 10_000)
    monkeypatch.setattr("tutti.audiobook.formats.plain.plain_sections", lambda _: pytest.fail("it was parsed"))
    monkeypatch.setattr("tutti.audiobook.formats.markdown._sections", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(InvalidInput, match="characters; the limit is 10,000"):
        book("words " * 2000, name)


def test_a_page_of_too_many_paragraphs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.audiobook.formats.blocks.MAX_BLOCKS", 1000)
    assert book("<p>a</p>" * 1000, "b.html").n_characters
    with pytest.raises(InvalidInput, match="over 1,000 paragraphs") as refused:
        book("<p>a</p>" * 1001, "b.html")
    assert refused.value.param == "book"


def test_a_book_of_too_many_passages_is_refused() -> None:
    pauses = Chapter("", "[pause:60s]a " * (MAX_PASSAGES + 2))
    with pytest.raises(InvalidInput, match=rf"over {MAX_PASSAGES:,} passages") as refused:
        list(passages([pauses]))
    assert refused.value.param == "book"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("b.html", "<title>{0}</title><p>words</p>"),
        ("b.md", "---\ntitle: {0}\nauthor: {0}\n---\nwords"),
        ("b.md", "# {0}\n\nwords"),
    ],
)
def test_titles_of_any_length_are_shortened_and_it_is_said(name: str, data: str) -> None:
    parsed = book(data.format("long " * 100_000), name)
    titles = [parsed.title, parsed.author, *(chapter.title for chapter in parsed.chapters)]
    assert max(map(len, titles)) == MAX_TITLE
    assert parsed.title.endswith("…")
    assert any("shortened" in note for note in parsed.notes)
    short = book(data.format("short"), name)
    assert "short" in (short.title, *(chapter.title for chapter in short.chapters))
    assert short.notes == ()


def test_only_encodings_of_texts_are_accepted_under_all_their_names() -> None:
    for written in ("utf-8", "UTF8", "latin-1", "ISO-8859-1", "iso 8859-1", "windows-1252", "cp1252", "Shift_JIS",
                    "koi8-r", "gb18030", "utf-16", "big5", "EUC-KR"):  # fmt: skip
        assert (
            book("words", "b.txt", written) if written != "utf-16" else book("words".encode(written), "b.txt", written)
        )
    for module in pkgutil.iter_modules(encodings.__path__):
        if module.name not in ENCODINGS:
            with pytest.raises(InvalidInput, match="encoding") as refused:
                book(b"a-b", "b.txt", module.name)
            assert refused.value.param == "encoding"
    for not_text in ("punycode", "idna", "unicode_escape", "raw_unicode_escape", "rot13", "base64", "zlib", "utf-7"):
        with pytest.raises(InvalidInput, match="such as latin-1"):
            book(b"a-b", "b.txt", not_text)


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_every_encoding_of_the_list_exists(encoding: str) -> None:
    assert "words".encode(encoding).decode(encoding) == "words"


def test_an_encoding_that_a_page_declares_is_checked_as_well() -> None:
    with pytest.raises(InvalidInput, match="encoding") as refused:
        book('<meta charset="punycode"><p>a-b</p>', "b.html")
    assert refused.value.param == "encoding"
