"""Whole answers are made once; nobody's leaving harms another; memory stays bounded."""

import asyncio
import threading
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server.harness import LONG, FakeEngine, RunningServer, assert_error, serving
from tutti.server.cache import ResponseCache


@dataclass(frozen=True)
class Piece:
    name: str
    n_bytes: int


@given(asks=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 60)), max_size=40))
def test_it_never_holds_more_than_its_room_and_never_mixes_keys(asks: list[tuple[str, int]]) -> None:
    async def run() -> None:
        cache: ResponseCache[Piece] = ResponseCache(100)
        for name, size in asks:

            async def make(name: str = name, size: int = size) -> Piece:
                return Piece(name, size)

            assert (await cache.get(name, make)).name == name
            assert cache.n_bytes == sum(piece.n_bytes for piece in cache._values.values()) <= 100

    asyncio.run(run())


def test_asked_twice_at_once_it_is_made_once_and_who_leaves_harms_nobody() -> None:
    async def run() -> None:
        cache: ResponseCache[Piece] = ResponseCache(100)
        begun, go = asyncio.Event(), asyncio.Event()
        n_made = 0

        async def make() -> Piece:
            nonlocal n_made
            n_made += 1
            begun.set()
            await go.wait()
            return Piece("x", 1)

        waiting = [asyncio.create_task(cache.get("x", make)) for _ in range(5)]
        await begun.wait()
        waiting[0].cancel()  # also the one who began it
        await asyncio.gather(waiting[0], return_exceptions=True)
        go.set()
        assert [piece.name for piece in await asyncio.gather(*waiting[1:])] == ["x"] * 4
        assert (n_made, cache.n_joined) == (1, 4)

    asyncio.run(run())


def test_when_all_leave_the_making_ends_and_the_next_begins_anew() -> None:
    async def run() -> None:
        cache: ResponseCache[Piece] = ResponseCache(100)
        begun, ended = asyncio.Event(), asyncio.Event()

        async def make_forever() -> Piece:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

        async def make() -> Piece:
            return Piece("x", 1)

        waiting = [asyncio.create_task(cache.get("x", make_forever)) for _ in range(2)]
        await begun.wait()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert ended.is_set()
        assert (await cache.get("x", make)).name == "x"

    asyncio.run(run())


def test_a_failure_is_everyones_and_is_not_kept() -> None:
    async def run() -> None:
        cache: ResponseCache[Piece] = ResponseCache(100)
        go = asyncio.Event()

        async def fail() -> Piece:
            await go.wait()
            raise ValueError("no")

        async def make() -> Piece:
            return Piece("x", 1)

        waiting = [asyncio.create_task(cache.get("x", fail)) for _ in range(3)]
        await asyncio.sleep(0)
        go.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [ValueError] * 3
        assert (await cache.get("x", make)).name == "x"

    asyncio.run(run())


def test_the_same_whole_answer_twice_is_one_synthesis_and_a_tag_spares_the_bytes(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        body = {"input": LONG, "stream": False, "response_format": "flac"}
        first, second = server.speak(**body), server.speak(**body)
        assert first.content == second.content
        assert first.headers["etag"] == second.headers["etag"]
        assert len(fake_engine.requests) == 1
        known = server.post("/v1/audio/speech", body, headers={"if-none-match": first.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")
        other = server.post("/v1/audio/speech", {**body, "speed": 2}, headers={"if-none-match": first.headers["etag"]})
        assert other.status_code == 200
        assert other.headers["etag"] != first.headers["etag"]


def test_a_tag_comes_with_every_known_length_and_is_the_same_either_way(server: RunningServer) -> None:
    short = {"input": "deep water", "response_format": "wav"}
    streamed, whole = server.speak(**short), server.speak(**short, stream=False)
    assert streamed.headers["etag"] == whole.headers["etag"]
    for more in ({}, {"stream": False}):
        held = {"if-none-match": f'W/"other", {whole.headers["etag"]}'}
        assert server.post("/v1/audio/speech", {**short, **more}, headers=held).status_code == 304
    assert "etag" not in server.speak(input=LONG, response_format="wav").headers


@pytest.mark.parametrize(
    "change",
    [{"input": "x"}, {"voice": "am_adam"}, {"speed": 1.5}, {"response_format": "wav"}, {"sample_rate": 16000},
     {"seed": 1}, {"style": "am_puck"}, {"language": "en-gb"}, {"volume_multiplier": 0.5}, {"pitch": 1},
     {"pitch_range": 0.5}, {"energy": 1}, {"emotion": "sad"}, {"lexicon": {"deep": "/dip/"}}],
)  # fmt: skip
def test_every_wish_makes_another_answer(server: RunningServer, change: dict[str, object]) -> None:
    body = {"input": "deep water", "stream": False, "response_format": "pcm"}
    assert server.speak(**body).headers["etag"] != server.speak(**{**body, **change}).headers["etag"]


def test_another_lexicon_makes_another_answer(fake_engine: FakeEngine, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("a\tb\n")
    with serving(fake_engine, lexicon=path) as server:
        body = {"input": "deep water", "stream": False, "response_format": "pcm"}
        before = server.speak(**body).headers["etag"]
        assert server.speak(**body).headers["etag"] == before
        path.write_text("deep\t/dip/\n")
        assert server.speak(**body).headers["etag"] != before


def test_streams_are_always_spoken_anew_and_keys_do_not_share(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, api_keys="a,b") as server:
        for key in "aabb":
            server.post("/tts", {"text": LONG}, headers={"authorization": f"Bearer {key}"})
        assert len(fake_engine.requests) == 2
        for _ in range(2):
            server.post("/tts/stream", {"text": LONG}, headers={"authorization": "Bearer a"})
        assert len(fake_engine.requests) == 4


def test_asked_by_many_at_once_over_the_wire_it_is_spoken_once(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.hold_from = 1
        answers: list[httpx2.Response] = []
        body = {"text": LONG}

        def ask(client: httpx2.Client) -> None:
            answers.append(client.post("/tts", json=body))

        many = [threading.Thread(target=ask, args=(server.client(),)) for _ in range(5)]
        for thread in many:
            thread.start()
        assert fake_engine.streams_opened.acquire(timeout=60)
        cache = server.app.state.service.cache
        while cache.n_joined < 4:
            assert server.get("/healthz").status_code == 200
        fake_engine.release()
        for thread in many:
            thread.join()
        assert len({answer.content for answer in answers}) == 1
        assert len(fake_engine.requests) == 1


def test_what_failed_is_tried_again(fake_engine: FakeEngine) -> None:
    with serving(fake_engine) as server:
        fake_engine.fail_at = 0
        assert_error(server.post("/tts", {"text": LONG}), 500, "internal_error")
        fake_engine.fail_at = None
        assert server.post("/tts", {"text": LONG}).status_code == 200
