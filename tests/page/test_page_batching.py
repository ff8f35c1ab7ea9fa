"""The Batching view: a crowd is let in, served in batches, and all of it is seen."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.page.visitor import Visitor, until
from tests.server.house import House, serving
from tests.toning import silent_voices, tone_engine
from tutti.model.tone import ToneModel
from tutti.speech import Frames, Samples

Visit = Callable[..., Visitor]


class Holding(ToneModel):
    """Sounds nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.go.set()

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        assert self.go.wait(300)
        return super().vocoder(rows)


@pytest.fixture(scope="module")
def model() -> Holding:
    return Holding()


@pytest.fixture(scope="module")
def house(voice_folder: Path, model: Holding) -> Iterator[House]:
    # Held on purpose: nobody may be refused for it.
    chosen = {"first_audio_ms": 600_000, "timeout_s": 600}
    with serving(tone_engine(silent_voices(voice_folder), lambda: model, **chosen), **chosen) as running:
        yield running


@pytest.fixture
def held(model: Holding) -> Iterator[Holding]:
    model.go.clear()
    yield model
    model.go.set()


def waiting(house: House) -> int:
    return int(house.get("/v1/stats").json()["waiting"])


def test_a_crowd_of_sixteen_is_seen_waiting_and_then_served_in_batches(
    house: House, visit: Visit, held: Holding
) -> None:
    visitor = visit(house, "#batching")
    visitor.wait("[data-standing=live]")
    visitor.slide("size", 16)
    visitor.press("All together")
    until(lambda: waiting(house) == 15, "all but the first should wait")
    visitor.wait(".queue .faint:has-text('15 wait')")
    assert visitor.page.locator(".queue .count[data-class=first] b").first.inner_text() == "15"
    held.go.set()
    visitor.wait(".run[data-done='16']:not([data-total-ms=''])")
    assert int(visitor.page.locator(".run").get_attribute("data-most-rows")) > 1
    last = house.get("/v1/stats").json()["batches"][-1]
    card = visitor.page.locator(".last li").first
    assert card.get_attribute("data-stage") == last["stage"]
    assert card.get_attribute("data-reason") == last["reason"]
    assert int(card.get_attribute("data-rows")) == len(last["rows"])
    visitor.press("Hear them all at once")
    visitor.wait(".transport[data-heard][data-playing=true]")
    visitor.press("Stop")


def test_two_policies_are_held_against_each_other_and_the_servers_own_comes_back(house: House, visit: Visit) -> None:
    visitor = visit(house, "#batching")
    visitor.wait("[data-standing=live]")
    visitor.slide("size", 4)
    visitor.press("deadline against window")
    visitor.wait("#speedup")
    for policy in ("deadline", "window"):
        visitor.wait(f".run[data-policy={policy}][data-done='4']")
    assert "×" in visitor.text("#speedup")
    until(lambda: house.get("/v1/stats").json()["trial"] is None, "the trial should be over")
    policies = {batch["policy"] for batch in house.get("/v1/stats").json()["batches"][-8:]}
    assert "window" in policies
    visitor.wait("#policy:has-text('deadline')")


def test_a_crowd_that_is_stopped_leaves_no_work_behind(house: House, visit: Visit, held: Holding) -> None:
    visitor = visit(house, "#batching")
    visitor.wait("[data-standing=live]")
    visitor.slide("size", 9)
    visitor.press("All together")
    until(lambda: waiting(house) == 8, "all but the first should wait")
    visitor.page.locator(".load").get_by_role("button", name="Stop").click()
    until(lambda: waiting(house) == 0, "those who left should be forgotten")
    visitor.wait(".load button:has-text('All together')")


def test_the_rules_are_those_of_the_server(house: House, visit: Visit) -> None:
    visitor = visit(house, "#batching")
    visitor.wait(".rules dd")
    settings = house.get("/v1/stats").json()["settings"]
    assert visitor.page.locator(".rules dt").count() == len(settings)
    assert str(settings["max_queue"]) in visitor.text(".rules dl")
    assert visitor.text("#policy") == "deadline"
    assert visitor.page.locator(".charts canvas").count() == 5
