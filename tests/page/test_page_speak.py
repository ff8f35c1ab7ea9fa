"""The Speak view: it plays what was sent, highlights what is spoken, requests what is entered."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import av
import numpy as np
import pytest

from tests.page.browser import Visitor, digest, ok
from tests.server.harness import LONG, RunningServer
from tutti.audio import FORMATS
from tutti.model.prosody import EMOTIONS, LIMITS
from tutti.text.marks import _NAMES

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]
SHORT = "To be. Or not."
ROOT = Path(__file__).parents[2]
BLEND = "af_bella(2)+af_sky(0.5)"


@pytest.fixture(autouse=True)
def reset_engine(server: RunningServer) -> None:
    server.engine.reset()


def expected_pcm(server: RunningServer, text: str, **options: Any) -> bytes:
    """The samples of the same request, sent without the page."""
    return bytes(ok(server.speak(input=text, response_format="pcm", **options)).content)


def expected_words(server: RunningServer, text: str) -> list[dict[str, Any]]:
    response = server.speak(input=text, response_format="pcm", stream_format="sse", word_timestamps=True)
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    return [word for event in events if event["type"] == "speech.audio.words" for word in event["words"]]


def test_every_sample_is_played_once_and_in_order(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.speak(SHORT)
    pcm = expected_pcm(server, SHORT)
    assert int(visitor.player_data("played")) == len(pcm) // 2
    assert int(visitor.player_data("digest")) == digest(pcm)


def test_the_highlighted_word_is_the_one_being_spoken(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    words = expected_words(server, SHORT)
    with visitor.record_words() as changes:
        visitor.speak(SHORT)
    starts = np.array([word["start"] for word in words])
    # Words arrive after the samples of their chunk, so the highlight may be late, but never wrong.
    assert all(n == -1 or n == np.searchsorted(starts, at, "right") - 1 for at, n in changes)
    assert [visitor.text(f"[data-n='{n}']") for n in range(len(words))] == [word["word"] for word in words]
    end_s = len(expected_pcm(server, SHORT)) / 48_000  # then no word is highlighted
    highlighted: set[int] = set()
    for _ in range(5):  # a busy browser draws fewer pictures than there are words
        with visitor.record_words() as changes:
            with visitor.new_playback():
                visitor.press("Play")
            visitor.wait_for_end()
        assert all(n == (-1 if at >= end_s else np.searchsorted(starts, at, "right") - 1) for at, n in changes)
        highlighted |= {n for _, n in changes}
        if highlighted >= set(range(len(words))):
            break
    assert highlighted >= set(range(len(words)))
    assert changes[-1][1] == -1


def test_pressing_a_word_plays_from_its_start(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.speak(SHORT)
    start = expected_words(server, SHORT)[2]["start"]
    n_all = int(visitor.player_data("played"))
    with visitor.new_playback():
        visitor.page.locator(".spoken-text [data-n='2']").click()
    visitor.wait_for_end()
    assert int(visitor.player_data("played")) - n_all == n_all - round(start * 24_000)


def test_stop_ends_the_work_on_the_server(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    server.engine.hold_from = 1
    visitor.enter_text(LONG)
    visitor.press("Speak")
    visitor.wait(".player[data-state=arriving]")
    visitor.page.locator(".text").get_by_role("button", name="Stop").click()
    assert server.engine.streams_cancelled.acquire(timeout=120)
    visitor.wait(".player[data-state=stopped]")
    server.engine.release()


def test_a_blend_is_requested_as_mixed(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    mix_blend(visitor)
    assert visitor.text("#blend") == BLEND
    visitor.press("Add Adam to the blend")
    visitor.slide("weight-am_adam", -1)
    assert visitor.text("#blend") == f"{BLEND}-am_adam(1)"
    visitor.press("Remove Adam")
    visitor.speak()
    assert server.engine.requests[-1]["voice"] == BLEND


def mix_blend(visitor: Visitor) -> None:
    visitor.page.locator(".card", has_text="Bella").get_by_role("button", name="Bella", exact=False).first.click()
    visitor.press("Add Sky to the blend")
    visitor.slide("weight-af_bella", 2)
    visitor.slide("weight-af_sky", 0.5)
    visitor.enter_text(SHORT)


def enter_all_options(visitor: Visitor) -> None:
    """Enter a request with every option set."""
    mix_blend(visitor)
    visitor.page.locator("#style").select_option("bm_george")
    for name, value in {"speed": 1.5, "pitch": -2, "pitch_range": 0.5, "energy": 1}.items():
        visitor.slide(name, value)
    visitor.page.get_by_role("radio", name="calm").check(force=True)


OPTIONS = {"style": "bm_george", "speed": 1.5, "pitch": -2, "pitch_range": 0.5, "energy": 1, "emotion": "calm"}


def assert_all_options(request: dict[str, Any]) -> None:
    assert {name: request[name] for name in ("text", "voice", *OPTIONS)} == {"text": SHORT, "voice": BLEND} | OPTIONS


def test_every_option_is_requested_and_a_link_restores_all(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    enter_all_options(visitor)
    visitor.speak()
    assert_all_options(server.engine.requests[-1])
    visitor.page.locator("#link").click()
    visitor.page.wait_for_url("**/#speak?*")
    fragment = str(visitor.page.url).partition("#")[2]
    assert parse_qs(fragment.partition("?")[2])["voice"] == [BLEND]
    other = visit(server, "#" + fragment)
    assert other.page.locator("#text").input_value() == SHORT
    other.wait("#code")
    assert other.text("#code") == visitor.text("#code")
    other.speak()
    assert_all_options(server.engine.requests[-1])


@pytest.mark.parametrize(
    ("option", "changed", "name"),
    [("bm_george", {"voice": "bm_george"}, "George"), ("model:kokoro-int8", {"model": "kokoro-int8"}, "kokoro-int8")],
)
def test_a_text_is_compared_in_two_voices_or_by_two_models(
    server: RunningServer, visit: Visit, option: str, changed: dict[str, str], name: str
) -> None:
    visitor = visit(server)
    visitor.enter_text(SHORT)
    visitor.page.locator("#other").select_option(option)
    n_before = len(server.engine.requests)
    with visitor.new_playback():
        visitor.press("Speak both")
    visitor.wait_for_end()
    (one,) = (request for request in server.engine.requests[n_before:] if changed.items() <= request.items())
    (other,) = (request for request in server.engine.requests[n_before:] if request is not one)
    assert one == {**other, **changed, "id": one["id"], "arrived_s": one["arrived_s"]}
    with visitor.new_playback():
        visitor.page.locator(".compare .switch button").nth(1).click()
    assert name in visitor.text(".compare .switch button[aria-pressed=true]")


def test_the_code_on_the_page_sends_the_same_request(
    server: RunningServer, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    visitor = visit(server)
    enter_all_options(visitor)
    for name in ("Python", "tutti.client"):
        visitor.press(name)
        exec(visitor.text("#code"), {})
        assert_all_options(server.engine.requests[-1])
        assert (tmp_path / "speech.mp3").stat().st_size > 0
        (tmp_path / "speech.mp3").unlink()
    visitor.press("curl")
    (body,) = re.findall(r"-d '(.*)'", visitor.text("#code"), re.DOTALL)
    ok(server.post("/v1/audio/speech", json.loads(body)))
    assert_all_options(server.engine.requests[-1])
    visitor.press("JavaScript")
    (body,) = re.findall(r"JSON\.stringify\((.*?)\),\n", visitor.text("#code"), re.DOTALL)
    ok(server.post("/v1/audio/speech", json.loads(body)))
    assert_all_options(server.engine.requests[-1])


def test_every_format_can_be_downloaded_with_the_whole_audio(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.enter_text(SHORT)
    n_samples = len(expected_pcm(server, SHORT)) // 2
    assert visitor.page.locator("#format option").all_inner_texts() == list(FORMATS)
    for name in FORMATS:
        visitor.page.locator("#format").select_option(name)
        with visitor.page.expect_download() as download:
            visitor.page.locator("#download").click()
        assert download.value.suggested_filename == f"speech.{name}"
        data = Path(download.value.path()).read_bytes()
        if name in ("pcm", "mulaw", "alaw"):
            duration_s = len(data) / {"pcm": 2, "mulaw": 1, "alaw": 1}[name] / FORMATS[name].default_rate
        else:
            with av.open(io.BytesIO(data)) as container:
                frames = list(container.decode(audio=0))
                duration_s = sum(frame.samples for frame in frames) / frames[0].sample_rate
        assert duration_s == pytest.approx(n_samples / 24_000, abs=0.15), name


def test_captions_have_the_words_and_their_times(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.speak(SHORT)
    words = expected_words(server, SHORT)
    saved = {}
    for kind in ("srt", "vtt", "json"):
        with visitor.page.expect_download() as download:
            visitor.press(f"Captions as {kind}")
        saved[kind] = Path(download.value.path()).read_text(encoding="utf-8")
    assert json.loads(saved["json"])["words"] == words
    assert saved["vtt"].startswith("WEBVTT\n\n")
    for kind, dot in (("srt", ","), ("vtt", ".")):
        lines = re.findall(r"-->.*\n(.*)\n", saved[kind])
        assert " ".join(lines) == SHORT
        assert timestamp(words[0]["start"], dot) in saved[kind]
        assert timestamp(words[-1]["end"], dot) in saved[kind]


def timestamp(s: float, dot: str) -> str:
    return f"00:00:{s:06.3f}".replace(".", dot)


def test_a_preview_is_requested_once_and_then_kept(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    with visitor.new_playback():
        visitor.press("Preview Bella")
    visitor.wait_for_end()
    assert [request["voice"] for request in server.engine.requests] == ["af_bella"]
    with visitor.new_playback():
        visitor.press("Preview Bella")
    visitor.wait_for_end()
    assert len(server.engine.requests) == 1


def test_two_voices_speak_the_same_text_and_either_can_be_played(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.enter_text(SHORT)
    with visitor.new_playback():
        visitor.press("Speak both")
    visitor.wait_for_end()
    assert [request["voice"] for request in server.engine.requests] == ["af_heart", "am_michael"]
    with visitor.new_playback():
        visitor.page.get_by_role("button", name="B Michael").click()
    visitor.wait_for_end()
    assert int(visitor.player_data("digest")) == digest(expected_pcm(server, SHORT, voice="am_michael"))


def test_history_replays_without_a_request(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    for text in ("One.", "Two."):
        visitor.speak(text)
    assert visitor.page.locator(".history .spoken").all_inner_texts() == ["Two.", "One."]
    n_requests = len(server.engine.requests)
    with visitor.new_playback():
        visitor.press("Play again: One.")
    visitor.wait_for_end()
    assert len(server.engine.requests) == n_requests
    assert int(visitor.player_data("digest")) == digest(expected_pcm(server, "One."))


def test_an_error_of_the_server_is_shown(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expected_errors = ["400 (Bad Request)"]
    visitor.enter_text("!!!")
    visitor.press("Speak")
    visitor.wait(".speak .error:not(:empty)")
    assert "nothing to say" in visitor.text(".speak .error b")
    assert "Write some words" in visitor.text(".speak .error")


def test_the_controls_match_the_server(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.wait(".card")
    assert visitor.page.locator(".emotions .chip").all_inner_texts() == list(EMOTIONS)
    for name, (low, high) in {**LIMITS, "speed": (0.25, 4)}.items():
        slider = visitor.page.locator(f"#{name}")
        assert (float(slider.get_attribute("min")), float(slider.get_attribute("max"))) == (low, high)
    codes = {voice["language"] for voice in server.get("/v1/audio/voices").json()["voices"]}
    languages = visitor.page.get_by_label("Language")
    assert languages.locator("option").count() == len(codes) + 1
    languages.select_option("ja")
    assert visitor.page.locator(".card .name").all_inner_texts()[0].startswith("Alpha")


def test_it_can_be_used_with_the_keyboard_alone(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.enter_text(SHORT)
    with visitor.new_playback():
        visitor.page.locator("#text").press("Control+Enter")
    visitor.wait_for_end()
    visitor.page.locator(".spoken-text [data-n='0']").focus()
    visitor.page.keyboard.press("ArrowRight")
    assert visitor.page.evaluate("document.activeElement.dataset.n") == "1"
    with visitor.new_playback():
        visitor.page.keyboard.press("Enter")
    visitor.wait_for_end()


CAST = {"Anna": "af_bella", "Ben": "am_michael"}
DIALOGUE = "Once.\nAnna: Ready?\nBen: Yes. Anna is ready: look!\n"


def test_a_dialogue_has_the_voices_of_its_cast_and_its_words_are_found(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.wait(".card")
    visitor.enter_text(DIALOGUE)
    for name, voice in CAST.items():
        visitor.press(f"Add {name}")
        visitor.page.get_by_label(f"Voice of {name}").select_option(voice)
    visitor.speak()
    text = server.engine.requests[-1]["text"]
    assert re.findall(r"\[voice:(.*?)\]\n(.*?) *(?=\[|$)", text, re.DOTALL) == [
        ("af_heart", "Once."), ("Anna", "Ready?"), ("Ben", "Yes. Anna is ready: look!"),
    ]  # fmt: skip
    names = server.engine.requests[-1]["voice_names"]
    assert {name: names[name.lower()] for name in CAST} == CAST
    assert visitor.text(".spoken-text").split() == DIALOGUE.split()
    words = visitor.page.locator(".spoken-text [data-n]").all_inner_texts()
    assert [word.strip(".,?!:") for word in words] == ["Once", "Ready", "Yes", "Anna", "is", "ready", "look"]
    visitor.page.locator("#link").click()
    visitor.page.wait_for_url("**/#speak?*")
    other = visit(server, "#" + str(visitor.page.url).partition("#")[2])
    other.wait("#code")
    assert other.text("#code") == visitor.text("#code")
    visitor.press("Python")
    assert '"Anna": "af_bella"' in visitor.text("#code")


def test_a_button_puts_a_mark_around_the_words_and_no_mark_is_shown_as_spoken(
    server: RunningServer, visit: Visit
) -> None:
    visitor = visit(server)
    visitor.enter_text("deep water, runs")
    visitor.page.locator("#text").evaluate("area => area.setSelectionRange(7, 7)")
    visitor.press("Stress")
    assert visitor.page.locator("#text").input_value() == "deep [emphasis:strong]water[/emphasis], runs"
    marks = "".join(f"[{name}:{value}]" for name, value in MARKS.items())
    ends = "".join(f"[/{name}]" for name in MARKS)
    visitor.speak(f"deep [pause:10ms]{marks}water{ends}, runs")
    assert visitor.text(".spoken-text") == "deep water, runs"


MARKS = {
    "rate": "1.1", "pitch": "+1", "volume": "0.9", "emphasis": "whispered", "voice": "af_bella", "lang": "en-gb",
    "emotion": "calm",
}  # fmt: skip


def test_those_are_all_marks() -> None:
    assert list(MARKS) == _NAMES.split("|")


@pytest.mark.parametrize(("select", "spoken"), [("", "before"), ("getSelection().selectAllChildren(here);", "here")])
def test_the_bookmark_of_the_documentation_brings_the_words_of_another_page(
    server: RunningServer, visit: Visit, select: str, spoken: str
) -> None:
    (bookmark,) = re.findall(r"^javascript:(.*)$", (ROOT / "docs/page.md").read_text("utf-8"), re.MULTILINE)
    visitor = visit(server)
    visitor.page.evaluate("document.body.innerHTML = 'before <b id=here>here</b> after'")
    with visitor.context.expect_page() as opened:
        visitor.page.evaluate(select + bookmark.replace("http://localhost:8880", server.url))
    text = opened.value.locator("#text").input_value()
    assert text.startswith(spoken)
    assert ("after" in text) is not bool(select)
