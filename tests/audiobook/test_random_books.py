"""50 random books, in EPUB, Word and OpenDocument: no word is lost or doubled, chapters and tags are as written."""

import io
import random
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest

from tests.audiobook.ffprobe import probe
from tests.audiobook.make_epub import epub, page
from tests.audiobook.make_office import docx, odt, w_p, w_run
from tutti.audio.tagged import container
from tutti.audiobook.book import Book
from tutti.audiobook.export import export_book
from tutti.audiobook.formats import read_book
from tutti.audiobook.journal import Journal
from tutti.audiobook.passages import passages
from tutti.speech import Speech

pytestmark = pytest.mark.process

N_BOOKS = 50
KINDS = ("epub", "docx", "odt")
W_NOTE = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
O_NOTE_BODY = "<text:note-body><text:p>{}</text:p></text:note-body>"
O_NOTE = f"<text:note><text:note-citation>*</text:note-citation>{O_NOTE_BODY}</text:note>"


class Words:
    """Words of which no two are equal, so that each is found again: w0x, w1x, …"""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.n = 0

    def some(self, most: int = 30) -> str:
        first, self.n = self.n, self.n + self.chance.randint(1, most)
        return " ".join(f"w{n}x" + self.chance.choice(("", "", ",", ".", " —", " & co")) for n in range(first, self.n))


def epub_chapter(words: Words, title: str) -> str:
    chance, parts = words.chance, [f"<h1>{title}</h1><p>{escape(words.some())}</p>"]
    for _ in range(chance.randint(1, 8)):
        text = escape(words.some())
        parts.append(
            chance.choice(
                (
                    "<p>{}</p>", "<p><b>{}</b></p>", "<blockquote><p>{}</p></blockquote>", "<ul><li>{}</li></ul>",
                    "<table><tr><td>{}</td></tr></table>", "<div>{}<br/></div>", "<h2>{}</h2>", "<section>{}</section>",
                    '<aside epub:type="footnote"><p>{}</p></aside>', "<pre>{}</pre>", "<ol><li><p>{}</p></li></ol>",
                )
            ).format(text)
        )  # fmt: skip
    return page("".join(parts) + f"<p>{escape(words.some())}</p>")


def docx_chapter(words: Words, title: str, notes: dict[str, str]) -> str:
    chance, parts = words.chance, [w_p(title, style="berschrift1")]
    for _ in range(chance.randint(1, 8)):
        texts = [words.some() + " ", words.some()]
        match chance.randrange(6):
            case 0:
                parts.append(f"<w:tbl><w:tr><w:tc>{w_p(texts[0])}</w:tc><w:tc>{w_p(texts[1])}</w:tc></w:tr></w:tbl>")
            case 1:
                notes[str(len(notes) + 2)] = w_p(texts[1])
                parts.append(w_p(texts[0], W_NOTE.format(len(notes) + 1)))
            case 2:
                parts.append(w_p(*texts, number=chance.choice("12")))
            case 3:
                parts.append(w_p(w_run(texts[0], properties="<w:b/>"), "<w:r><w:br/></w:r>", w_run(texts[1])))
            case _:
                parts.append(w_p(*texts))
    return "".join(parts) + w_p(words.some())


def odt_chapter(words: Words, title: str) -> str:
    chance, parts = words.chance, [f'<text:h text:outline-level="1">{title}</text:h>']
    for _ in range(chance.randint(1, 8)):
        parts.append(
            chance.choice(
                (
                    "<text:p>{}</text:p>", "<text:p>{}<text:line-break/></text:p>", f"<text:p>y{O_NOTE}</text:p>",
                    "<text:p><text:span>{}</text:span><text:tab/></text:p>",
                    '<text:list text:style-name="L1"><text:list-item><text:p>{}</text:p></text:list-item></text:list>',
                    "<table:table><table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell>"
                    "</table:table-row></table:table>",
                )
            ).format(escape(words.some()))
        )  # fmt: skip
    return "".join(parts) + f"<text:p>{escape(words.some())}</text:p>"


def make(kind: str, words: Words, titles: list[str], title: str, author: str) -> bytes:
    if kind == "epub":
        pages = {f"{n}.xhtml": epub_chapter(words, each) for n, each in enumerate(titles)}
        nav = "".join(f'<li><a href="{n}.xhtml">{each}</a></li>' for n, each in enumerate(titles))
        return epub(pages, title=title, authors=(author,), nav=words.chance.choice((nav, None)))
    if kind == "docx":
        notes: dict[str, str] = {}
        body = "".join(docx_chapter(words, each, notes) for each in titles)
        return docx(body, footnotes=notes, title=title, author=author)
    return odt("".join(odt_chapter(words, each) for each in titles), title=title, author=author)


def numbers(book: Book) -> list[int]:
    text = " ".join(chapter.text for chapter in book.chapters)
    return [int(n) for n in re.findall(r"\bw(\d+)x\b", text)]


@pytest.mark.parametrize("seed", range(N_BOOKS))
def test_no_word_is_lost_and_chapters_and_tags_are_as_written(seed: int, tmp_path: Path) -> None:
    words, kind = Words(seed), KINDS[seed % 3]
    titles = [f"Part {n + 1}: é & more".replace("&", "&amp;") for n in range(words.chance.randint(2, 6))]
    shown = [each.replace("&amp;", "&") for each in titles]
    in_docx = shown if kind == "docx" else titles
    data = make(kind, words, in_docx, f"Book & {seed}", f"Ada Nr. {seed}")
    book = read_book(io.BytesIO(data), f"b.{kind}")
    assert sorted(numbers(book)) == list(range(words.n))
    plan = list(passages(book.chapters))
    spoken = " ".join(passage.text(book.chapters) for passage in plan)
    assert len(set(re.findall(r"\bw\d+x\b", spoken))) == words.n
    suffix = words.chance.choice((".m4b", ".mp3", ".flac", ".opus"))
    with Journal(tmp_path / "reading", "same") as journal:
        for n, _ in enumerate(plan):
            journal.save(n, Speech(np.zeros(2400, np.float32) + 0.1, (), (0, 0)))
        export_book(book, plan, journal, tmp_path / f"b{suffix}", container(suffix))
    tags = probe(tmp_path / f"b{suffix}")
    assert tags["chapters"] == shown
    assert (tags["title"], tags["artist"], tags["language"]) == (f"Book & {seed}", f"Ada Nr. {seed}", "eng")
