"""The voices of the Speak view: dropped, named, heard and deleted; found by traits and by likeness."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import FakeEngine, silent_voices
from tests.page.browser import Visitor, wait_until
from tests.server.harness import RunningServer, serving
from tutti.torch_file import torch_file
from tutti.voices import OFFICIAL, Voices

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    (tmp_path / "kokoro").mkdir()
    silent_voices(tmp_path / "kokoro")
    with serving(FakeEngine(Voices(tmp_path / "kokoro", tmp_path / "own"))) as running:
        yield running


@pytest.fixture
def voice_file(tmp_path: Path) -> Path:
    path = tmp_path / "Kira 2.pt"
    path.write_bytes(torch_file(np.full((510, 1, 256), 0.5, np.float32)))
    return path


def voices_of(server: RunningServer) -> list[str]:
    return [voice["id"] for voice in server.get("/v1/audio/voices").json()["voices"]]


def drop(visitor: Visitor, path: Path) -> None:
    visitor.page.evaluate(
        """([name, bytes]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(bytes)], name));
          dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, cancelable: true}));
        }""",
        [path.name, list(path.read_bytes())],
    )


def test_a_voice_file_is_dropped_named_heard_and_deleted(server: RunningServer, visit: Visit, voice_file: Path) -> None:
    visitor = visit(server)
    visitor.wait(".card")
    drop(visitor, voice_file)
    name = visitor.page.locator("#voice-name")
    assert name.input_value() == "kira_2"
    name.fill("kira")
    visitor.page.locator("#voice-language").select_option("en-gb")
    with visitor.new_playback():
        visitor.press("Add and listen")
    visitor.wait_for_end()
    assert server.engine.requests[-1]["voice"] == "kira"
    assert visitor.text("#blend") == "kira"
    assert "kira" in voices_of(server)
    visitor.speak("To be.")
    assert server.engine.requests[-1]["voice"] == "kira"
    visitor.page.on("dialog", lambda dialog: dialog.accept())
    visitor.press("Delete Kira")
    wait_until(lambda: "kira" not in voices_of(server), "the voice is still there")
    visitor.page.locator("#blend", has_text="af_heart").wait_for()


def test_a_file_that_is_no_voice_is_refused_in_the_dialog(server: RunningServer, visit: Visit, tmp_path: Path) -> None:
    visitor = visit(server)
    visitor.expected_errors.append("400")
    visitor.wait(".card")
    bad = tmp_path / "bad.npy"
    bad.write_bytes(b"hello")
    visitor.page.locator("#voice-file").set_input_files(bad)
    visitor.press("Add and listen")
    visitor.page.get_by_text("it is damaged or not an array of floats").wait_for()
    visitor.press("Cancel")
    assert "bad" not in voices_of(server)


def test_voices_are_found_by_traits_and_likeness(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.wait(".card")
    visitor.page.get_by_label("Language").select_option("")
    visitor.press("slow")
    shown = visitor.page.locator(".card").count()
    assert shown == sum("slow" in voice.description for voice in OFFICIAL.values())
    visitor.press("slow")
    visitor.press("similar to Heart")
    visitor.page.get_by_role("heading", name="Similar to Heart").wait_for()
    assert visitor.page.locator(".card").count() == len(OFFICIAL)
    assert "Heart" in visitor.page.locator(".card").first.inner_text()


def test_one_sentence_is_heard_in_all_that_were_found(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.wait(".card")
    visitor.enter_text("To be. Or not.")
    visitor.press("fast")
    found = visitor.page.locator(".card").count()
    visitor.press(f"Hear all {found}")
    visitor.page.get_by_role("button", name="Stop", exact=True).first.wait_for()
    visitor.page.get_by_role("button", name=f"Hear all {found}").wait_for()
    assert [request["text"] for request in server.engine.requests] == ["To be."] * found
    assert len({request["voice"] for request in server.engine.requests}) == found
