"""A policy on trial is in force while its connection is open, and never a moment longer; nobody's speech is hurt."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import Holding, silent_voices, tone_engine
from tests.server.harness import House, serving, shaped
from tests.server.test_stats_routes import TEXT
from tests.server.watcher import trying, watching
from tutti.server.routes import trial as module

ALICE, BOB = ({"authorization": f"Bearer {name}"} for name in ("alice", "bob"))


@pytest.fixture(scope="module")
def model() -> Holding:
    return Holding()


@pytest.fixture(scope="module")
def house(voice_folder: Path, model: Holding) -> Iterator[House]:
    engine = tone_engine(silent_voices(voice_folder), lambda: model)
    with serving(engine, api_keys=("alice", "bob")) as running:
        yield running


@pytest.fixture
def held(model: Holding) -> Iterator[Holding]:
    with model.held():
        yield model


@pytest.fixture(autouse=True)
def _told_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_EVERY_S", 0.05)


def policy(house: House) -> str:
    return str(house.get("/v1/stats", headers=ALICE).json()["policy"])


def speak(house: House, text: str, who: dict[str, str]) -> np.ndarray:
    answer = house.post("/v1/audio/speech", {"input": text, "response_format": "pcm"}, headers=who)
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<i2")


def test_it_lasts_as_long_as_the_connection(house: House) -> None:
    with watching(house, headers=ALICE) as watcher:
        assert watcher.next()["policy"] == "deadline"
        with trying(house, "window", headers=ALICE) as trial:
            told = trial.next()
            assert told == {"type": "trial", "policy": "window", "instead_of": "deadline", "max_s": 120.0}
            assert policy(house) == "window"
            tick = watcher.until(lambda event: event["trial"])
            assert (tick["policy"], tick["trial"]["policy"]) == ("window", "window")
            assert 0 < tick["trial"]["left_s"] <= 120
            held = trial.next()
            assert (held["type"], held["policy"]) == ("held", "window")
            speak(house, f"{TEXT} under trial.", ALICE)
        watcher.until(lambda event: event["policy"] == "deadline" and event["trial"] is None)
        by = {batch["policy"] for event in watcher.seen for batch in event["batches"] if batch["id"]}
        assert "window" in by


def test_it_is_over_after_its_time(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_S", 0.1)
    with trying(house, "fifo", headers=ALICE) as trial:
        told = trial.rest()
    assert [told[0]["type"], told[-1]] == ["trial", {"type": "end", "reason": "over"}]
    assert all(event["type"] == "held" for event in told[1:-1])
    assert policy(house) == "deadline"


def test_one_at_a_time(house: House) -> None:
    with trying(house, "window", headers=ALICE) as trial:
        trial.next()
        for who in (ALICE, BOB):
            refused = house.post("/v1/stats/trial", {"policy": "fifo"}, headers=who)
            shaped(refused, 409, "trial_refused")
        assert policy(house) == "window"


def test_the_work_of_others_is_not_tried_upon(house: House, held: Holding) -> None:
    with ThreadPoolExecutor(2) as pool, watching(house, headers=ALICE) as watcher:
        watcher.next()
        bobs = pool.submit(speak, house, f"{TEXT} of Bob.", BOB)
        watcher.until(lambda event: event["running"])
        shaped(house.post("/v1/stats/trial", {"policy": "window"}, headers=ALICE), 409, "trial_refused")
        with trying(house, "window", headers=BOB) as trial:
            trial.next()
            alices = pool.submit(speak, house, f"{TEXT} of Alice.", ALICE)
            told = trial.rest()
        assert told[-1] == {"type": "end", "reason": "others"}
        assert policy(house) == "deadline"
        held.go.set()
        assert all(len(answer.result(60)) for answer in (bobs, alices))


def test_a_server_that_goes_down_ends_it(voice_folder: Path) -> None:
    with serving(tone_engine(silent_voices(voice_folder))) as house, trying(house, "window") as trial:
        trial.next()
        house.app.state.service.gate.closing = True
        assert trial.rest()[-1] == {"type": "end", "reason": "draining"}


def test_what_is_no_policy_is_refused_and_changes_nothing(house: House) -> None:
    shaped(house.post("/v1/stats/trial", {"policy": "magic"}, headers=ALICE), 400, "invalid_input", "policy")
    shaped(house.post("/v1/stats/trial", {}, headers=ALICE), 400, "invalid_input", "policy")
    assert policy(house) == "deadline"
    with trying(house, "window", headers=ALICE) as trial:
        assert trial.next()["type"] == "trial"


def test_a_page_of_another_origin_may_not(house: House) -> None:
    asked = {**ALICE, "origin": "http://elsewhere.example"}
    shaped(house.post("/v1/stats/trial", {"policy": "window"}, headers=asked), 403, "origin_not_allowed")
    own = {**ALICE, "origin": house.url}
    with trying(house, "window", headers=own) as trial:
        assert trial.next()["type"] == "trial"


def test_in_the_middle_of_a_load_everyone_hears_their_own_text(house: House) -> None:
    texts = [f"{'deep ' * (1 + n % 5)}water {'abcdefghijklmnop'[n]} runs. And still {'x' * n}." for n in range(16)]

    with ThreadPoolExecutor(len(texts)) as pool:
        answers = [pool.submit(speak, house, text, ALICE) for text in texts]
        for name in ("window", "bypass", "fifo", "deadline", "window"):
            with watching(house, headers=ALICE) as watcher, trying(house, name, headers=ALICE) as trial:
                trial.next()
                watcher.next()
        together = [answer.result(120) for answer in answers]
    for text, samples in zip(texts, together, strict=True):
        assert np.array_equal(samples, speak(house, text, ALICE)), text
