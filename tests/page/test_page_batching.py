"""The Batching view: a crowd is let in, served in batches, and all of it is seen."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import Holding, silent_voices, tone_engine
from tests.page.browser import Visitor, until
from tests.server.harness import RunningServer, serving

Visit = Callable[..., Visitor]
STATS = (Path(__file__).parents[2] / "docs/stats.md").read_text(encoding="utf-8")
COUNTS = """() => [
  parseInt(document.querySelector(".queue > .faint").textContent),
  [...document.querySelectorAll(".queue .count b")].reduce((sum, count) => sum + Number(count.textContent), 0),
]"""  # the sentence, and the sum over classes and stages


@pytest.fixture(scope="module")
def model() -> Holding:
    return Holding()


@pytest.fixture(scope="module")
def server(voice_folder: Path, model: Holding) -> Iterator[RunningServer]:
    # Held on purpose: nobody may be refused for it.
    chosen = {"first_audio_ms": 600_000, "timeout_s": 600}
    with serving(tone_engine(silent_voices(voice_folder), lambda: model, **chosen), **chosen) as running:
        yield running


@pytest.fixture
def held(model: Holding) -> Iterator[Holding]:
    with model.held():
        yield model


def waiting(server: RunningServer) -> int:
    return int(server.get("/v1/stats").json()["waiting"])


def crowded(server: RunningServer) -> bool:
    """Many wait, and the model holds still: nothing moves until it is let go."""
    now = server.get("/v1/stats").json()
    running = [batch["stage"] for batch in now["batches"] if batch["outcome"] == "running"]
    return now["waiting"] >= 4 and running == ["vocoder"]


def test_a_crowd_of_sixteen_is_seen_waiting_and_then_served_in_batches(
    server: RunningServer, visit: Visit, held: Holding
) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-standing=live]")
    visitor.slide("size", 16)
    visitor.press("All together")
    until(lambda: crowded(server), "most of them should wait")
    until(lambda: visitor.page.evaluate(COUNTS)[0] >= 4, "the page should tell so, a tick later")
    told, counted = visitor.page.evaluate(COUNTS)
    assert told == counted
    held.go.set()
    visitor.wait(".run[data-done='16']:not([data-total-ms=''])")
    assert int(visitor.page.locator(".run").get_attribute("data-most-rows")) > 1
    last = server.get("/v1/stats").json()["batches"][-1]
    card = visitor.page.locator(".last li").first
    assert card.get_attribute("data-stage") == last["stage"]
    assert card.get_attribute("data-reason") == last["reason"]
    assert int(card.get_attribute("data-rows")) == len(last["rows"])
    with visitor.starting():
        visitor.press("Hear them all at once")
    visitor.wait(".transport[data-heard][data-state=whole]")


def test_two_policies_are_held_against_each_other_and_the_servers_own_comes_back(
    server: RunningServer, visit: Visit
) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-standing=live]")
    visitor.slide("size", 4)
    visitor.press("deadline against window")
    visitor.wait("#speedup")
    for policy in ("deadline", "window"):
        visitor.wait(f".run[data-policy={policy}][data-done='4']")
    assert "×" in visitor.text("#speedup")
    until(lambda: server.get("/v1/stats").json()["trial"] is None, "the trial should be over")
    policies = {batch["policy"] for batch in server.get("/v1/stats").json()["batches"][-8:]}
    assert "window" in policies
    visitor.wait("#policy:has-text('deadline')")


def test_a_crowd_that_is_stopped_leaves_no_work_behind(server: RunningServer, visit: Visit, held: Holding) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-standing=live]")
    visitor.slide("size", 9)
    visitor.press("All together")
    until(lambda: crowded(server), "most of them should wait")
    visitor.page.locator(".load").get_by_role("button", name="Stop").click()
    until(lambda: waiting(server) == 0, "those who left should be forgotten")
    visitor.wait(".load button:has-text('All together')")


def test_the_rules_are_those_of_the_server(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "#batching")
    visitor.wait(".rules dd")
    settings = server.get("/v1/stats").json()["settings"]
    assert visitor.page.locator(".rules dt").count() == len(settings)
    assert str(settings["max_queue"]) in visitor.text(".rules dl")
    assert visitor.text("#policy") == "deadline"
    assert visitor.page.locator(".charts canvas").count() == 5


def test_padding_is_drawn_in_its_true_share(server: RunningServer, visit: Visit) -> None:
    """With the events of docs/stats.md, where a GPU pads: the tone model, like a processor, never does."""
    told = re.findall(r"```json\n(\{.*?\})\n```", STATS, re.DOTALL)
    events = [json.loads(event) for event in told if event.startswith(('{"type": "hello"', '{"type": "tick"'))]
    assert [event["type"] for event in events] == ["hello", "tick"]
    (batch,) = events[1]["batches"]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    visitor = visit(server)
    visitor.page.route("**/v1/stats/stream", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    visitor.page.goto(f"{server.url}/#batching")
    visitor.wait(".last li")
    drawn = visitor.page.locator(".last .block b").evaluate_all(
        "rows => rows.map((row) => parseFloat(row.style.width))"
    )
    assert drawn == pytest.approx([100 * row["size"] / row["padded"] for row in batch["rows"]], abs=0.01)
    assert f"{batch['reason']}, {batch['ms']:.0f} ms" in visitor.text(".last li")
