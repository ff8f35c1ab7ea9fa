"""A reader that is slower than the minimum is cut, and no other error is taken for that."""

import asyncio
from collections.abc import Callable
from math import inf

import pytest
from starlette.types import Message, Send

from tutti.server.reader_pace import PacedSend, SlowReader

PART: Message = {"type": "http.response.body", "body": bytes(1000), "more_body": True}


def run(read: Callable[[], object], n_parts: int, *, grace_s: float, bytes_per_s: float) -> int:
    """Send an answer to a reader that awaits `read` for each part; return the parts that it read."""
    n_read = 0

    async def send(_: Message) -> None:
        nonlocal n_read
        await read()  # type: ignore[misc]
        n_read += 1

    async def answer(send: Send) -> None:
        for _ in range(n_parts):
            await send(PART)

    asyncio.run(PacedSend(send, grace_s, bytes_per_s).run(answer))
    return n_read


def test_a_reader_that_keeps_the_pace_gets_the_whole_answer() -> None:
    assert run(lambda: asyncio.sleep(0.002), 50, grace_s=0.05, bytes_per_s=1000) == 50


def test_a_reader_that_stops_is_cut() -> None:
    with pytest.raises(SlowReader):
        run(lambda: asyncio.Event().wait(), 1, grace_s=0.02, bytes_per_s=inf)


def test_a_reader_that_falls_behind_a_little_with_each_part_is_cut() -> None:
    with pytest.raises(SlowReader):
        run(lambda: asyncio.sleep(0.01), 1000, grace_s=0.05, bytes_per_s=200_000)  # 5 ms for a part


def test_time_that_the_audio_takes_does_not_count() -> None:
    async def answer(send: Send) -> None:
        for _ in range(3):
            await asyncio.sleep(0.05)
            await send(PART)

    async def send(_: Message) -> None: ...

    asyncio.run(PacedSend(send, 0.01, inf).run(answer))


def test_a_timeout_of_the_audio_is_not_the_readers() -> None:
    async def answer(_: Send) -> None:
        raise TimeoutError("the model")

    async def send(_: Message) -> None: ...

    with pytest.raises(TimeoutError, match="the model"):
        asyncio.run(PacedSend(send, 1.0, inf).run(answer))
