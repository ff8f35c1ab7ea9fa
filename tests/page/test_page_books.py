"""The Audiobooks view: a dropped book becomes an audiobook, can be paused, and is downloaded."""

import base64
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import pytest

from tests.audiobook.make_epub import epub, page, png
from tests.fakes import make_fake_engine
from tests.page.browser import Visitor
from tests.server.harness import RunningServer, serving
from tests.server.test_jobs import wait_for_end
from tutti.audiobook.formats import READERS

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]
KEY = "a-key-of-ours"
BOOK = epub(
    {"one.xhtml": page("<h1>Snow</h1><p>It began to fall.</p>"), "two.xhtml": page("<h1>Ice</h1><p>It held.</p>")}
)
DROP = """([data, name]) => {
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name));
  document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true}));
}"""


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder), api_keys=(KEY,)) as running:
        yield running


@pytest.fixture
def visitor(server: RunningServer, visit: Visit) -> Visitor:
    server.engine.reset()
    visitor = visit(server, script=f"localStorage.setItem('tutti.key', '{KEY}')")
    visitor.wait(".card")
    visitor.page.on("dialog", lambda dialog: dialog.accept())
    return visitor


def drop(visitor: Visitor, data: bytes, name: str) -> None:
    visitor.page.evaluate(DROP, [base64.b64encode(data).decode(), name])
    visitor.wait(f".drop:has-text('{name}')")


def test_the_page_offers_only_what_the_server_reads(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.url}/#books")
    accepted = str(visitor.page.locator("#book").get_attribute("accept")).split(",")
    assert {".epub", ".docx", ".odt", ".fb2", ".pdf", ".txt", ".md"} <= set(accepted) <= set(READERS)


def test_a_dropped_epub_becomes_an_audiobook_to_download(server: RunningServer, visitor: Visitor) -> None:
    drop(visitor, BOOK, "winter.epub")
    visitor.page.locator("#book-voice").select_option("bm_george")
    visitor.press("Make audiobook")
    visitor.wait(".job[data-state=done][data-title='The Third Winter']")
    assert {request["voice"] for request in server.engine.requests} == {"bm_george"}
    with visitor.page.expect_download() as download:
        visitor.press("Download .m4b")
    assert download.value.suggested_filename == "The Third Winter.m4b"
    with av.open(io.BytesIO(Path(download.value.path()).read_bytes())) as container:
        assert container.metadata["title"] == "The Third Winter"
        assert len(container.chapters()) == 2
    visitor.press("Delete The Third Winter")
    visitor.wait(".empty:has-text('No audiobooks yet')")


def test_a_book_gets_a_title_a_series_and_its_own_pronunciations(server: RunningServer, visitor: Visitor) -> None:
    drop(visitor, b"# One\n\nKira ran.", "notes.md")
    visitor.page.locator(".about summary").click()
    for label, text in (("Title", "The Run"), ("Author", "Ada"), ("Series", "The Winters #2")):
        visitor.page.get_by_label(label, exact=True).fill(text)
    words = visitor.page.get_by_label("Pronunciations in this book")
    words.fill("Kira")
    visitor.expected_errors = ["400 (Bad Request)"]
    visitor.press("Make audiobook")
    visitor.wait(".books .error:has-text('Kira')")
    words.fill("Kira = keera\n\nnginx=engine ex")
    visitor.press("Make audiobook")
    visitor.wait(".job[data-state=done][data-title='The Run']:has-text('Ada')")
    assert server.engine.requests[-1]["lexicon"] == {"Kira": "keera", "nginx": "engine ex"}
    with visitor.page.expect_download() as download:
        visitor.press("Download .m4b")
    with av.open(io.BytesIO(Path(download.value.path()).read_bytes())) as container:
        assert (container.metadata["artist"], container.metadata["grouping"]) == ("Ada", "The Winters #2")
    visitor.press("Delete The Run")
    visitor.wait(".empty")
    drop(visitor, b"# One\n\nIt fell.", "other.md")
    assert visitor.page.get_by_label("Title", exact=True).input_value() == "", "of the book before"


def test_a_kept_book_is_corrected_by_a_word_and_by_another_file(server: RunningServer, visitor: Visitor) -> None:
    text = "\n\n".join(f"# {word}\n\n{word} ran." for word in ("Kira", "Tom"))
    drop(visitor, text.encode(), "notes.md")
    visitor.page.get_by_label("to be corrected later").check()
    visitor.press("Make audiobook")
    visitor.wait(".job[data-state=done]")
    for change, spoken in (("word", "Kira"), ("file", "Tim")):
        server.engine.requests.clear()
        visitor.page.reload()
        visitor.page.locator(".job[data-state=done] .correction summary").click()
        visitor.wait(".correction:has-text('Only what differs')")
        if change == "word":
            visitor.page.get_by_label("Pronunciations, one a line").fill("kira = keera")
        else:
            changed = {"name": "new.md", "mimeType": "text/markdown", "buffer": text.replace("Tom", "Tim").encode()}
            visitor.page.get_by_label("The corrected book").set_input_files(changed)
        with visitor.page.expect_response(lambda response: response.url.endswith("/again")) as answer:
            visitor.press("Speak what differs")
        assert answer.value.status == 200
        wait_for_end(server, answer.value.json()["id"], headers={"authorization": f"Bearer {KEY}"})
        assert [spoken in request["text"] for request in server.engine.requests] == [True]
        assert server.engine.requests[0]["lexicon"] == {"kira": "keera"}
    visitor.press("Delete Kira")
    visitor.wait(".empty")


def test_a_book_is_listened_to_and_continued_where_it_was_left(server: RunningServer, visitor: Visitor) -> None:
    sentence = "<p>The old bridge stands still under the water tonight, and it runs deep.</p>"
    pages = {f"{n}.xhtml": page(f"<h1>Part {n}</h1>{sentence * 12}") for n in (1, 2, 3)}
    drop(visitor, epub(pages, cover=png(300, 450)), "winter.epub")
    visitor.press("Make audiobook")
    visitor.wait(".job[data-state=done]")
    visitor.press("Listen to The Third Winter")
    player = visitor.page.locator(".book-player")
    visitor.wait(".book-player .cover")
    visitor.wait(".book-player .chapters li:nth-child(3)")
    assert player.locator(".cover").evaluate("image => image.naturalWidth") == 300
    visitor.press("Play the book")
    visitor.wait(".book-player[data-playing=true]")
    player.get_by_label("Speed").select_option("2")
    player.get_by_role("button", name="Part 2").click()
    visitor.wait(".book-player[data-chapter='1'] .now:has-text('Part 2')")
    assert player.locator("audio").evaluate("audio => audio.playbackRate") == 2
    visitor.press("Pause the book")
    visitor.wait(".book-player[data-playing=false]")
    left_at = player.locator("audio").evaluate("audio => audio.currentTime")
    visitor.page.reload()
    visitor.wait(".job[data-state=done]:has-text('Continue listening')")
    visitor.press("Listen to The Third Winter")
    visitor.wait(".book-player[data-chapter='1']")
    visitor.page.wait_for_function("() => document.querySelector('.book-player audio').readyState > 0")
    at = player.locator("audio").evaluate("audio => [audio.currentTime, audio.playbackRate]")
    assert at[0] == pytest.approx(left_at, abs=1)
    assert at[1] == 2
    visitor.press("Delete The Third Winter")
    visitor.wait(".empty")


def test_the_copyright_page_and_notes_can_be_left_out(visitor: Visitor) -> None:
    drop(visitor, b"# One\n\nIt fell.\n\n# Copyright\n\nAll of it.", "snow.md")
    visitor.page.get_by_label("without copyright page and notes").check()
    visitor.press("Make audiobook")
    visitor.wait(".job[data-state=done]:has-text('1 chapter')")
    assert "skipped: copyright" in str(visitor.page.locator(".job details.notes").text_content())
    visitor.press("Delete One")
    visitor.wait(".empty")


def test_a_book_can_be_paused_and_continued(server: RunningServer, visitor: Visitor) -> None:
    server.engine.hold_from = 0
    drop(visitor, b"# One\n\nIt began to fall.", "notes.md")
    visitor.press("Make audiobook")
    visitor.wait(".job[data-state=running] progress")
    visitor.press("Pause")
    visitor.wait(".job[data-state=cancelled]:has-text('Paused')")
    server.engine.release()
    visitor.press("Continue")
    visitor.wait(".job[data-state=done]:has-text('Ready')")
    visitor.page.reload()  # the list is the server's
    visitor.wait(".job[data-state=done]")
    visitor.press("Delete", exact=False)
    visitor.wait(".empty")


def test_a_file_that_is_no_book_is_refused_in_words(visitor: Visitor) -> None:
    visitor.expected_errors = ["400 (Bad Request)"]
    drop(visitor, b"PK\x03\x04 not a book", "broken.epub")
    visitor.press("Make audiobook")
    visitor.wait(".books .error b")
    assert visitor.page.locator(".job").count() == 0
    assert visitor.page.get_by_role("button", name="Make audiobook").is_enabled()
