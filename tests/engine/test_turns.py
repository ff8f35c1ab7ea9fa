"""Streams that arrive together begin in several turns of the event loop."""

import asyncio

import pytest

from tests.fakes import tone_engine
from tutti.engine.request import StreamRequest
from tutti.engine.start_delay import PER_TURN, Turns
from tutti.speech import SpeechParams
from tutti.voices import Voices


def turns_of(n_callers: int, *, each_s: float, turn_s: float, left: frozenset[int] = frozenset()) -> list[list[int]]:
    """The callers that go on in each turn of the event loop, if all come in one, and these leave at once."""
    now = 0.0

    async def run() -> list[list[int]]:
        turns, gone = Turns(turn_s, lambda: now), list[list[int]]()

        async def call(number: int) -> None:
            nonlocal now
            await turns.wait()
            gone[-1].append(number)
            now += each_s

        tasks = [asyncio.create_task(call(number)) for number in range(n_callers)]
        while not all(task.done() for task in tasks):
            gone.append([])
            await asyncio.sleep(0)
            for number in left:
                tasks[number].cancel()
        return [some for some in gone if some]

    return asyncio.run(run())


def test_all_go_on_at_once_if_they_take_no_time() -> None:
    assert turns_of(50, each_s=0.0, turn_s=2.0) == [list(range(50))]


@pytest.mark.parametrize("n_callers", [4, 10, 31])
def test_as_many_go_on_in_a_turn_as_it_has_time_for_and_all_in_their_order(n_callers: int) -> None:
    turns = turns_of(n_callers, each_s=1.0, turn_s=3.0)
    assert turns[0] == [0, 1, 2]
    assert all(len(some) <= PER_TURN for some in turns[1:])
    assert [number for some in turns for number in some] == list(range(n_callers))


def test_who_leaves_takes_no_place() -> None:
    turns = turns_of(16, each_s=1.0, turn_s=2.0, left=frozenset({3, 4, 5, 11}))
    assert turns == [[0, 1], [2, 6, 7, 8, 9, 10, 12, 13], [14, 15]]


def test_who_comes_later_waits_behind_those_that_wait() -> None:
    async def run() -> list[str]:
        turns, gone = Turns(0.0), list[str]()

        async def call(name: str) -> None:
            await turns.wait()
            gone.append(name)

        tasks = [asyncio.create_task(call(name)) for name in "abcdefghij"]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(call("late")))
        await asyncio.gather(*tasks)
        return gone

    assert asyncio.run(run()) == [*"abcdefghij", "late"]


def test_after_a_pause_nobody_waits() -> None:
    async def run() -> None:
        turns = Turns(0.0)
        for _ in range(3):
            await asyncio.wait_for(turns.wait(), 1)
            await asyncio.sleep(0)

    asyncio.run(run())


def test_streams_of_an_engine_that_come_together_begin_in_several_turns(
    voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> list[int]:
        async with tone_engine(voices) as engine:
            monkeypatch.setattr(engine, "_turns", Turns(0.0))
            (batcher,) = engine.batchers
            begun = [0]
            monkeypatch.setattr(batcher, "check_wait", lambda *_: begun.__setitem__(-1, begun[-1] + 1))
            streams = [engine.stream(StreamRequest("Hello.", SpeechParams("af_heart"))) for _ in range(3 * PER_TURN)]
            tasks = [asyncio.ensure_future(anext(stream)) for stream in streams]
            while sum(begun) < len(streams):
                await asyncio.sleep(0)
                begun.append(0)
            await asyncio.gather(*tasks)
            for stream in streams:
                await stream.aclose()
            return begun

    assert max(asyncio.run(run())) <= PER_TURN
