"""Beyond what the event loop can serve: it stays busy with answers that start in time, and refuses the rest."""

import asyncio
import random
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from tests.fakes import FakeEngine
from tests.server.harness import SHORT, assert_error, serving
from tests.server.test_streaming import raw
from tutti.admission.refusals import Asking, Refusals
from tutti.errors import QueueFull
from tutti.server.middleware.start_queue import (
    BURST_S,
    LONG_TURN_S,
    MAX_START_WAIT_S,
    MAX_STARTS_PER_TURN,
    MIN_STARTING,
    Arrivals,
    PacedReads,
    StartQueue,
    StartRule,
    stream_route,
)

N_TURNS, FIRST_TURN = 25, 15  # of the loop for an answer: its turns, that of its first audio
REFUSED_S = 0.00006
TURN_S = 0.0001  # of a turn in which nothing happens
PROMISE_S = 2.0
ONSET_S = 1.0  # in which a sudden load is taken for a burst, and its pace is learned


@dataclass
class SimulatedLoop:
    """An event loop whose answers take a part of every turn, from their start to their end."""

    rate: float
    served_s: float  # of the loop for an answer
    rule: StartRule = field(default_factory=StartRule)
    waits_s: list[float] = field(default_factory=list)
    n_ended: int = 0
    n_refused: int = 0

    def run(self, seconds: float) -> None:
        rng, now, turn_s = random.Random(1), 0.0, 0.0
        next_s = rng.expovariate(self.rate)
        waiting, running = deque[float](), list[tuple[float, int]]()  # when each arrived, and its turns so far
        while now < seconds:
            busy_s = TURN_S
            while next_s <= now:
                if self.rule.wait_s(len(waiting), 0, now - waiting[0] if waiting else 0.0) > MAX_START_WAIT_S:
                    self.n_refused += 1
                    busy_s += REFUSED_S
                else:
                    waiting.append(next_s)
                next_s += rng.expovariate(self.rate)
            n_starting = sum(n_turns < FIRST_TURN for _, n_turns in running)
            n_starts = min(self.rule.n_starts(turn_s, n_starting), len(waiting))
            if waiting:
                self.rule.learn(turn_s, n_starts)
            running += [(waiting.popleft(), 0) for _ in range(n_starts)]
            busy_s += len(running) * self.served_s / N_TURNS
            turn_s = busy_s if running or waiting else max(busy_s, next_s - now)
            now += turn_s
            self.waits_s += [now - at_s for at_s, n_turns in running if n_turns == FIRST_TURN and at_s > ONSET_S]
            self.n_ended += sum(n_turns == N_TURNS - 1 for _, n_turns in running)
            running = [(arrived_s, n_turns + 1) for arrived_s, n_turns in running if n_turns < N_TURNS - 1]


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 1.5, 2, 4, 8])
@pytest.mark.parametrize("served_s", [0.002, 0.0046, 0.015])
def test_beyond_capacity_the_loop_serves_as_much_as_it_can_and_starts_it_in_time(
    factor: float, served_s: float
) -> None:
    seconds = 20.0
    loop = SimulatedLoop(factor / served_s, served_s)
    loop.run(seconds)
    possible = min(loop.rate * seconds, (seconds - loop.n_refused * REFUSED_S) / served_s)
    assert loop.n_ended >= 0.95 * possible
    assert max(loop.waits_s) < PROMISE_S
    if factor < 1:
        assert loop.n_refused == 0


def test_neither_a_lone_stall_nor_a_burst_refuses_anybody() -> None:
    rule = StartRule()
    for _ in range(1000):
        rule.learn(0.01, 3)
    before_s = rule.wait_s(50, 0, 1.0)
    rule.learn(30.0, 1)
    assert rule.wait_s(50, 0, 1.0) < 2 * before_s
    assert rule.wait_s(0, 1000, 0.0) == 0.0
    assert rule.wait_s(10_000, 0, 0.9 * BURST_S) == 0.0


async def send(_: Message) -> None: ...


def test_both_kinds_of_requests_take_turns_and_a_cancelled_one_none() -> None:
    async def run() -> list[str]:
        starts, begun = StartQueue(), list[str]()

        async def request(name: str, max_wait_s: float) -> None:
            async with starts.turn(send, "one", max_wait_s):
                begun.append(name)

        kinds = [("at once", 0.5)] * MAX_STARTS_PER_TURN + [("stream", 0.5)] * 3 + [("file", 20.0)] * 2
        tasks = [asyncio.create_task(request(name, wait_s)) for name, wait_s in kinds]
        await asyncio.sleep(0)
        tasks[MAX_STARTS_PER_TURN].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return begun

    assert asyncio.run(run()) == ["at once"] * MAX_STARTS_PER_TURN + ["stream", "file", "stream", "file"]


def test_streams_are_refused_when_they_would_wait_too_long_and_those_that_may_wait_are_not() -> None:
    async def run() -> None:
        now = 0.0
        starts = StartQueue(clock=lambda: now)

        async def request(max_wait_s: float = MAX_START_WAIT_S) -> None:
            async with starts.turn(send, "one", max_wait_s):
                pass

        def is_refused(caller: str) -> bool:
            """Whether a request would be refused, within this turn of the loop."""
            entering = starts.turn(send, caller).__aenter__()
            try:
                entering.send(None)
            except QueueFull:
                return True
            except StopIteration:
                pass
            entering.close()
            return False

        n_accepted = MAX_STARTS_PER_TURN + int(MAX_START_WAIT_S / starts.rule.start_s) + 1
        waiting = [asyncio.create_task(request()) for _ in range(n_accepted)]
        await asyncio.sleep(0)
        assert not is_refused("one"), "it may be a burst"
        now += BURST_S
        assert is_refused("one")
        assert not is_refused("another"), "its turn would come next"
        with pytest.raises(QueueFull):
            await request()
        await asyncio.gather(request(60.0), *waiting)
        assert not is_refused("one")
        await request()

    asyncio.run(run())


def test_callers_take_turns_however_many_requests_each_sends() -> None:
    async def run() -> str:
        starts, begun = StartQueue(), list[str]()

        async def request(caller: str) -> None:
            async with starts.turn(send, caller):
                begun.append(caller)

        await asyncio.gather(*map(request, "a" * (MAX_STARTS_PER_TURN + 5) + "bbcab"))
        return "".join(begun[MAX_STARTS_PER_TURN:])

    assert asyncio.run(run()) == "abcababaaa"


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60))
def test_what_is_ahead_of_a_new_request_is_what_begins_before_it(actions: list[tuple[bool, str]]) -> None:
    async def run() -> None:
        waiting, now = Arrivals(), 0
        for is_new, caller in actions:
            if is_new:
                waiting.add(caller, now, asyncio.get_running_loop().create_future())
            elif turn := waiting.pop():
                turn.set_result(None)
            now += 1
        expected, last = waiting.n_ahead("b"), asyncio.get_running_loop().create_future()
        waiting.add("b", now, last)
        turns = []
        while turn := waiting.pop():
            turns.append(turn)
            turn.set_result(None)
        assert abs(turns.index(last) - expected) <= 2, "whose turn it is now may be another's"
        assert waiting.waited_s(now) == len(waiting) == 0

    asyncio.run(run())


def test_few_begin_after_long_turns_until_those_before_have_an_answer() -> None:
    async def run() -> list[int]:
        now, n_begun, answer, end = 0.0, 0, asyncio.Event(), asyncio.Event()
        starts = StartQueue(clock=lambda: now, cpu_clock=lambda: now)

        async def request() -> None:
            nonlocal n_begun
            async with starts.turn(send, "one", 60.0) as starting_send:
                n_begun += 1
                await answer.wait()
                await starting_send({"type": "http.response.start"})
                await end.wait()

        tasks = [asyncio.create_task(request()) for _ in range(2 * MIN_STARTING + 100)]
        per_turn = []
        while n_begun < len(tasks):
            before = n_begun
            now += 2 * LONG_TURN_S
            await asyncio.sleep(0)
            per_turn.append(n_begun - before)
            if n_begun >= 2 * MIN_STARTING:
                answer.set()
        end.set()
        await asyncio.gather(*tasks)
        return per_turn

    per_turn = asyncio.run(run())
    assert max(per_turn) == MAX_STARTS_PER_TURN
    assert per_turn.count(1) >= MIN_STARTING - MAX_STARTS_PER_TURN, "one by one while the others have no answer"
    assert len(per_turn) < 2 * MIN_STARTING, "and many again when they have"


def test_a_request_for_a_file_is_told_from_a_stream_by_its_bytes() -> None:
    assert stream_route("/v1/audio/speech", b'{"input": "x"}') == "/v1/audio/speech"
    assert stream_route("/v1/audio/speech", rb'{"input": "\"stream\": false"}') == "/v1/audio/speech"
    assert stream_route("/tts/stream", b"{}") == "/tts/stream"
    assert stream_route("/v1/text-to-speech/af_sky/stream", b"{}") == "/v1/text-to-speech/{voice_id}/stream"
    assert stream_route("/v1/audio/speech", b'{"input": "x", "stream" : false}') is None
    assert stream_route("/tts", b"{}") is None


@pytest.mark.server
@pytest.mark.parametrize(("is_replica", "status", "code"), [(False, 429, "queue_full"), (True, 503, "replica_full")])
def test_a_full_server_refuses_streams_and_keeps_their_connections(
    fake_engine: FakeEngine, is_replica: bool, status: int, code: str
) -> None:
    with serving(fake_engine, replica=is_replica) as server:
        fake_engine.refusals.keep(
            QueueFull("full", retry_after_s=3), Asking("kokoro", None), now=time.monotonic() + 3600
        )
        client = server.client()
        rejected = fake_engine.monitor.batch_stats.metrics.rejected.labels("first")
        for n_refused in (1, 2):
            refused = client.post("/v1/audio/speech", json={"input": SHORT})
            assert_error(refused, status, code)
            assert 3000 <= int(refused.headers["retry-after-ms"]) <= 4500
            assert refused.headers["x-request-id"]
            assert rejected._value.get() == n_refused
        assert not fake_engine.requests
        # What waits longer by design, and everything that is not a stream, takes the usual way.
        for headers in ({"x-stainless-lang": "python"}, {"x-request-timeout": "30"}):
            assert server.client().post("/v1/audio/speech", json={"input": SHORT}, headers=headers).status_code == 200
        assert client.post("/v1/audio/speech", json={"input": SHORT, "stream": False}).status_code == 200
        assert client.get("/readyz").status_code == 200
        with socket.create_connection(server.host_port) as sock:
            request = raw("/v1/audio/speech", {"input": SHORT})
            sock.sendall(request)
            answer = b""
            while not answer.endswith(b"}"):
                answer += sock.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 %d" % status)
            sock.sendall(request[:-5])
            assert client.get("/readyz").status_code == 200
            with socket.create_connection(server.host_port, timeout=60) as endless:  # not kept until its head ends
                endless.sendall(request.partition(b"\r\n\r\n")[0] + b"\r\nx: " + b"a" * 200_000)
                assert endless.recv(100).startswith(b"HTTP/1.1 431")
            fake_engine.refusals = Refusals()  # there is room again before the end of the request arrives
            sock.sendall(request[-5:])
            assert sock.recv(100).startswith(b"HTTP/1.1 200")


def test_requests_that_read_begin_in_order_with_turns_of_others_between_them() -> None:
    async def run() -> None:
        reads, begun, n_turns = PacedReads(), list[tuple[int, int]](), 0

        async def count_turns() -> None:
            nonlocal n_turns
            while True:
                await asyncio.sleep(0)
                n_turns += 1

        async def read(number: int) -> None:
            await reads.wait()
            begun.append((number, n_turns))

        counting = asyncio.create_task(count_turns())
        await asyncio.gather(*map(read, range(20)))
        assert [number for number, _ in begun] == list(range(20))
        *turns, last = [turn for _, turn in begun]
        assert all(later > earlier + 2 for earlier, later in pairwise(turns))
        assert last > turns[-1]  # nobody waits behind it
        before = n_turns
        await read(20)  # alone: without a pause
        assert n_turns <= before + 2
        counting.cancel()

    asyncio.run(run())


def test_a_request_that_left_keeps_no_other_from_reading() -> None:
    async def run() -> None:
        reads = PacedReads()
        waiting = [asyncio.create_task(reads.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in waiting[:2]:
            task.cancel()
        await waiting[2]

    asyncio.run(run())
