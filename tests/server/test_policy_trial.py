"""A policy on trial is active only while its connection is open, and does not change anyone's audio."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import GatedModel, silent_voices, tone_engine
from tests.server.harness import RunningServer, assert_error, serving
from tests.server.test_stats_routes import TEXT
from tests.server.watcher import policy_trial, watching
from tutti.server.routes import stats as module

pytestmark = pytest.mark.server

ALICE, BOB = ({"authorization": f"Bearer {name}"} for name in ("alice", "bob"))


@pytest.fixture(scope="module")
def model() -> GatedModel:
    return GatedModel()


@pytest.fixture(scope="module")
def server(voice_folder: Path, model: GatedModel) -> Iterator[RunningServer]:
    engine = tone_engine(silent_voices(voice_folder), lambda: model)
    with serving(engine, api_keys=("alice", "bob")) as running:
        yield running


@pytest.fixture
def held_model(model: GatedModel) -> Iterator[GatedModel]:
    with model.gate.closed():
        yield model


@pytest.fixture(autouse=True)
def _frequent_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIAL_EVENT_S", 0.05)


def policy(server: RunningServer) -> str:
    return str(server.get("/v1/stats", headers=ALICE).json()["policy"])


def speak(server: RunningServer, text: str, caller: dict[str, str]) -> np.ndarray:
    answer = server.post("/v1/audio/speech", {"input": text, "response_format": "pcm"}, headers=caller)
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<i2")


def test_options_without_effect_are_named(server: RunningServer) -> None:
    body = {"policy": "fifo", "max_rows": 3}
    with server.client().stream("POST", "/v1/stats/trial", json=body, headers=ALICE) as answer:
        assert answer.headers["x-ignored"] == "max_rows"


def test_a_trial_lasts_as_long_as_the_connection(server: RunningServer) -> None:
    with watching(server, headers=ALICE) as watcher:
        assert watcher.next()["policy"] == "deadline"
        with policy_trial(server, "window", headers=ALICE) as trial:
            start = trial.next()
            assert start == {"type": "trial", "policy": "window", "instead_of": "deadline", "max_s": 120.0}
            assert policy(server) == "window"
            tick = watcher.until(lambda event: event["trial"])
            assert (tick["policy"], tick["trial"]["policy"]) == ("window", "window")
            assert 0 < tick["trial"]["left_s"] <= 120
            event = trial.next()
            assert (event["type"], event["policy"]) == ("held", "window")
            speak(server, f"{TEXT} under trial.", ALICE)
        watcher.until(lambda event: event["policy"] == "deadline" and event["trial"] is None)
        policies = {batch["policy"] for event in watcher.events for batch in event["batches"] if batch["id"]}
        assert "window" in policies


def test_a_trial_ends_after_its_time_limit(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRIAL_S", 0.1)
    with policy_trial(server, "fifo", headers=ALICE) as trial:
        events = trial.rest()
    assert [events[0]["type"], events[-1]] == ["trial", {"type": "end", "reason": "over"}]
    assert all(event["type"] == "held" for event in events[1:-1])
    assert policy(server) == "deadline"


def test_only_one_trial_runs_at_a_time(server: RunningServer) -> None:
    with policy_trial(server, "window", headers=ALICE) as trial:
        trial.next()
        for caller in (ALICE, BOB):
            refused = server.post("/v1/stats/trial", {"policy": "fifo"}, headers=caller)
            assert_error(refused, 409, "trial_refused")
        assert policy(server) == "window"


def test_a_trial_is_refused_or_ended_while_others_are_served(server: RunningServer, held_model: GatedModel) -> None:
    with ThreadPoolExecutor(2) as pool, watching(server, headers=ALICE) as watcher:
        watcher.next()
        bobs = pool.submit(speak, server, f"{TEXT} of Bob.", BOB)
        watcher.until(lambda event: event["running"])
        assert_error(server.post("/v1/stats/trial", {"policy": "window"}, headers=ALICE), 409, "trial_refused")
        with policy_trial(server, "window", headers=BOB) as trial:
            trial.next()
            alices = pool.submit(speak, server, f"{TEXT} of Alice.", ALICE)
            events = trial.rest()
        assert events[-1] == {"type": "end", "reason": "others"}
        assert policy(server) == "deadline"
        held_model.gate.open()
        assert all(len(answer.result(60)) for answer in (bobs, alices))


def test_draining_ends_a_trial(voice_folder: Path) -> None:
    with serving(tone_engine(silent_voices(voice_folder))) as server, policy_trial(server, "window") as trial:
        trial.next()
        server.app.state.service.lifecycle.draining = True
        assert trial.rest()[-1] == {"type": "end", "reason": "draining"}


def test_an_unknown_policy_is_refused_and_changes_nothing(server: RunningServer) -> None:
    assert_error(server.post("/v1/stats/trial", {"policy": "magic"}, headers=ALICE), 400, "invalid_input", "policy")
    assert_error(server.post("/v1/stats/trial", {}, headers=ALICE), 400, "invalid_input", "policy")
    assert policy(server) == "deadline"
    with policy_trial(server, "window", headers=ALICE) as trial:
        assert trial.next()["type"] == "trial"


def test_a_page_of_another_origin_cannot_start_a_trial(server: RunningServer) -> None:
    other = {**ALICE, "origin": "http://elsewhere.example"}
    assert_error(server.post("/v1/stats/trial", {"policy": "window"}, headers=other), 403, "origin_not_allowed")
    own = {**ALICE, "origin": server.url}
    with policy_trial(server, "window", headers=own) as trial:
        assert trial.next()["type"] == "trial"


def test_under_load_every_request_gets_its_own_audio(server: RunningServer) -> None:
    texts = [f"{'deep ' * (1 + n % 5)}water {'abcdefghijklmnop'[n]} runs. And still {'x' * n}." for n in range(16)]

    with ThreadPoolExecutor(len(texts)) as pool:
        answers = [pool.submit(speak, server, text, ALICE) for text in texts]
        for name in ("window", "bypass", "fifo", "deadline", "window"):
            with watching(server, headers=ALICE) as watcher, policy_trial(server, name, headers=ALICE) as trial:
                trial.next()
                watcher.next()
        together = [answer.result(120) for answer in answers]
    for text, samples in zip(texts, together, strict=True):
        assert np.array_equal(samples, speak(server, text, ALICE)), text
