"""/v1/stats reports the batching as docs/stats.md documents it, and costs nothing without subscribers."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import GatedModel, silent_voices, tone_engine
from tests.server.harness import LONG, RunningServer, assert_error, serving
from tests.server.watcher import Event, watching
from tutti.batching.cost import CostModel
from tutti.server.dashboard import Dashboard
from tutti.server.routes import stats as module
from tutti.server.routes.stats import MAX_TICKS, Subscriber

pytestmark = pytest.mark.server

PAGE = (Path(__file__).parents[2] / "docs/stats.md").read_text(encoding="utf-8")
TEXT = "The old bridge stands still under the water tonight and runs deep."
NULLABLE = {"ms", "cap_ms", "max_batch_frames", "max_batch_text", "trial", "p50", "p95", "p99", "first_in_time"}


@pytest.fixture(scope="module")
def model() -> GatedModel:
    return GatedModel()


@pytest.fixture(scope="module")
def server(voice_folder: Path, model: GatedModel) -> Iterator[RunningServer]:
    with pytest.MonkeyPatch.context() as patch:
        # Tones take no time; once that is learned, both stages of a lone row are one call.
        patch.setattr(CostModel, "learn", lambda *_: 0.0)
        with serving(tone_engine(silent_voices(voice_folder), lambda: model)) as running:
            yield running


@pytest.fixture
def held_model(model: GatedModel) -> Iterator[GatedModel]:
    with model.gate.closed():
        yield model


def documented(kind: str) -> Event:
    """The example of this event in docs/stats.md."""
    blocks = (
        json.loads(block) for block in re.findall(r"```json\n(\{.*?\})\n```", PAGE, re.DOTALL) if "\n{" not in block
    )
    return next(dict(block) for block in blocks if block["type"] == kind)


def assert_same_fields(real: Any, example: Any, name: str = "event") -> None:
    """Check that fields and types are the same throughout; lists are compared by their first item."""
    if real is None:
        assert name in NULLABLE or name in ("acoustic", "vocoder"), name
    elif isinstance(example, dict):
        assert isinstance(real, dict)
        assert real.keys() == example.keys(), name
        for field, value in example.items():
            assert_same_fields(real[field], value, field)
    elif isinstance(example, list):
        assert isinstance(real, list)
        if real and example:
            assert_same_fields(real[0], example[0], name)
    elif example is not None and real is not None:
        number = (int, float)
        assert isinstance(real, number if isinstance(example, number) else type(example)), (name, real)


def test_the_documented_fields_are_the_real_ones(server: RunningServer) -> None:
    with watching(server) as watcher:
        hello = watcher.next()
        server.speak(input=f"{TEXT} one.")
        tick = watcher.until(lambda event: event["batches"])
        # Encoded after the batches, so perhaps after this tick.
        tick["lately"] = watcher.until(lambda event: event["lately"]["first_audio_ms"]["n"])["lately"]
    assert hello["type"] == "hello"
    assert_same_fields(hello, documented("hello"))
    assert_same_fields(tick, documented("tick"))
    snapshot = server.get("/v1/stats").json()
    assert snapshot.keys() == (documented("hello") | documented("tick")).keys() - {"left_out"}
    assert snapshot["type"] == "stats"
    assert snapshot["batches"]


def test_a_batch_is_reported_at_its_start_and_at_its_end(server: RunningServer, held_model: GatedModel) -> None:
    with ThreadPoolExecutor(1) as pool, watching(server) as watcher:
        seen_before = {batch["id"] for batch in watcher.next()["batches"]}
        answer = pool.submit(server.speak, input=f"{TEXT} two.")

        def vocoder(event: Event) -> list[Event]:
            new = [batch for batch in event["batches"] if batch["id"] not in seen_before]
            return [batch for batch in new if batch["stage"] == "vocoder"]

        began = watcher.until(vocoder)
        (running,) = vocoder(began)
        assert (running["outcome"], running["ms"]) == ("running", None)
        assert began["running"] == [running["id"]]
        held_model.gate.open()
        ended = watcher.until(lambda event: [batch for batch in vocoder(event) if batch["outcome"] == "done"])
        done = next(batch for batch in vocoder(ended) if batch["id"] == running["id"])
        assert done["ms"] > 0
        assert {**done, "ms": None, "outcome": "running"} == running
        assert answer.result(60).status_code == 200
        last = watcher.until(lambda event: not event["running"])
    assert last["totals"]["rows"] >= 1
    for tick in watcher.events[1:]:
        for batch in tick["batches"]:
            sizes = [row["size"] for row in batch["rows"]]
            assert batch["padding"] == pytest.approx(1 - sum(sizes) / batch["padded"], abs=1e-3)
            assert all(row["padded"] >= row["size"] for row in batch["rows"])
            assert batch["predicted_ms"] > 0


def test_waiting_jobs_are_reported_by_class_and_age(server: RunningServer, held_model: GatedModel) -> None:
    n_texts = 8
    with ThreadPoolExecutor(n_texts) as pool, watching(server) as watcher:
        watcher.next()
        answers = [pool.submit(server.speak, input=f"{TEXT} {word}.") for word in "abcdefgh"]

        def all_wait(event: Event) -> bool:
            running = sum(len(batch["rows"]) for event in watcher.events[1:] for batch in event["batches"]
                          if batch["id"] in event["running"] and batch["stage"] == "vocoder")  # fmt: skip
            return bool(running) and event["waiting"] + running >= n_texts

        tick = watcher.until(all_wait)
        for queue in tick["queue"].values():
            assert len(queue["jobs"]) == sum(queue[kind] for kind in ("first", "next", "bulk"))
            ages = [job["age_ms"] for job in queue["jobs"]]
            assert ages == sorted(ages, reverse=True)
            for kind in ("first", "next", "bulk"):
                assert queue[kind] == sum(job["class"] == kind for job in queue["jobs"])
        assert tick["waiting"] == sum(len(queue["jobs"]) for queue in tick["queue"].values())
        assert tick["backlog_ms"] > 0
        held_model.gate.open()
        assert all(answer.result(60).status_code == 200 for answer in answers)
        watcher.until(lambda event: event["waiting"] == 0 and not event["running"])


def test_all_rows_of_a_request_have_one_stream_number(server: RunningServer) -> None:
    """Also if its first chunk is delivered in spans."""
    with watching(server) as watcher:
        seen_before = {batch["id"] for batch in watcher.next()["batches"]}
        n_before = server.get("/v1/stats").json()["totals"]["rows"]
        with server.clients[0].stream(
            "POST", "/v1/audio/speech", json={"input": LONG, "response_format": "pcm"}
        ) as answer:
            assert len(answer.read())
        watcher.until(lambda event: event.get("totals", {}).get("rows", 0) > n_before and not event["running"])
        batches = [batch for event in watcher.events for batch in event["batches"] if batch["id"] not in seen_before]
    assert {batch["stage"] for batch in batches} == {"acoustic", "vocoder"}
    assert len({row["stream"] for batch in batches for row in batch["rows"]}) == 1


def test_at_most_ten_updates_per_second(server: RunningServer) -> None:
    with watching(server) as watcher:
        watcher.next()
        for word in ("up", "down", "left"):
            server.speak(input=f"{TEXT} {word}.")
        times = [watcher.next()["t"] for _ in range(4)]
    assert all(later - sooner >= 0.095 for sooner, later in pairwise(times))


def test_updates_are_computed_only_with_subscribers_and_once_for_all(
    voice_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_ticks = 0

    class CountingDashboard(Dashboard):
        def tick(self, *args: Any, **options: Any) -> Any:
            nonlocal n_ticks
            n_ticks += 1
            return super().tick(*args, **options)

    monkeypatch.setattr(module, "Dashboard", CountingDashboard)
    with serving(tone_engine(silent_voices(voice_folder))) as server:
        server.speak()
        assert n_ticks == 0
        with watching(server) as one, watching(server) as two, watching(server) as three:
            ticks = []
            for watcher in (one, two, three):
                watcher.next()
                ticks.append(watcher.next())
            last = three.next()
            for watcher in (one, two):
                assert watcher.until(lambda event: event["t"] == last["t"]) == last
            times = {event["t"] for watcher in (one, two, three) for event in watcher.events[1:]}
        assert len(times) <= n_ticks
        while any(task.get_name() == "tutti-broadcast" for task in asyncio.all_tasks(server.loop)):
            time.sleep(0.01)  # without subscribers the updates end


def test_statistics_contain_no_text_voice_or_address(server: RunningServer) -> None:
    with watching(server) as watcher:
        watcher.next()
        server.speak(input=f"{TEXT} three.", voice="bm_daniel")
        watcher.until(lambda event: event["batches"])
        report = json.dumps(watcher.events)
    assert not any(secret in report for secret in ("bridge", "daniel", "127.0.0.1"))


def test_statistics_need_a_key_if_the_server_has_keys(voice_folder: Path) -> None:
    with serving(tone_engine(silent_voices(voice_folder)), api_keys=("secret",)) as server:
        for path in ("/v1/stats", "/v1/stats/stream"):
            assert_error(server.get(path), 401, "invalid_api_key")
            assert_error(server.get(path, headers={"authorization": "Bearer wrong"}), 401, "invalid_api_key")
        assert_error(server.post("/v1/stats/trial", {"policy": "window"}), 401, "invalid_api_key")
        key = {"authorization": "Bearer secret"}
        assert server.get("/v1/stats", headers=key).status_code == 200
        with watching(server, headers=key) as watcher:
            assert watcher.next()["type"] == "hello"


def test_subscribers_over_the_limit_are_refused(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SUBSCRIBERS", 1)
    with watching(server) as watcher:
        watcher.next()
        assert_error(server.get("/v1/stats/stream"), 429, "queue_full")
    for _ in range(1000):  # until the server has noticed that the first one left
        with server.clients[0].stream("GET", "/v1/stats/stream") as response:
            if response.status_code == 200:
                break
    assert response.status_code == 200


def test_one_caller_cannot_take_the_places_of_others(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OF_CALLER", 1)
    with watching(server) as watcher:
        watcher.next()
        assert_error(server.get("/v1/stats/stream"), 429, "queue_full")
        transport = httpx2.HTTPTransport(local_address="127.0.0.2")
        with (
            httpx2.Client(base_url=server.url, transport=transport) as other,
            other.stream("GET", "/v1/stats/stream") as response,
        ):
            assert response.status_code == 200


def test_the_last_event_reports_the_shutdown(voice_folder: Path) -> None:
    with serving(tone_engine(silent_voices(voice_folder))) as server, watching(server) as watcher:
        watcher.next()
        watcher.next()
        server.app.state.service.lifecycle.draining = True
        assert [event["type"] for event in watcher.rest() if event["type"] != "tick"] == ["bye"]


@given(st.lists(st.integers(0, 3 * MAX_TICKS), max_size=6))
def test_a_slow_subscriber_loses_the_oldest_events_and_their_number_is_reported(bursts: list[int]) -> None:
    async def run() -> list[Event]:
        subscriber, received, n = Subscriber(""), list[bytes](), 0
        reading = subscriber.events()
        for burst in bursts:
            for number in range(n, n + burst):
                subscriber.add(b'data: {"type": "tick", "n": %d}\n\n' % number)
            n += burst
            if burst:  # then there is one to read; the rest waits
                received.append(await anext(reading))
        subscriber.end()
        received += [event async for event in reading]
        events = b"".join(received).split(b"\n\n")[:-1]
        return [json.loads(event.removeprefix(b"data: ")) for event in events]

    expected = 0
    for event in asyncio.run(run()):
        if event["type"] == "lost":
            expected += event["ticks"]
        else:
            assert event["n"] == expected
            expected += 1
    assert expected == sum(bursts)
