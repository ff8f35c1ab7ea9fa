"""A newcomer finds the way: what this is, which voice fits, what went wrong, and what to do next."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import Spelling, make_fake_engine
from tests.page.browser import Visitor
from tests.server.harness import RunningServer, serving
from tutti.errors import MissingExtra, NotReady, QueueFull, UnknownVoice
from tutti.server.routes import openai
from tutti.text import chunks
from tutti.voices import NAMES

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]
KEY = "a-key-of-ours"
MARKED = "[voice:af_heart]Did you [rate:0.8]hear[/rate] it? [pause:200ms] [No](/nˈO/), <b>never</b>."


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder)) as running:
        yield running


@pytest.fixture(scope="module")
def keyed(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder), api_keys=(KEY,)) as running:
        yield running


@pytest.fixture(autouse=True)
def reset_engine(server: RunningServer) -> None:
    server.engine.reset()


@pytest.mark.parametrize(("width", "words"), [(360, ["your own server"]), (1280, ["Kokoro", "audiobooks", "apps"])])
def test_the_first_screen_says_what_this_is(server: RunningServer, visit: Visit, width: int, words: list[str]) -> None:
    visitor = visit(server, viewport={"width": width, "height": 800})
    visitor.wait(".card")
    purpose = visitor.page.locator(".purpose")
    assert purpose.bounding_box()["y"] < 300
    for word in ("Text to speech", *words):
        assert word in purpose.inner_text()
    assert visitor.page.get_by_role("link", name="API reference").is_visible()
    assert visitor.page.title() == "tutti: text to speech"
    assert visitor.page.get_by_role("button", name="Speak", exact=True).bounding_box()["y"] < 800


def test_the_first_sentence_of_the_page_is_spoken_before_the_rest() -> None:
    source = (Path(__file__).parents[2] / "web/src/request.ts").read_text(encoding="utf-8")
    (text,) = re.findall(r'text: "(.*)",', source)
    first, *rest = chunks(text, "en-us", Spelling().pronounce)
    assert rest
    assert len(first.phonemes) < len(text) / 2


def test_voices_are_found_by_words_language_gender_and_quality(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.wait(".card")

    def names() -> list[str]:
        titles = visitor.page.locator(".card .name").evaluate_all("cards => cards.map((card) => card.title)")
        return [str(title) for title in titles]

    assert set(names()) == {name for name in NAMES if name.startswith("a")}
    visitor.page.get_by_label("Gender").select_option("male")
    assert set(names()) == {name for name in NAMES if name.startswith("am")}
    visitor.page.get_by_label("Gender").select_option("")
    visitor.page.get_by_label("Quality").select_option("best")
    assert set(names()) == {"af_heart", "af_bella", "af_nicole"}
    visitor.page.get_by_label("Language").select_option("")
    assert "bf_emma" in names()
    visitor.page.get_by_label("Quality").select_option("")
    visitor.page.get_by_label("Search the voices").fill("george british")
    assert names() == ["bm_george"]
    visitor.page.get_by_label("Search the voices").fill("nobody")
    assert "No voice matches" in visitor.text(".voices")


def test_every_voice_has_a_line_of_description(server: RunningServer) -> None:
    voices = server.get("/v1/audio/voices").json()["voices"]
    assert [voice["id"] for voice in voices] == list(NAMES)
    assert all(voice["description"] for voice in voices)


def test_a_voice_whose_language_is_not_installed_is_marked_before_it_is_pressed(
    server: RunningServer, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "missing_extra", lambda code: "espeak" if code == "es" else None)
    visitor = visit(server)
    visitor.wait(".card")
    assert visitor.page.locator(".card[data-missing=true]").count() == 0
    visitor.page.get_by_label("Language").select_option("es")
    assert visitor.page.locator(".card:has-text('not installed')").count() == 3
    assert all("espeak" in text for text in visitor.page.locator(".needs").all_inner_texts())
    assert visitor.page.get_by_role("button", name="Preview Dora").is_disabled()


PROBLEMS = {
    "busy": (QueueFull("late", retry_after_s=3), r"Try again in [3-9] seconds", True),
    "voice": (UnknownVoice("unknown voice 'x'; list them with: tutti voices"), "Choose one from the list", False),
    "language": (MissingExtra("this language needs espeak-ng"), "cannot speak that language yet", False),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_error_says_what_to_do_and_leaves_no_dead_player(server: RunningServer, visit: Visit, name: str) -> None:
    error, words, can_retry = PROBLEMS[name]
    visitor = visit(server)
    visitor.expected_errors = ["Failed to load resource"]
    server.engine.error, server.engine.fail_at = error, 0
    visitor.enter_text("One.")
    visitor.press("Speak")
    visitor.wait(".speak .error b")
    assert re.search(words, visitor.text(".speak .error"))
    assert visitor.page.locator(".player").count() == 0
    assert visitor.page.locator(".numbers").count() == 0
    assert visitor.page.get_by_role("button", name="Try again").count() == int(can_retry)
    if can_retry:
        server.engine.fail_at = None
        with visitor.new_playback():
            visitor.press("Try again")
        visitor.wait_for_end()
        assert visitor.page.locator(".speak .error b").count() == 0


def test_a_server_that_is_still_loading_is_waited_for(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expected_errors = ["503 (Service Unavailable)"]
    server.engine.error, server.engine.fail_at = NotReady("not warm"), 0
    visitor.enter_text("One.")
    with visitor.new_playback():
        visitor.press("Speak")
    visitor.wait(".player:has-text('loading its model')")
    server.engine.fail_at = None
    visitor.wait_for_end()


def test_a_server_that_is_gone_is_named(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.wait(".card")
    visitor.expected_errors = ["Failed to load resource"]
    visitor.page.route("**/v1/audio/speech", lambda route: route.abort())
    visitor.press("Speak")
    visitor.wait(".speak .error:has-text('does not answer')")
    assert visitor.page.locator(".player").count() == 0


def test_a_wrong_key_is_named_and_the_right_one_goes_on(keyed: RunningServer, visit: Visit) -> None:
    visitor = visit(keyed)
    visitor.expected_errors = ["401 (Unauthorized)"]
    visitor.enter_text("One.")
    visitor.press("Speak")
    visitor.wait("dialog[open]:has-text('needs a key')")
    visitor.page.get_by_label("Key", exact=True).fill("wrong")
    visitor.press("Save")
    visitor.wait("dialog[open]:has-text('did not accept')")
    visitor.page.get_by_label("Key", exact=True).fill(KEY)
    visitor.press("Save")
    visitor.wait_for_end()
    assert visitor.page.locator(".speak .error b").count() == 0


def test_without_a_key_the_page_says_where_to_enter_one(keyed: RunningServer, visit: Visit) -> None:
    visitor = visit(keyed)
    visitor.expected_errors = ["401 (Unauthorized)"]
    visitor.press("Speak")
    visitor.wait("dialog[open]")
    visitor.press("Cancel")
    visitor.wait(".speak .error:has-text('needs an API key')")


def test_marks_and_tags_are_not_in_the_spoken_text(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.speak(MARKED)
    assert " ".join(visitor.text(".spoken-text").split()) == "Did you hear it? No, never."
    assert visitor.text(".history .spoken").split() == ["Did", "you", "hear", "it?", "No,", "never."]


def test_what_was_not_spoken_is_named(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    audio = base64.b64encode(bytes(4800)).decode()
    events = (
        {"type": "speech.audio.delta", "audio": audio},
        {
            "type": "speech.audio.notice",
            "unspoken": ["你", "好"],
            "unspoken_count": 2,
            "notices": ["A notice."],
        },
        {"type": "speech.audio.done"},
    )
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    answer = {"body": body, "content_type": "text/event-stream"}
    visitor.page.route("**/v1/audio/speech", lambda route: route.fulfill(**answer))
    visitor.speak("The word 你好 means hello.")
    assert "你 好 (2 symbols)" in visitor.text(".notices")
    assert "A notice." in visitor.text(".notices")


def test_history_survives_a_reload_with_its_sound(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.speak("One.")
    played, digest = visitor.player_data("played"), visitor.player_data("digest")
    visitor.wait(".history li:has-text('One.')")
    visitor.page.reload()
    visitor.wait(".history li:has-text('One.')")
    n_requests = len(server.engine.requests)
    with visitor.new_playback():
        visitor.press("Play again: One.")
    visitor.wait_for_end()
    assert (visitor.player_data("played"), visitor.player_data("digest")) == (played, digest)
    assert visitor.text(".spoken-text") == "One."
    assert len(server.engine.requests) == n_requests
    visitor.press("Clear")
    visitor.page.wait_for_selector(".history", state="detached")
    visitor.page.reload()
    visitor.wait(".card")
    assert visitor.page.locator(".history").count() == 0
