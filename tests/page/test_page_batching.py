"""The Live batching view: simulated clients are served in batches, and the view shows it."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import GatedModel, silent_voices, tone_engine
from tests.page.browser import Visitor, wait_until
from tests.server.harness import RunningServer, serving

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]
STATS = (Path(__file__).parents[2] / "docs/stats.md").read_text(encoding="utf-8")
COUNTS = """() => [
  parseInt(document.querySelector(".queue > .faint").textContent),
  [...document.querySelectorAll(".queue .count b")].reduce((sum, count) => sum + Number(count.textContent), 0),
]"""  # the sentence, and the sum over classes and stages


@pytest.fixture(scope="module")
def model() -> GatedModel:
    return GatedModel()


@pytest.fixture(scope="module")
def server(voice_folder: Path, model: GatedModel) -> Iterator[RunningServer]:
    # The model is held on purpose: no request may be refused for it.
    settings = {"first_audio_ms": 600_000, "timeout_s": 600}
    with serving(tone_engine(silent_voices(voice_folder), lambda: model, **settings), **settings) as running:
        yield running


@pytest.fixture
def held(model: GatedModel) -> Iterator[GatedModel]:
    with model.gate.closed():
        yield model


def waiting(server: RunningServer) -> int:
    return int(server.get("/v1/stats").json()["waiting"])


def is_holding(server: RunningServer) -> bool:
    """Whether many jobs wait while the held model runs one batch: nothing moves until it is released."""
    now = server.get("/v1/stats").json()
    running = [batch["stage"] for batch in now["batches"] if batch["outcome"] == "running"]
    return now["waiting"] >= 4 and running == ["vocoder"]


def test_sixteen_clients_are_shown_waiting_and_then_served_in_batches(
    server: RunningServer, visit: Visit, held: GatedModel
) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-connection=live]")
    visitor.slide("size", 16)
    visitor.press("Run")
    wait_until(lambda: is_holding(server), "most clients should wait")
    wait_until(lambda: visitor.page.evaluate(COUNTS)[0] >= 4, "the page should show it, a tick later")
    sentence, total = visitor.page.evaluate(COUNTS)
    assert sentence == total
    held.gate.open()
    visitor.wait(".run[data-done='16']:not([data-total-ms=''])")
    assert int(visitor.page.locator(".run").get_attribute("data-most-rows")) > 1
    last = server.get("/v1/stats").json()["batches"][-1]
    card = visitor.page.locator(".recent li").first
    assert card.get_attribute("data-stage") == last["stage"]
    assert card.get_attribute("data-reason") == last["reason"]
    assert int(card.get_attribute("data-rows")) == len(last["rows"])
    with visitor.new_playback():
        visitor.press("Play all at once")
    visitor.wait(".player[data-played][data-state=whole]")


def test_two_policies_are_compared_and_the_own_policy_returns(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-connection=live]")
    visitor.slide("size", 4)
    visitor.press("Compare deadline and window")
    visitor.wait("#speedup")
    for policy in ("deadline", "window"):
        visitor.wait(f".run[data-policy={policy}][data-done='4']")
    assert "×" in visitor.text("#speedup")
    wait_until(lambda: server.get("/v1/stats").json()["trial"] is None, "the trial should be over")
    policies = {batch["policy"] for batch in server.get("/v1/stats").json()["batches"][-8:]}
    assert "window" in policies
    visitor.wait("#policy:has-text('deadline')")


def test_a_stopped_simulation_leaves_no_work_behind(server: RunningServer, visit: Visit, held: GatedModel) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-connection=live]")
    visitor.slide("size", 9)
    visitor.press("Run")
    wait_until(lambda: is_holding(server), "most clients should wait")
    visitor.page.locator(".load").get_by_role("button", name="Stop").click()
    wait_until(lambda: waiting(server) == 0, "cancelled jobs should be dropped")
    visitor.wait(".load button:has-text('Run')")


def test_the_policy_settings_are_those_of_the_server(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "#batching")
    visitor.wait(".policy dd")
    settings = server.get("/v1/stats").json()["settings"]
    assert visitor.page.locator(".policy dt").count() == len(settings)
    assert str(settings["max_queue"]) in visitor.text(".policy dl")
    assert visitor.text("#policy") == "deadline"
    assert visitor.page.locator(".charts canvas").count() == 5


def test_padding_is_drawn_in_its_true_share(server: RunningServer, visit: Visit) -> None:
    """Use the events of docs/stats.md, from a GPU: the tone model, like a CPU, never pads."""
    blocks = re.findall(r"```json\n(\{.*?\})\n```", STATS, re.DOTALL)
    events = [json.loads(event) for event in blocks if event.startswith(('{"type": "hello"', '{"type": "tick"'))]
    assert [event["type"] for event in events] == ["hello", "tick"]
    (batch,) = events[1]["batches"]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    visitor = visit(server)
    visitor.page.route("**/v1/stats/stream", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    visitor.page.goto(f"{server.url}/#batching")
    visitor.wait(".recent li")
    drawn = visitor.page.locator(".recent .block b").evaluate_all(
        "rows => rows.map((row) => parseFloat(row.style.width))"
    )
    assert drawn == pytest.approx([100 * row["size"] / row["padded"] for row in batch["rows"]], abs=0.01)
    assert f"{batch['reason']}, {batch['ms']:.0f} ms" in visitor.text(".recent li")
