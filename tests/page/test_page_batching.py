"""The Live batching view: simulated clients are served in batches, and the view shows it."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
    model.gate.n_arrived = 0
    with model.gate.closed():
        yield model


def waiting(server: RunningServer) -> int:
    return int(server.get("/v1/stats").json()["waiting"])


def is_holding(server: RunningServer, held: GatedModel) -> bool:
    """Whether many jobs wait while the held model runs one batch: nothing moves until it is released."""
    return held.gate.n_arrived > 0 and waiting(server) >= 4


def test_sixteen_clients_are_shown_waiting_and_then_served_in_batches(
    server: RunningServer, visit: Visit, held: GatedModel
) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-connection=live]")
    visitor.slide("size-together", 16)
    visitor.press("Compare")
    wait_until(lambda: is_holding(server, held), "most clients should wait")
    wait_until(lambda: visitor.page.evaluate(COUNTS)[0] >= 4, "the page should show it, a tick later")
    sentence, total = visitor.page.evaluate(COUNTS)
    assert sentence == total
    held.gate.open()
    visitor.wait(".run[data-mode=deadline][data-done='16']:not([data-total-ms=''])")
    assert int(visitor.page.locator(".run[data-mode=deadline]").get_attribute("data-most-requests")) > 1

    def shows_last_batch() -> bool:
        last = server.get("/v1/stats").json()["batches"][-1]
        card = visitor.page.locator(".recent li").last
        shown = [card.get_attribute(f"data-{name}") for name in ("stage", "reason", "rows")]
        return shown == [last["stage"], last["reason"], str(len(last["rows"]))]

    wait_until(shows_last_batch, "the page should show the last batch, a tick later")
    with visitor.new_playback():
        visitor.page.get_by_role("button", name="Play all at once").last.click()
    visitor.wait(".player[data-played][data-state=whole]")


def test_one_by_one_is_compared_with_together_first(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-connection=live]")
    order = visitor.page.locator(".batching h2").all_inner_texts()
    assert order[0] == "One by one, or together?"
    assert "Compare two policies" in order[1:]
    visitor.slide("size-together", 4)
    visitor.press("Start")
    for mode in ("one-by-one", "together"):
        visitor.wait(f".run[data-mode={mode}][data-done='4']:not([data-total-ms=''])")
    modes = visitor.page.locator(".run").evaluate_all("runs => runs.map((run) => run.dataset.mode)")
    assert modes == ["one-by-one", "together"]
    most = [int(run.get_attribute("data-most-requests")) for run in visitor.page.locator(".run").all()]
    assert most[0] == 1, "one request at a time shares no batch"
    verdict = visitor.page.locator(".load .verdict").first
    assert re.search(r"Together, everyone was served in .* instead of", verdict.inner_text())
    assert verdict.bounding_box()["y"] < visitor.page.locator(".runs").bounding_box()["y"]
    assert server.get("/v1/stats").json()["policy"] == "deadline"


def test_long_times_are_shown_in_seconds(server: RunningServer, visit: Visit) -> None:
    """A small processor takes many seconds: its numbers are not 30,912 ms, and the wait is announced."""
    visitor = visit(server)
    visitor.page.route("**/v1/stats/stream", lambda route: route.fulfill(body=slow_events(), content_type=EVENT_STREAM))
    visitor.page.goto(f"{server.url}/#batching")
    visitor.wait(".recent li")
    assert "31 s" in visitor.text(".now")
    assert "22 s" in visitor.text(".recent li")
    assert re.search(r"takes about \d+ min", visitor.text(".load .empty"))
    assert not re.search(r"\d{4,} ms", visitor.text("main"))


EVENT_STREAM = "text/event-stream"


def slow_events() -> str:
    """The events of docs/stats.md, from a processor that needs 22 seconds for 250 frames."""
    hello, tick = documented_events()
    hello["settings"] |= {"max_batch_size": 4}
    tick["lately"]["first_audio_ms"] |= {"p50": 30_912.0, "p95": 31_912.0}
    tick["batches"] = [batch | {"ms": 22_000.0} for batch in tick["batches"]]
    return as_stream(hello, tick)


def documented_events() -> list[dict[str, Any]]:
    blocks = re.findall(r"```json\n(\{.*?\})\n```", STATS, re.DOTALL)
    events = [json.loads(event) for event in blocks if event.startswith(('{"type": "hello"', '{"type": "tick"'))]
    assert [event["type"] for event in events] == ["hello", "tick"]
    return events


def as_stream(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def test_two_policies_are_compared_and_the_own_policy_returns(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-connection=live]")
    before = {batch["id"] for batch in server.get("/v1/stats").json()["batches"]}
    visitor.slide("size-deadline", 4)
    visitor.press("Compare")
    for policy in ("window", "deadline"):
        visitor.wait(f".run[data-mode={policy}][data-done='4']:not([data-total-ms=''])")
    assert "instead of" in visitor.text(".policies .verdict")
    wait_until(lambda: server.get("/v1/stats").json()["trial"] is None, "the trial should be over")
    batches = server.get("/v1/stats").json()["batches"]
    assert {batch["policy"] for batch in batches if batch["id"] not in before} == {"window", "deadline"}
    visitor.wait("#policy:has-text('deadline')")


def test_a_stopped_simulation_leaves_no_work_behind(server: RunningServer, visit: Visit, held: GatedModel) -> None:
    visitor = visit(server, "#batching")
    visitor.wait("[data-connection=live]")
    visitor.slide("size-together", 9)
    visitor.press("Compare")
    wait_until(lambda: is_holding(server, held), "most clients should wait")
    visitor.page.locator(".policies").get_by_role("button", name="Stop").click()
    wait_until(lambda: waiting(server) == 0, "cancelled jobs should be dropped")
    visitor.wait(".load button:has-text('Start')")


def test_the_policy_settings_are_those_of_the_server(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "#batching")
    visitor.wait(".policy dd")
    settings = server.get("/v1/stats").json()["settings"]
    of_window = {"max_wait_ms", "min_wait_ms", "early_rows"}
    assert visitor.page.locator(".policy dt").count() == len(settings.keys() - of_window)
    assert str(settings["max_queue"]) in visitor.text(".policy dl")
    assert visitor.text("#policy") == "deadline"
    assert visitor.page.locator(".charts canvas").count() == 5


def test_padding_is_drawn_in_its_true_share(server: RunningServer, visit: Visit) -> None:
    """Use the events of docs/stats.md, from a GPU: the tone model, like a CPU, never pads."""
    hello, tick = documented_events()
    (batch,) = tick["batches"]
    body = as_stream(hello, tick)
    visitor = visit(server)
    visitor.page.route("**/v1/stats/stream", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    visitor.page.goto(f"{server.url}/#batching")
    visitor.wait(".recent li")
    drawn = visitor.page.locator(".recent .block b").evaluate_all(
        "rows => rows.map((row) => parseFloat(row.style.width))"
    )
    assert drawn == pytest.approx([100 * row["size"] / row["padded"] for row in batch["rows"]], abs=0.01)
    assert f"{batch['reason']}, {batch['ms']:.0f} ms" in visitor.text(".recent li")
