"""Audio is encoded in the order in which its listeners need it, and no more of it is accepted than can be encoded."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes import FakeEngine, silent_voices, tone_engine
from tests.server.test_outcomes import Caller, calling
from tutti.admission.ticket import Ticket
from tutti.audio import find_format
from tutti.audio.encoder import StreamEncoder
from tutti.engine.request import StreamRequest
from tutti.errors import QueueFull
from tutti.server.encoders import ANSWER_S, FIRST_COST, UTILISATION, Encoders
from tutti.server.encoding import FIRST_PIECE_SAMPLES, PIECE_SAMPLES, PieceEncoder
from tutti.server.request import SpeechRequest
from tutti.speech import SAMPLE_RATE, Samples, SpeechParams

ONE_CHUNK = "The old bridge stands still under the water tonight and runs deep"
MP3 = {"input": ONE_CHUNK, "response_format": "mp3"}


@pytest.fixture
def encoders() -> Iterator[Encoders]:
    encoders = Encoders(lambda *_: None, n_threads=1)
    yield encoders
    encoders.close()


def fill(encoders: Encoders, held: ExitStack, format: str = "mp3") -> int:
    """Add listeners that wait for no time until no more has a place; return how many have one."""
    for n_listeners in count():
        try:
            held.enter_context(encoders.place(format, 0.0))
        except QueueFull:
            return n_listeners
    raise AssertionError


def test_the_piece_that_is_needed_first_is_encoded_first_whoever_came_first(encoders: Encoders) -> None:
    async def run() -> None:
        order: list[float] = []
        may_go_on = threading.Event()

        async def encode(due_s: float) -> bytes:
            return await encoders.run(lambda: order.append(due_s) or b"", due_s)  # type: ignore[func-returns-value]

        running = asyncio.create_task(encoders.run(lambda: may_go_on.wait() and b"", -1.0))  # type: ignore[arg-type,return-value]
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(encode(due_s)) for due_s in (3.0, 1.0, 2.0, 5.0, 4.0)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        await asyncio.gather(running, *waiting, return_exceptions=True)
        assert order == [1.0, 2.0, 4.0, 5.0]

    asyncio.run(run())


def test_an_error_is_raised_where_the_piece_is_awaited_and_the_next_is_encoded(encoders: Encoders) -> None:
    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            await encoders.run(lambda: bytes(1 // 0), 0.0)
        assert await encoders.run(lambda: b"next", 0.0) == b"next"

    asyncio.run(run())


def test_what_waits_at_the_end_is_cancelled(encoders: Encoders) -> None:
    async def run() -> None:
        may_go_on = threading.Event()
        running = asyncio.create_task(encoders.run(lambda: may_go_on.wait() and b"", 0.0))  # type: ignore[arg-type,return-value]
        waiting = asyncio.create_task(encoders.run(lambda: b"", 1.0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        encoders.close()
        may_go_on.set()
        with pytest.raises((asyncio.CancelledError, CancelledError)):
            await waiting
        await running

    asyncio.run(run())


def test_as_many_listeners_are_accepted_as_can_be_encoded_while_they_play(encoders: Encoders) -> None:
    with ExitStack() as held:
        n_listeners = fill(encoders, held)
        assert (n_listeners - 1) * FIRST_COST <= UTILISATION < n_listeners * FIRST_COST
        with pytest.raises(QueueFull) as refused:
            encoders.place("opus", 0.0)
        assert refused.value.retry_after_s is not None
        assert UTILISATION * ANSWER_S <= refused.value.retry_after_s < 2 * ANSWER_S
        with encoders.place("mp3", 60.0):  # it may wait
            pass
    assert encoders.wait_s == 0.0
    with encoders.place("mp3", 0.0):
        pass


def test_what_a_listener_has_not_heard_yet_comes_after_what_others_need_now(monkeypatch: pytest.MonkeyPatch) -> None:
    now, due = 100.0, list[float]()
    encoders = Encoders(lambda *_: None, n_threads=1, clock=lambda: now)

    async def encode(call: Any, due_s: float, *_: Any, **__: Any) -> bytes:
        due.append(due_s)
        return b"-"

    monkeypatch.setattr(encoders, "encode", encode)

    async def run() -> None:
        nonlocal now
        request = SpeechRequest(ONE_CHUNK, SpeechParams("af_heart"), find_format("mp3"))
        ahead = PieceEncoder(encoders, request)
        for _ in range(3):
            await ahead.encode(np.zeros(2 * SAMPLE_RATE, np.float32))
        now += 1.0
        await PieceEncoder(encoders, request).encode(np.zeros(SAMPLE_RATE, np.float32))

    asyncio.run(run())
    assert due == [100.0, 102.0, 104.0, 101.0]
    encoders.close()


@pytest.mark.parametrize("n_processes", [1, 3, 5])
def test_http_processes_accept_together_as_many_listeners_as_one_would(n_processes: int) -> None:
    n_listeners = 0
    for _ in range(n_processes):
        encoders = Encoders(lambda *_: None, n_threads=4)
        encoders.share = 1 / n_processes
        with ExitStack() as held:
            n_listeners += fill(encoders, held)
        encoders.close()
    assert n_listeners == pytest.approx(4 * UTILISATION / FIRST_COST, abs=n_processes)


@pytest.mark.parametrize("slower", [0.2, 5.0])
def test_the_costs_are_learned_from_the_time_that_pieces_take(slower: float, monkeypatch: pytest.MonkeyPatch) -> None:
    encoders = Encoders(lambda *_: None, n_threads=1)
    now = 0.0
    monkeypatch.setattr("tutti.server.encoders.time.monotonic", lambda: now)

    def take() -> bytes:
        nonlocal now
        now += slower * FIRST_COST
        return b""

    async def run() -> None:
        for _ in range(200):
            await encoders.encode(take, 0.0, "mp3", SAMPLE_RATE, is_live=True)

    asyncio.run(run())
    with ExitStack() as held:
        n_listeners = fill(encoders, held)
    assert n_listeners == pytest.approx(UTILISATION / FIRST_COST / slower, rel=0.1)
    encoders.close()


def test_the_first_bytes_of_a_text_of_one_chunk_are_sent_before_the_rest_is_encoded(
    fake_engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_encoded, n_at_first = 0, list[int]()
    encode = StreamEncoder.encode

    def count(self: StreamEncoder, samples: Samples) -> bytes:
        nonlocal n_encoded
        n_encoded += len(samples)
        return encode(self, samples)

    def first(message: dict[str, Any]) -> bool:
        if message.get("body") and not n_at_first:
            n_at_first.append(n_encoded)
        return False

    monkeypatch.setattr(StreamEncoder, "encode", count)

    async def run() -> None:
        async with calling(fake_engine, tmp_path) as caller:
            await caller.post("/v1/audio/speech", MP3, first)
            (start,) = (message for message in caller.sent if message["type"] == "http.response.start")
        names = {name for name, _ in start["headers"]}
        assert {b"etag", b"x-audio-duration"} <= names
        assert b"content-length" not in names

    asyncio.run(run())
    assert n_at_first[0] <= FIRST_PIECE_SAMPLES + PIECE_SAMPLES < n_encoded


def test_listeners_are_refused_that_could_not_be_encoded_in_time_but_not_others(
    fake_engine: FakeEngine, tmp_path: Path
) -> None:
    async def status(caller: Caller, **body: Any) -> int:
        caller.sent.clear()
        await caller.post("/v1/audio/speech", {**MP3, **body})
        return int(caller.sent[0]["status"])

    async def run() -> None:
        async with calling(fake_engine, tmp_path) as caller:
            with ExitStack() as held:
                fill(caller.app.state.service.encoders, held)
                assert await status(caller) == 429
                headers = dict(caller.sent[0]["headers"])
                assert float(headers[b"retry-after"]) >= 1
                assert await status(caller, response_format="pcm") == 200
                assert await status(caller, stream=False) == 200
            assert await status(caller) == 200
        assert caller.app.state.service.encoders.wait_s == 0.0
        assert fake_engine.monitor.batch_stats.metrics.rejected.labels("first")._value.get() == 1

    asyncio.run(run())


@pytest.mark.parametrize("format", ["mp3", "pcm"])
def test_the_first_audio_counts_from_the_request_to_its_first_encoded_bytes(tmp_path: Path, format: str) -> None:
    """It is counted once, only when the bytes are there, and the wait for the encoder is a part of it."""

    async def run() -> None:
        engine = tone_engine(silent_voices(tmp_path))
        async with calling(engine, tmp_path) as caller:
            encoders, metrics = caller.app.state.service.encoders, engine.batch_stats.metrics

            def n_first() -> float:
                return float(metrics.registry.get_sample_value("tutti_first_audio_seconds_count") or 0)

            may_go_on = threading.Event()
            blocking = [
                asyncio.create_task(encoders.run(lambda: bytes(may_go_on.wait()), 0.0))
                for _ in range(encoders.n_threads)
            ]
            await asyncio.sleep(0)
            body = {"input": ONE_CHUNK, "response_format": format}
            asked_s = time.monotonic()
            posting = asyncio.create_task(caller.post("/v1/audio/speech", body))
            while engine.stats()["performance"]["audio_s"] == 0:
                await asyncio.sleep(0)
            if format == "mp3":
                assert n_first() == 0  # it was made, but there are no bytes of it
            blocked_s = time.monotonic() - asked_s
            may_go_on.set()
            await asyncio.gather(posting, *blocking)
            assert n_first() == 1
            waited_s = metrics.registry.get_sample_value("tutti_first_audio_seconds_sum")
            if format == "mp3":
                assert waited_s is not None
                assert waited_s >= blocked_s - 0.02  # the request arrived a turn of the loop after it was asked for

    asyncio.run(run())


def test_a_whole_text_does_not_restart_its_clock(tmp_path: Path) -> None:
    async def run() -> None:
        async with tone_engine(silent_voices(tmp_path)) as engine:
            arrived_s = time.monotonic() - 0.25
            speeches = engine.stream(StreamRequest(ONE_CHUNK, SpeechParams("af_heart"), Ticket(arrived_s=arrived_s)))
            first, *_ = [speech async for speech in speeches]
            assert first.timing.requested_s == arrived_s
            assert not engine.batch_stats.metrics.registry.get_sample_value("tutti_first_audio_seconds_count")

    asyncio.run(run())
