"""The limits of a request count from its arrival, and each leaves at least half of itself to serve it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.virtual import VirtualLoop
from tests.fakes import HEART
from tutti.admission.ticket import LOST_SHARE, NO_CLIENT, Ticket
from tutti.audio import find_format
from tutti.errors import DeadlineExceeded
from tutti.server.cache import ResponseCache
from tutti.server.encoding import WholeAudio, open_stream
from tutti.server.request import SpeechRequest
from tutti.speech import Speech

REQUEST = SpeechRequest("deep water", HEART, find_format("pcm"))


@given(st.floats(0, 1e6), st.floats(0, 1e4), st.floats(0, 1e6))
def test_a_limit_counts_from_the_arrival_but_half_of_it_is_never_lost(
    now: float, limit_s: float, waited_s: float
) -> None:
    ticket = Ticket(arrived_s=now - waited_s)
    left_s = ticket.left_s(limit_s, now)
    assert left_s == pytest.approx(max(limit_s - waited_s, (1 - LOST_SHARE) * limit_s), abs=1e-6)
    assert ticket.clock_start_s(limit_s, now) + limit_s == pytest.approx(now + left_s)
    assert NO_CLIENT.left_s(limit_s, now) == pytest.approx(limit_s, abs=1e-6)
    assert ticket.left_s(inf, now) == inf


async def silence() -> AsyncGenerator[Speech]:
    await asyncio.get_running_loop().create_future()
    yield


async def stream(timeout_s: float, ticket: Ticket) -> None:
    await open_stream(REQUEST, silence(), timeout_s, ticket)


async def whole(timeout_s: float, ticket: Ticket) -> None:
    await ResponseCache[WholeAudio](0).get("key", lambda _: asyncio.sleep(1e6), timeout_s, ticket)


@pytest.mark.parametrize("wait", [stream, whole])
@pytest.mark.parametrize(("waited_s", "fails_s"), [(0.0, 8.0), (3.0, 5.0), (60.0, 4.0)])
def test_the_time_that_a_request_waited_to_be_read_is_part_of_its_timeout(
    wait: Callable[[float, Ticket], Awaitable[None]], waited_s: float, fails_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = VirtualLoop()
    loop.now_s = 100.0
    monkeypatch.setattr(time, "monotonic", loop.time)

    async def run() -> float:
        with pytest.raises(DeadlineExceeded, match="8 s"):
            await wait(8.0, Ticket(arrived_s=100.0 - waited_s))
        return loop.now_s - 100.0

    assert loop.run_until_complete(run()) == pytest.approx(fails_s)
    loop.close()
