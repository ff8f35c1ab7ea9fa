"""The Speak view: language, code blocks and pronunciations that anyone can correct."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeEngine, make_fake_engine
from tests.page.browser import Visitor, wait_until
from tests.server.harness import RunningServer, serving

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]
KEY = "key-of-ours"
SAID = "/ˈɛnʤˌɪnks/"


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    return make_fake_engine(tmp_path)


@pytest.fixture
def server(engine: FakeEngine) -> Iterator[RunningServer]:
    with serving(engine) as running:
        yield running


@pytest.fixture
def keyed(engine: FakeEngine) -> Iterator[RunningServer]:
    with serving(engine, api_keys=KEY) as running:
        yield running


def select_word(visitor: Visitor, text: str, word: str) -> None:
    visitor.enter_text(text)
    visitor.page.locator("#text").evaluate(
        "(field, [start, end]) => field.setSelectionRange(start, end)",
        [text.index(word), text.index(word) + len(word)],
    )
    visitor.page.locator("#pronounce").click()


def keep(visitor: Visitor, said: str) -> None:
    visitor.page.locator("#said").fill(said)
    visitor.page.locator("dialog.pronunciation button[type=submit]").click()
    visitor.wait(".words")


def last(engine: FakeEngine) -> dict[str, Any]:
    return engine.requests[-1]


def test_a_word_is_selected_heard_kept_and_forgotten(server: RunningServer, engine: FakeEngine, visit: Visit) -> None:
    visitor = visit(server)
    select_word(visitor, "Start Nginx now.", "Nginx")
    assert visitor.page.locator("#word").input_value() == "Nginx"
    visitor.page.locator("#said").fill(SAID)
    with visitor.new_playback():
        visitor.press("Hear it")
    wait_until(lambda: bool(engine.requests), "the word is spoken")
    assert (last(engine)["text"], last(engine)["lexicon"]) == ("Nginx", {"nginx": SAID})
    keep(visitor, SAID)
    visitor.speak()
    assert last(engine)["lexicon"] == {"nginx": SAID}
    visitor.page.reload()  # it is stored in this browser
    visitor.wait(".words")
    visitor.press("Forget nginx")
    visitor.speak("Start nginx now.")
    assert last(engine)["lexicon"] == {}


def test_the_readings_of_the_server_can_be_heard_and_kept(
    server: RunningServer, engine: FakeEngine, visit: Visit
) -> None:
    visitor = visit(server)
    answer = {"word": "bass", "readings": [{"phonemes": "bˈæs", "source": "now"}, {"phonemes": "bˈAs", "source": "x"}]}
    visitor.page.route(
        "**/dev/readings", lambda route: route.fulfill(body=json.dumps(answer), content_type="application/json")
    )
    select_word(visitor, "The bass plays.", "bass")
    with visitor.new_playback():
        visitor.press("Hear /bˈAs/")
    wait_until(lambda: bool(engine.requests), "the reading is spoken")
    assert last(engine)["lexicon"] == {"bass": "/bˈAs/"}
    visitor.press("Keep /bˈAs/")
    visitor.speak()
    assert last(engine)["lexicon"] == {"bass": "/bˈAs/"}


def test_with_a_key_a_word_is_kept_on_the_server_too(keyed: RunningServer, engine: FakeEngine, visit: Visit) -> None:
    script = f"localStorage.setItem('tutti.key', '{KEY}')"
    headers = {"authorization": f"Bearer {KEY}"}

    def stored() -> Any:
        return keyed.get("/v1/lexicons/my-words", headers=headers).json().get("entries")

    first = visit(keyed, script=script)
    select_word(first, "Start nginx now.", "nginx")
    keep(first, "engine ex")
    wait_until(lambda: bool(stored() == {"nginx": "engine ex"}), "the server has the word")
    second = visit(keyed, script=script)  # another browser of the same person
    second.wait(".words")
    second.press("Forget nginx")
    wait_until(lambda: bool(stored() == {}), "the server has forgotten the word")


def test_language_and_code_blocks_are_chosen_and_part_of_the_link(
    server: RunningServer, engine: FakeEngine, visit: Visit
) -> None:
    visitor = visit(server)
    visitor.page.wait_for_selector("#language option[value=zh]", state="attached")
    assert visitor.page.locator("#language option[value=auto]").count() == 1
    visitor.page.locator("#language").select_option("en-gb")
    visitor.page.locator("#code-blocks").select_option("read")
    visitor.speak("Hello.")
    assert (last(engine)["language"], last(engine)["code_blocks"]) == ("en-gb", "read")
    visitor.page.locator("#link").click()
    visitor.page.wait_for_url("**/#speak?*")
    other = visit(server, f"#{visitor.page.url.partition('#')[2]}")
    other.speak()
    assert (last(engine)["language"], last(engine)["code_blocks"]) == ("en-gb", "read")


def test_a_pronunciation_that_cannot_be_spoken_is_explained(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expected_errors = ["400"]
    error = {"message": "Kokoro has no symbol for §", "type": "", "param": "lexicon", "code": "invalid_input"}
    visitor.page.route("**/v1/audio/speech", lambda route: route.fulfill(status=400, body=json.dumps({"error": error})))
    select_word(visitor, "Start nginx now.", "nginx")
    visitor.page.locator("#said").fill("/§/")
    visitor.press("Hear it")
    visitor.wait("dialog.pronunciation .error")
    assert "§" in visitor.text("dialog.pronunciation .error")
