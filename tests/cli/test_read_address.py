"""`tutti read https://…`: the article of a page and nothing around it, or the book that the address leads to."""

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.audiobook.make_epub import epub, page
from tutti.cli.web_page import read_page
from tutti.errors import InvalidInput

pytestmark = pytest.mark.server

ARTICLE = """<!doctype html><html lang="en-GB"><head><title>Why snow is quiet | The Example Times</title>
<meta property="og:title" content="Why snow is quiet"><meta name="author" content="Ada Example">
<meta property="article:published_time" content="2024-01-05T10:00:00Z"></head><body>
<nav><a href="/sport">Sport</a></nav><div class="cookie-banner">We use cookies. Accept all.</div><main><article>
<h1>Why snow is quiet</h1><p>Fresh snow takes up sound, because it is full of small gaps of air between its flakes, and
the sound is lost in them for as long as it is cold.</p><h2>How it was measured</h2><p>A team put microphones on a field
[pause:5s] before the first snow of the year, and left them there until March, when the last of it had gone.</p>
<p>When it melts, the ice between the flakes closes the gaps, and the sound of the road comes back.</p></article>
<section id="comments"><p>First!!!</p></section></main><footer>All rights reserved. Privacy</footer></body></html>"""
ANSWERS = {
    "/a": ("text/html; charset=utf-8", ARTICLE.encode()),
    "/b.epub": ("application/octet-stream", epub({"a.xhtml": page("<p>It fell.</p>")})),
    "/c": ("text/plain", b"It fell."),
    "/d.md": ("text/plain", b"# Snow\n\nIt fell."),
    "/e": ("image/png", b"x"),
}


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, body = ANSWERS.get(self.path, ("", b""))
        self.send_response(200 if kind else 404)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_article_of_a_page_is_read_and_nothing_around_it(site: str) -> None:
    pytest.importorskip("trafilatura", reason="the extra [web] is not installed")
    book = read_page(f"{site}/a", None, ())
    assert (book.title, book.author, book.language, book.year) == ("Why snow is quiet", "Ada Example", "en-GB", "2024")
    text = "\n\n".join(chapter.text for chapter in book.chapters)
    assert text.startswith("Why snow is quiet\n\nFresh snow")
    assert "comes back." in text
    assert "(pause:5s]" in text  # a mark on a page is content
    assert not any(word in text for word in ("Sport", "cookies", "First!!!", "rights", "Privacy"))


def test_an_address_of_a_book_is_that_book(site: str) -> None:
    assert read_page(f"{site}/b.epub", None, ()).title == "The Third Winter"
    assert read_page(f"{site}/c", None, ()).chapters[0].text == "It fell."
    assert read_page(f"{site}/d.md", None, ()).chapters[0].title == "Snow"


@pytest.mark.parametrize(("path", "reason"), [("/x", "answered 404"), ("/e", "image/png, not a page or a book")])
def test_what_is_at_an_address_is_said_if_it_cannot_be_read(site: str, path: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_page(site + path, None, ())
    with pytest.raises(InvalidInput, match="cannot fetch"):
        read_page("http://127.0.0.1:1/", None, ())


def test_without_the_extra_it_is_named(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(InvalidInput, match=r"\[web\]"):
        read_page(f"{site}/a", None, ())
