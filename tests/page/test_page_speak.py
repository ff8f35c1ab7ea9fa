"""The Speak view: what was sent is heard, what is heard is lit, what is pressed is asked for."""

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

Visit = Callable[..., Visitor]
SHORT = "To be. Or not."
BLEND = "af_bella(2)+af_sky(0.5)"


@pytest.fixture(autouse=True)
def fresh(server: RunningServer) -> None:
    server.engine.reset()


def sent(server: RunningServer, text: str, **wishes: Any) -> bytes:
    """The samples of the same request, asked for without a page."""
    return bytes(ok(server.speak(input=text, response_format="pcm", **wishes)).content)


def timed(server: RunningServer, text: str) -> list[dict[str, Any]]:
    reply = server.speak(input=text, response_format="pcm", stream_format="sse", word_timestamps=True)
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
    return [word for event in events if event["type"] == "speech.audio.words" for word in event["words"]]


def test_every_sample_that_was_sent_is_played_once_and_in_order(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.say(SHORT)
    pcm = sent(server, SHORT)
    assert int(visitor.told("heard")) == len(pcm) // 2
    assert int(visitor.told("digest")) == digest(pcm)


def test_the_lit_word_is_the_one_that_is_heard(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    words = timed(server, SHORT)
    with visitor.watching_words() as seen:
        visitor.say(SHORT)
    starts = np.array([word["start"] for word in words])
    # The words of a chunk are told behind its samples, so a word may be lit late, but never a wrong one.
    assert all(n == -1 or n == np.searchsorted(starts, at, "right") - 1 for at, n in seen)
    assert [visitor.text(f"[data-n='{n}']") for n in range(len(words))] == [word["word"] for word in words]
    with visitor.watching_words() as seen:
        with visitor.starting():
            visitor.press("Play")  # all is known now: no word may be missed
        visitor.hear_out()
    assert all(n == np.searchsorted(starts, at, "right") - 1 for at, n in seen)
    assert {n for _, n in seen} >= set(range(len(words)))


def test_a_word_that_is_pressed_is_heard_from_its_beginning(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.say(SHORT)
    start = timed(server, SHORT)[2]["start"]
    n_all = int(visitor.told("heard"))
    with visitor.starting():
        visitor.page.locator(".lyrics [data-n='2']").click()
    visitor.hear_out()
    assert int(visitor.told("heard")) - n_all == n_all - round(start * 24_000)


def test_stop_ends_the_work_on_the_server(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    server.engine.hold_from = 1
    visitor.write(LONG)
    visitor.press("Speak")
    visitor.wait(".transport[data-state=arriving]")
    visitor.page.locator(".text").get_by_role("button", name="Stop").click()
    assert server.engine.streams_cancelled.acquire(timeout=120)
    visitor.wait(".transport[data-state=stopped]")
    server.engine.release()


def test_a_blend_is_asked_for_as_it_is_mixed(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    mixed(visitor)
    assert visitor.text("#blend") == BLEND
    visitor.press("Add Adam to the blend")
    visitor.slide("weight-am_adam", -1)
    assert visitor.text("#blend") == f"{BLEND}-am_adam(1)"
    visitor.press("Take Adam out")
    visitor.say()
    assert server.engine.requests[-1]["voice"] == BLEND


def mixed(visitor: Visitor) -> None:
    visitor.page.locator(".card", has_text="Bella").get_by_role("button", name="Bella", exact=False).first.click()
    visitor.press("Add Sky to the blend")
    visitor.slide("weight-af_bella", 2)
    visitor.slide("weight-af_sky", 0.5)
    visitor.write(SHORT)


def assert_error(visitor: Visitor) -> None:
    """A request with everything in it."""
    mixed(visitor)
    visitor.page.locator("#style").select_option("bm_george")
    for name, value in {"speed": 1.5, "pitch": -2, "pitch_range": 0.5, "energy": 1}.items():
        visitor.slide(name, value)
    visitor.page.get_by_role("radio", name="calm").check(force=True)


WISHES = {"style": "bm_george", "speed": 1.5, "pitch": -2, "pitch_range": 0.5, "energy": 1, "emotion": "calm"}


def assert_shaped(asked: dict[str, Any]) -> None:
    assert {name: asked[name] for name in ("text", "voice", *WISHES)} == {"text": SHORT, "voice": BLEND} | WISHES


def test_every_wish_is_asked_for_and_a_link_restores_them_all(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    assert_error(visitor)
    visitor.say()
    assert_shaped(server.engine.requests[-1])
    visitor.page.locator("#link").click()
    visitor.page.wait_for_url("**/#speak?*")
    fragment = str(visitor.page.url).partition("#")[2]
    assert parse_qs(fragment.partition("?")[2])["voice"] == [BLEND]
    friend = visit(server, "#" + fragment)
    assert friend.page.locator("#text").input_value() == SHORT
    friend.wait("#code")
    assert friend.text("#code") == visitor.text("#code")
    friend.say()
    assert_shaped(server.engine.requests[-1])


def test_the_code_it_shows_asks_for_the_same(
    server: RunningServer, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    visitor = visit(server)
    assert_error(visitor)
    for name in ("Python", "tutti.client"):
        visitor.press(name)
        exec(visitor.text("#code"), {})
        assert_shaped(server.engine.requests[-1])
        assert (tmp_path / "speech.mp3").stat().st_size > 0
        (tmp_path / "speech.mp3").unlink()
    visitor.press("curl")
    (body,) = re.findall(r"-d '(.*)'", visitor.text("#code"), re.DOTALL)
    ok(server.post("/v1/audio/speech", json.loads(body)))
    assert_shaped(server.engine.requests[-1])
    visitor.press("JavaScript")
    (body,) = re.findall(r"JSON\.stringify\((.*?)\),\n", visitor.text("#code"), re.DOTALL)
    ok(server.post("/v1/audio/speech", json.loads(body)))
    assert_shaped(server.engine.requests[-1])


def test_every_format_can_be_saved_and_holds_the_whole_sound(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.write(SHORT)
    n_samples = len(sent(server, SHORT)) // 2
    assert visitor.page.locator("#format option").all_inner_texts() == list(FORMATS)
    for name in FORMATS:
        visitor.page.locator("#format").select_option(name)
        with visitor.page.expect_download() as download:
            visitor.page.locator("#download").click()
        assert download.value.suggested_filename == f"speech.{name}"
        data = Path(download.value.path()).read_bytes()
        if name in ("pcm", "mulaw", "alaw"):
            found = len(data) / {"pcm": 2, "mulaw": 1, "alaw": 1}[name] / FORMATS[name].default_rate
        else:
            with av.open(io.BytesIO(data)) as container:
                frames = list(container.decode(audio=0))
                found = sum(frame.samples for frame in frames) / frames[0].sample_rate
        assert found == pytest.approx(n_samples / 24_000, abs=0.15), name


def test_captions_have_the_words_and_their_times(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.say(SHORT)
    words = timed(server, SHORT)
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
        assert clock(words[0]["start"], dot) in saved[kind]
        assert clock(words[-1]["end"], dot) in saved[kind]


def clock(s: float, dot: str) -> str:
    return f"00:00:{s:06.3f}".replace(".", dot)


def test_a_voice_is_greeted_once_and_then_remembered(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    with visitor.starting():
        visitor.press("Hear Bella")
    visitor.hear_out()
    assert [asked["voice"] for asked in server.engine.requests] == ["af_bella"]
    with visitor.starting():
        visitor.press("Hear Bella")
    visitor.hear_out()
    assert len(server.engine.requests) == 1


def test_two_voices_say_the_same_and_either_can_be_heard(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.write(SHORT)
    with visitor.starting():
        visitor.press("Speak both")
    visitor.hear_out()
    assert [asked["voice"] for asked in server.engine.requests] == ["af_heart", "am_michael"]
    with visitor.starting():
        visitor.page.get_by_role("button", name="B Michael").click()
    visitor.hear_out()
    assert int(visitor.told("digest")) == digest(sent(server, SHORT, voice="am_michael"))


def test_what_was_said_can_be_heard_again_without_asking(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    for text in ("One.", "Two."):
        visitor.say(text)
    assert visitor.page.locator(".history .said").all_inner_texts() == ["Two.", "One."]
    n_asked = len(server.engine.requests)
    with visitor.starting():
        visitor.press("Play again: One.")
    visitor.hear_out()
    assert len(server.engine.requests) == n_asked
    assert int(visitor.told("digest")) == digest(sent(server, "One."))


def test_what_the_server_refuses_is_said_in_its_words(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expected = ["400 (Bad Request)"]
    visitor.write("!!!")
    visitor.press("Speak")
    visitor.wait(".speak .trouble:not(:empty)")
    assert "nothing to say" in visitor.text(".speak .trouble")


def test_its_choices_are_those_of_the_server(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.wait(".card")
    assert visitor.page.locator(".emotions .chip").all_inner_texts() == list(EMOTIONS)
    for name, (low, high) in {**LIMITS, "speed": (0.25, 4)}.items():
        slider = visitor.page.locator(f"#{name}")
        assert (float(slider.get_attribute("min")), float(slider.get_attribute("max"))) == (low, high)
    codes = {voice["language"] for voice in server.get("/v1/audio/voices").json()["voices"]}
    assert visitor.page.locator(".voices select option").count() == len(codes)
    visitor.page.locator(".voices select").select_option("ja")
    assert visitor.page.locator(".card .name").all_inner_texts()[0].startswith("Alpha")


def test_it_can_be_worked_by_keys_alone(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server)
    visitor.write(SHORT)
    with visitor.starting():
        visitor.page.locator("#text").press("Control+Enter")
    visitor.hear_out()
    visitor.page.locator(".lyrics [data-n='0']").focus()
    visitor.page.keyboard.press("ArrowRight")
    assert visitor.page.evaluate("document.activeElement.dataset.n") == "1"
    with visitor.starting():
        visitor.page.keyboard.press("Enter")
    visitor.hear_out()
