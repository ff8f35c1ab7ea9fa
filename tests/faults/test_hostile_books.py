"""Books made to waste time or memory: they are read in linear time, refused, or given up, and the server can stop."""

import signal
import struct
import time
from pathlib import Path

import httpx2
import pytest

from tests.audiobook.make_epub import epub, page
from tests.faults.limited_server import LimitedServer, limited_server

pytestmark = [pytest.mark.process, pytest.mark.server]


def send(server: LimitedServer, data: bytes, name: str = "book.epub") -> httpx2.Response:
    return server.client.post("/v1/jobs", files={"file": (name, data)}, data={"format": "mp3"})


def remove(server: LimitedServer, created: httpx2.Response) -> None:
    if created.status_code == 201:
        server.client.delete(f"/v1/jobs/{created.json()['id']}")


def contents(n_entries: int) -> bytes:
    """A table of contents whose entries all point into one page of as many blocks."""
    blocks = "".join(f'<p id="i{n}">deep {n}</p>' for n in range(n_entries))
    links = "".join(f'<li><a href="a.xhtml#i{n}">{n}</a></li>' for n in range(n_entries))
    return epub({"a.xhtml": page(blocks)}, nav=f"<ol>{links}</ol>")


TOO_MUCH = {  # what is sent, and the field that the refusal names
    "a quadratic encoding": ("book.txt", lambda: b"a" * 1_500_000 + b"-" + b"b" * 1_500_000, "punycode", "encoding"),
    "chapters of plain text": ("book.txt", lambda: b"\n\nChapter 1\n\nhi\n" * 1_000_000, None, "file"),
    "chapters of Markdown": ("book.md", lambda: b"# a\n\nb\n\n" * 1_000_000, None, "file"),
    "chapters of HTML": ("book.html", lambda: b"<h1>a</h1><p>b</p>" * 1_000_000, None, "file"),
    "paragraphs of HTML": ("book.html", lambda: b"<p>a</p>" * 250_000, None, "file"),
    "passages": ("book.md", lambda: b"[pause:60s]a " * 110_000, None, "file"),
    "characters": ("book.txt", lambda: b"words " * 4_000_000, None, "file"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_book_of_too_much_is_refused_and_the_memory_of_the_server_stays(server: LimitedServer, what: str) -> None:
    name, make, encoding, param = TOO_MUCH[what]
    before = server.memory()
    form = {"format": "mp3", **({"encoding": encoding} if encoding else {})}
    refused = server.client.post("/v1/jobs", files={"file": (name, make())}, data=form)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["param"] == param
    assert server.memory() < before + 30e6


def test_a_long_book_does_not_come_into_the_memory_of_the_server_when_it_is_sent(server: LimitedServer) -> None:
    book = "".join(f"\n\nChapter {n}\n\n" + "It began to fall. " * 3_000 for n in range(1, 60))
    before = server.memory()
    created = send(server, book.encode(), "book.txt")
    assert created.status_code == 507, "3 million characters do not fit on this server's disk"
    assert server.memory() < before + 30e6


def test_a_table_of_contents_of_any_length_takes_linear_time(server: LimitedServer) -> None:
    refused = send(server, contents(15_000))  # was minutes
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "file")
    assert "chapters" in refused.json()["error"]["message"]


def test_a_row_of_a_hundred_thousand_cells_takes_linear_time(server: LimitedServer) -> None:
    created = send(server, page("<table><tr>" + "<td>a</td>" * 100_000 + "</tr></table>").encode(), "book.html")
    assert created.status_code in (201, 507), created.text
    remove(server, created)


def test_too_many_elements_are_refused_without_filling_the_memory(server: LimitedServer) -> None:
    tree = "<navPoint>" * 150 + "<b/>" * 400_000 + "</navPoint>" * 150
    before = server.memory()
    created = send(server, epub({"a.xhtml": page("<p>deep</p>")}, ncx=tree))
    assert created.status_code == 201, created.text
    assert any("too many elements" in note for note in created.json()["notes"])
    assert server.memory() < before + 30e6
    remove(server, created)


def test_a_zip_file_with_a_huge_directory_is_refused_unread(server: LimitedServer) -> None:
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 50_000_000, 0, 0)
    refused = send(server, b"PK\x03\x04" + b"\0" * 1000 + end)
    assert refused.status_code == 400
    assert "files in it" in refused.json()["detail"]["message"]


def test_a_book_that_takes_long_ends_with_its_caller_and_with_the_server(tmp_path: Path) -> None:
    heavy = ("<p>" + "a. " * 330 + "</p>") * 20_000  # 20 MB: seconds of work
    with limited_server(tmp_path, "--grace-s", "0.5") as server:
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{server.url}/v1/jobs", files={"file": ("book.html", heavy)}, timeout=2)
        while server.metric("tutti_http_answers_total", outcome="left") == 0:
            time.sleep(0.01)
        while (server.child("book")) is not None:  # it is killed, not waited for
            time.sleep(0.01)
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{server.url}/v1/jobs", files={"file": ("book.html", heavy)}, timeout=2)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
