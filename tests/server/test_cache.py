"""Whole answers are made once; a cancelled request does not affect others; memory stays bounded."""

import asyncio
import threading
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEngine
from tests.server.harness import LONG, RunningServer, assert_error, serving
from tutti.errors import DeadlineExceeded
from tutti.server.cache import ResponseCache


@dataclass(frozen=True)
class Answer:
    name: str
    n_bytes: int


@given(requests=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 60)), max_size=40))
def test_the_cache_stays_within_its_limit_and_never_mixes_keys(requests: list[tuple[str, int]]) -> None:
    async def run() -> None:
        cache: ResponseCache[Answer] = ResponseCache(100)
        for name, size in requests:

            async def make(_: object, name: str = name, size: int = size) -> Answer:
                return Answer(name, size)

            assert (await cache.get(name, make)).name == name
            assert cache.n_bytes == sum(answer.n_bytes for answer in cache._values.values()) <= 100

    asyncio.run(run())


def test_concurrent_requests_share_one_computation_and_survive_a_cancelled_one() -> None:
    async def run() -> None:
        cache: ResponseCache[Answer] = ResponseCache(100)
        started, release = asyncio.Event(), asyncio.Event()
        n_made = 0

        async def make(_: object) -> Answer:
            nonlocal n_made
            n_made += 1
            started.set()
            await release.wait()
            return Answer("x", 1)

        waiting = [asyncio.create_task(cache.get("x", make)) for _ in range(5)]
        await started.wait()
        waiting[0].cancel()  # the one that started the computation
        await asyncio.gather(waiting[0], return_exceptions=True)
        release.set()
        assert [answer.name for answer in await asyncio.gather(*waiting[1:])] == ["x"] * 4
        assert (n_made, cache.n_joined) == (1, 4)

    asyncio.run(run())


def test_when_all_waiters_are_cancelled_the_computation_is_too() -> None:
    async def run() -> None:
        cache: ResponseCache[Answer] = ResponseCache(100)
        started, ended = asyncio.Event(), asyncio.Event()

        async def make_forever(_: object) -> Answer:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

        async def make(_: object) -> Answer:
            return Answer("x", 1)

        waiting = [asyncio.create_task(cache.get("x", make_forever)) for _ in range(2)]
        await started.wait()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert ended.is_set()
        assert (await cache.get("x", make)).name == "x"

    asyncio.run(run())


def test_each_waiter_has_its_own_time_until_the_computation_begins() -> None:
    async def run() -> None:
        cache: ResponseCache[Answer] = ResponseCache(100)
        begin, release = asyncio.Event(), asyncio.Event()

        async def make(began: asyncio.Event) -> Answer:
            await begin.wait()
            began.set()
            await release.wait()
            return Answer("x", 1)

        hasty = asyncio.create_task(cache.get("x", make, 1e-3))  # it has started the computation
        patient = asyncio.create_task(cache.get("x", make, 60.0))
        with pytest.raises(DeadlineExceeded):
            await hasty
        begin.set()
        release.set()
        assert (await patient).name == "x"

    asyncio.run(run())


def test_an_error_reaches_every_waiter_and_is_not_cached() -> None:
    async def run() -> None:
        cache: ResponseCache[Answer] = ResponseCache(100)
        release = asyncio.Event()

        async def fail(_: object) -> Answer:
            await release.wait()
            raise ValueError("no")

        async def make(_: object) -> Answer:
            return Answer("x", 1)

        waiting = [asyncio.create_task(cache.get("x", fail)) for _ in range(3)]
        await asyncio.sleep(0)
        release.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [ValueError] * 3
        assert (await cache.get("x", make)).name == "x"

    asyncio.run(run())


@pytest.mark.server
def test_the_same_whole_answer_is_synthesized_once_and_an_etag_saves_the_bytes(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        body = {"input": LONG, "stream": False, "response_format": "flac"}
        first, second = server.speak(**body), server.speak(**body)
        assert first.content == second.content
        assert first.headers["etag"] == second.headers["etag"]
        assert len(fake_engine.requests) == 1
        unchanged = server.post("/v1/audio/speech", body, headers={"if-none-match": first.headers["etag"]})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        other = server.post("/v1/audio/speech", {**body, "speed": 2}, headers={"if-none-match": first.headers["etag"]})
        assert other.status_code == 200
        assert other.headers["etag"] != first.headers["etag"]


@pytest.mark.server
def test_every_answer_with_a_length_has_the_same_etag(server: RunningServer) -> None:
    short = {"input": "deep water", "response_format": "wav"}
    streamed, whole = server.speak(**short), server.speak(**short, stream=False)
    assert streamed.headers["etag"] == whole.headers["etag"]
    for more in ({}, {"stream": False}):
        headers = {"if-none-match": f'W/"other", {whole.headers["etag"]}'}
        assert server.post("/v1/audio/speech", {**short, **more}, headers=headers).status_code == 304
    assert "etag" not in server.speak(input=LONG, response_format="wav").headers


@pytest.mark.server
@pytest.mark.parametrize(
    "change",
    [{"input": "x"}, {"voice": "am_adam"}, {"speed": 1.5}, {"response_format": "wav"}, {"sample_rate": 16000},
     {"seed": 1}, {"style": "am_puck"}, {"language": "en-gb"}, {"volume_multiplier": 0.5}, {"pitch": 1},
     {"pitch_range": 0.5}, {"energy": 1}, {"emotion": "sad"}, {"lexicon": {"deep": "/dip/"}}],
)  # fmt: skip
def test_every_option_changes_the_etag(server: RunningServer, change: dict[str, object]) -> None:
    body = {"input": "deep water", "stream": False, "response_format": "pcm"}
    assert server.speak(**body).headers["etag"] != server.speak(**{**body, **change}).headers["etag"]


@pytest.mark.server
def test_another_lexicon_changes_the_etag(fake_engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("a\tb\n")
    with serving(fake_engine, lexicon=path) as server:
        body = {"input": "deep water", "stream": False, "response_format": "pcm"}
        before = server.speak(**body).headers["etag"]
        assert server.speak(**body).headers["etag"] == before
        path.write_text("deep\t/dip/\n")
        assert server.speak(**body).headers["etag"] != before


@pytest.mark.server
def test_another_model_changes_the_etag(fake_engine: FakeEngine, tmp_path: Path) -> None:
    """An answer that a client or a proxy has kept is not taken for that of another model."""
    own = tmp_path / "own.onnx"
    body = {"input": "deep water", "stream": False, "response_format": "pcm"}
    cpu = {"device": "cpu", "backend": "onnx"}
    tags = []
    for content in (b"one", b"another"):
        own.write_bytes(content)
        with serving(fake_engine, **cpu, models=f"kokoro={own}") as server:
            tags.append(server.speak(**body).headers["etag"])
    for changed in (
        {}, {}, {"precision": "int8"}, {"vocoder": "exact"}, {"code_blocks": "skip"}, {"g2p_url": "http://localhost:9"}
    ):  # fmt: skip
        with serving(fake_engine, **{**cpu, "precision": "fp32", **changed}) as server:
            tags.append(server.speak(**body).headers["etag"])
    assert tags[2] == tags[3]  # a restart alone changes nothing
    assert len(set(tags)) == len(tags) - 1


@pytest.mark.server
def test_streams_are_never_cached_and_keys_do_not_share(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, api_keys="a,b") as server:
        for key in "aabb":
            server.post("/tts", {"text": LONG}, headers={"authorization": f"Bearer {key}"})
        assert len(fake_engine.requests) == 2
        for _ in range(2):
            server.post("/tts/stream", {"text": LONG}, headers={"authorization": "Bearer a"})
        assert len(fake_engine.requests) == 4


@pytest.mark.server
def test_concurrent_http_requests_are_synthesized_once(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.hold_from = 1
        answers: list[httpx2.Response] = []
        body = {"text": LONG}

        def request(client: httpx2.Client) -> None:
            answers.append(client.post("/tts", json=body))

        threads = [threading.Thread(target=request, args=(server.client(),)) for _ in range(5)]
        for thread in threads:
            thread.start()
        assert fake_engine.streams_opened.acquire(timeout=60)
        cache = server.app.state.service.cache
        while cache.n_joined < 4:
            assert server.get("/healthz").status_code == 200
        fake_engine.release()
        for thread in threads:
            thread.join()
        assert len({answer.content for answer in answers}) == 1
        assert len(fake_engine.requests) == 1


@pytest.mark.server
def test_a_failed_answer_is_not_cached(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.fail_at = 0
        assert_error(server.post("/tts", {"text": LONG}), 500, "internal_error")
        fake_engine.fail_at = None
        assert server.post("/tts", {"text": LONG}).status_code == 200
