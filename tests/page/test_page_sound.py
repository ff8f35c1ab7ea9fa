"""Sound on every origin: without a worklet, while the audio arrives, and with every silence shown."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import make_fake_engine
from tests.page.browser import INSECURE_HOST, Visitor, digest, ok, wait_until
from tests.server.harness import RunningServer, serving

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]
SHORT = "To be. Or not."
LONG = "The old bridge stands still under the water. It runs deep."  # two chunks
# Keeps every buffer that Web Audio is told to play, with the frame at which it starts.
RECORD_BUFFERS = """
window.started = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (when) {
  const samples = [...this.buffer.getChannelData(0)].map((sample) => Math.round(sample * 32768));
  window.started.push({frame: Math.round(when * this.context.sampleRate), samples});
  return start.call(this, when);
};
"""


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder)) as running:
        yield running


@pytest.fixture(autouse=True)
def reset_engine(server: RunningServer) -> None:
    server.engine.reset()


@pytest.fixture(params=["worklet", "buffers"])
def visitor(request: pytest.FixtureRequest, server: RunningServer, visit: Visit) -> Visitor:
    """The page with each of its two ways to play: over a name of the network there is no worklet."""
    return visit(server, host=None if request.param == "worklet" else INSECURE_HOST)


def expected_pcm(server: RunningServer, text: str) -> bytes:
    return bytes(ok(server.speak(input=text, response_format="pcm")).content)


def test_an_address_of_the_network_has_sound(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, host=INSECURE_HOST, script=RECORD_BUFFERS)
    assert visitor.page.evaluate("[isSecureContext, 'audioWorklet' in new AudioContext()]") == [False, False]
    visitor.speak(LONG)
    pcm = np.frombuffer(expected_pcm(server, LONG), "<i2")
    buffers = visitor.page.evaluate("window.started")
    assert np.array_equal(np.concatenate([buffer["samples"] for buffer in buffers]), pcm)
    assert int(visitor.player_data("played")) == len(pcm)
    assert int(visitor.player_data("digest")) == digest(pcm.tobytes())
    ends = [buffer["frame"] + len(buffer["samples"]) for buffer in buffers]
    pauses = np.array([buffer["frame"] for buffer in buffers[1:]]) - ends[:-1]
    assert (pauses >= 0).all(), "two buffers overlap"
    assert (pauses > 0).any() == (int(visitor.player_data("gaps")) > 0), "a silence between buffers is a gap"


def test_pausing_and_jumping_lose_no_sample(visitor: Visitor) -> None:
    visitor.speak(f"{LONG} {LONG}")
    n_all = int(visitor.player_data("played"))
    start_s = float(visitor.page.locator(".spoken-text [data-n='2']").get_attribute("data-start"))
    with visitor.new_playback():
        visitor.page.locator(".spoken-text [data-n='2']").click()
    with visitor.new_playback():
        visitor.press("Pause")
    visitor.wait(".player[data-playing=false]")
    with visitor.new_playback():
        visitor.press("Play")
    visitor.wait_for_end()
    assert int(visitor.player_data("played")) - n_all == n_all - round(start_s * 24_000)


def test_the_player_is_moved_from_every_view(visitor: Visitor) -> None:
    visitor.speak(LONG)
    n_all = int(visitor.player_data("played"))
    visitor.page.evaluate("location.hash = '#books'")
    with visitor.new_playback():
        visitor.page.get_by_label("Position in the player").fill("0.5")
    with visitor.new_playback():
        visitor.press("Play")
    visitor.wait_for_end()
    assert int(visitor.player_data("played")) - n_all == n_all - 12_000
    assert visitor.text(".player .title") == "Heart"


def test_waiting_for_sound_is_shown_before_the_first_and_in_every_gap(server: RunningServer, visitor: Visitor) -> None:
    server.engine.hold_from = 0
    visitor.enter_text(LONG)
    visitor.press("Speak")
    visitor.wait(".player[data-waiting=true]")
    assert "Waiting for sound" in visitor.text(".player")
    assert visitor.page.get_by_role("button", name="Pause").is_disabled()
    server.engine.release()
    visitor.wait_for_end()
    server.engine.reset()

    server.engine.hold_from = 1
    with visitor.new_playback():
        visitor.press("Speak")
    visitor.wait(".player[data-state=arriving][data-waiting=true]:not([data-gaps='0'])")
    assert "Waiting for sound" in visitor.text(".player")
    server.engine.release()
    visitor.wait_for_end()
    assert int(visitor.player_data("gaps")) > 0
    assert visitor.text("#gaps").endswith(" s")
    assert int(visitor.player_data("played")) == len(expected_pcm(server, LONG)) // 2
    with visitor.new_playback():
        visitor.press("Play")  # all of it is there
    wait_until(lambda: visitor.player_data("gaps") == "0", "a replay does not count gaps of before")


def test_speech_without_a_gap_says_so(server: RunningServer, visitor: Visitor) -> None:
    visitor.speak(SHORT)
    with visitor.new_playback():
        visitor.press("Play")  # all of it is there
    visitor.wait_for_end()
    wait_until(lambda: visitor.player_data("gaps") == "0", "a replay has no gap")
    assert visitor.text("#gaps") == "none"
