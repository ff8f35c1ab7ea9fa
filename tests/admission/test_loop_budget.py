"""An event loop shares its turns between kinds of work; beyond what it can serve it starts answers in time."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import tone_engine
from tutti.admission.loop_budget import (
    BURST_S,
    INTERVAL_S,
    LONG_TURN_S,
    MAX_START_WAIT_S,
    MIN_STARTING,
    PARSING_S,
    RATIONS,
    TURNS,
    CallerQueue,
    Kind,
    LoopBudget,
    StartRule,
)
from tutti.engine.request import StreamRequest
from tutti.errors import QueueFull
from tutti.speech import SpeechParams
from tutti.voices import Voices

N_TURNS, FIRST_TURN = 25, 15  # of the loop for an answer: its turns, that of its first audio
REFUSED_S = 0.00006
TURN_S = 0.0001  # of a turn in which nothing happens
PROMISE_S = 2.0
ONSET_S = 1.0  # in which a sudden load is taken for a burst, and its pace is learned
STARTS, STREAMS = (RATIONS[kind].per_turn for kind in ("start", "stream"))


class Time:
    """Clocks of a loop that take no time by themselves."""

    def __init__(self) -> None:
        self.now = self.cpu_s = 0.0
        self.budget = LoopBudget(lambda: self.now, lambda: self.cpu_s)

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.cpu_s += seconds


async def in_turns(tasks: list[asyncio.Task[None]], begun: list[int], then: Callable[[], None] = lambda: None) -> None:
    """Let turns pass until all tasks are done, with a new number in `begun` for each."""
    while not all(task.done() for task in tasks):
        begun.append(0)
        await asyncio.sleep(0)
        then()


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


async def take_start(budget: LoopBudget, caller: str, max_wait_s: float = MAX_START_WAIT_S) -> None:
    is_patient = max_wait_s > MAX_START_WAIT_S
    budget.check_start(caller, max_wait_s, is_patient=is_patient)
    await budget.turn("start", caller, is_patient=is_patient)


def test_both_kinds_of_requests_take_turns_and_a_cancelled_one_none() -> None:
    async def run() -> list[str]:
        budget, begun = LoopBudget(), list[str]()

        async def request(name: str, max_wait_s: float) -> None:
            await take_start(budget, "one", max_wait_s)
            begun.append(name)

        kinds = [("at once", 0.5)] * STARTS + [("stream", 0.5)] * 3 + [("file", 20.0)] * 2
        tasks = [asyncio.create_task(request(name, wait_s)) for name, wait_s in kinds]
        await asyncio.sleep(0)
        tasks[STARTS].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return begun

    assert asyncio.run(run()) == ["at once"] * STARTS + ["stream", "file", "stream", "file"]


def test_requests_are_refused_when_they_would_wait_too_long_and_those_that_may_wait_are_not() -> None:
    async def run() -> None:
        clocks = Time()
        budget = clocks.budget

        def is_refused(caller: str) -> bool:
            try:
                budget.check_start(caller, MAX_START_WAIT_S)
            except QueueFull:
                return True
            return False

        n_accepted = STARTS + int(MAX_START_WAIT_S / budget.rule.start_s) + 1
        waiting = [asyncio.create_task(take_start(budget, "one")) for _ in range(n_accepted)]
        await asyncio.sleep(0)
        assert not is_refused("one"), "it may be a burst"
        clocks.now += BURST_S
        assert is_refused("one")
        assert not is_refused("another"), "its turn would come next"
        await asyncio.gather(take_start(budget, "one", 60.0), *waiting)
        assert not is_refused("one")
        await take_start(budget, "one")

    asyncio.run(run())


def test_callers_take_turns_however_many_requests_each_sends() -> None:
    async def run() -> str:
        budget, begun = LoopBudget(), list[str]()

        async def request(caller: str) -> None:
            await budget.turn("start", caller)
            begun.append(caller)

        await asyncio.gather(*map(request, "a" * (STARTS + 5) + "bbcab"))
        return "".join(begun[STARTS:])

    assert asyncio.run(run()) == "abcababaaa"


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60))
def test_what_is_ahead_of_a_new_request_is_what_begins_before_it(actions: list[tuple[bool, str]]) -> None:
    async def run() -> None:
        queue, new_turn = CallerQueue(), asyncio.get_running_loop().create_future
        for now, (is_new, caller) in enumerate(actions):
            if is_new:
                queue.add(caller, now, new_turn())
            elif turn := queue.pop():
                turn.set_result(None)
        expected, last = queue.n_ahead("b"), new_turn()
        queue.add("b", len(actions), last)
        turns = []
        while turn := queue.pop():
            turns.append(turn)
            turn.set_result(None)
        assert abs(turns.index(last) - expected) <= 2, "whose turn it is now may be another's"
        assert queue.waited_s(len(actions)) == len(queue) == 0

    asyncio.run(run())


def test_few_begin_after_long_turns_until_those_before_have_an_answer() -> None:
    async def run() -> list[int]:
        clocks, answer, end = Time(), asyncio.Event(), asyncio.Event()
        per_turn = [0]

        async def request() -> None:
            await clocks.budget.turn("start")
            with clocks.budget.starting() as answered:
                per_turn[-1] += 1
                await answer.wait()
                answered()
                await end.wait()

        def pass_turn() -> None:
            clocks.work(2 * LONG_TURN_S)
            if sum(per_turn) >= 2 * MIN_STARTING:
                answer.set()
            if sum(per_turn) == len(tasks):
                end.set()

        tasks = [asyncio.create_task(request()) for _ in range(2 * MIN_STARTING + 100)]
        await in_turns(tasks, per_turn, pass_turn)
        return [n for n in per_turn if n]

    per_turn = asyncio.run(run())
    assert max(per_turn) == STARTS
    assert per_turn.count(1) >= MIN_STARTING - STARTS, "one by one while the others have no answer"
    assert len(per_turn) < 2 * MIN_STARTING, "and many again when they have"


def streams_of_turns(n_callers: int, *, each_s: float, left: frozenset[int] = frozenset()) -> list[list[int]]:
    """The streams that begin in each turn of the event loop, if all come in one, and these leave at once."""
    clocks, turns = Time(), list[list[int]]()

    async def call(number: int) -> None:
        await clocks.budget.turn("stream")
        turns[-1].append(number)
        clocks.work(each_s)

    async def run() -> None:
        tasks = [asyncio.create_task(call(number)) for number in range(n_callers)]
        while not all(task.done() for task in tasks):
            turns.append([])
            await asyncio.sleep(0)
            for number in left:
                tasks[number].cancel()

    asyncio.run(run())
    return [some for some in turns if some]


def test_streams_that_take_no_time_begin_at_once() -> None:
    assert streams_of_turns(50, each_s=0.0) == [list(range(50))]


@pytest.mark.parametrize("n_callers", [4, 10, 31])
def test_as_many_streams_begin_in_a_turn_as_it_has_time_for_and_all_in_their_order(n_callers: int) -> None:
    turns = streams_of_turns(n_callers, each_s=0.0007)
    assert turns[0] == [0, 1, 2]
    assert all(len(some) <= STREAMS for some in turns[1:])
    assert [number for some in turns for number in some] == list(range(n_callers))


def test_a_stream_that_leaves_takes_no_place() -> None:
    turns = streams_of_turns(16, each_s=0.001, left=frozenset({3, 4, 5, 11}))
    assert turns == [[0, 1], [2, 6, 7, 8, 9, 10, 12, 13], [14, 15]]


def test_streams_of_an_engine_that_come_together_begin_in_several_turns(
    voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> list[int]:
        async with tone_engine(voices) as engine:
            (batcher,) = engine.batchers
            clocks, begun = Time(), [0]
            monkeypatch.setattr(batcher, "loop_budget", clocks.budget)

            def check_wait(*_: object) -> None:
                begun[-1] += 1
                clocks.work(1.0)

            monkeypatch.setattr(batcher, "check_wait", check_wait)
            streams = [engine.stream(StreamRequest("Hello.", SpeechParams("af_heart"))) for _ in range(3 * STREAMS)]
            tasks = [asyncio.ensure_future(anext(stream)) for stream in streams]
            while sum(begun) < len(streams):
                await asyncio.sleep(0)
                begun.append(0)
            await asyncio.gather(*tasks)
            for stream in streams:
                await stream.aclose()
            return begun

    assert max(asyncio.run(run())) <= STREAMS


def test_requests_that_read_begin_in_order_with_a_pause_between_them() -> None:
    clocks, begun = Time(), list[tuple[int, float]]()

    async def read(number: int) -> None:
        await clocks.budget.turn("read")
        begun.append((number, clocks.now))

    async def run() -> None:
        tasks = [asyncio.create_task(read(number)) for number in range(20)]
        tasks[7].cancel()
        await in_turns(tasks, [], lambda: clocks.work(0.0005))
        clocks.now += 1.0
        await read(20)  # alone: at once

    asyncio.run(run())
    assert [number for number, _ in begun] == [*range(7), *range(8, 21)]
    times = [at for _, at in begun]
    assert all(later - earlier >= RATIONS["read"].pause_s for earlier, later in pairwise(times))


@pytest.mark.parametrize("kind", ["stream", "start", "read"])
def test_whoever_waits_begins_even_if_nothing_else_happens(kind: Kind) -> None:
    async def run() -> None:
        budget = LoopBudget()
        await asyncio.wait_for(asyncio.gather(*(budget.turn(kind) for _ in range(20))), 60)

    asyncio.run(run())


class Parser:
    """A client whose bytes take time to be parsed, and their messages time in the application."""

    def __init__(self, clocks: Time, n_pieces: int, piece_s: float, handling_s: float = 0.0) -> None:
        self.clocks, self.n_left, self.piece_s, self.handling_s = clocks, n_pieces, piece_s, handling_s
        self.calls_s: list[float] = []

    def parse(self) -> None:
        before_s = self.clocks.cpu_s
        while self.n_left:
            self.n_left -= 1
            self.clocks.work(self.piece_s)
            asyncio.get_running_loop().call_soon(self.clocks.work, self.handling_s)
            if not self.clocks.budget.goes_on_parsing():
                break
        self.calls_s.append(self.clocks.cpu_s - before_s)
        if self.n_left:
            self.clocks.budget.parse(self.parse)


async def parse_all(clocks: Time, *parsers: Parser) -> None:
    """The clock goes on with what is computed, and by itself while nothing is."""
    for parser in parsers:
        clocks.budget.parse(parser.parse)
    while any(parser.n_left for parser in parsers):
        before_s = clocks.now
        await asyncio.sleep(0)
        clocks.now += 0.0001 if clocks.now == before_s else 0.0


@pytest.mark.parametrize("piece_s", [1e-6, 1e-4])
def test_what_arrives_is_parsed_in_short_turns(piece_s: float) -> None:
    clocks = Time()
    parser = Parser(clocks, 2000, piece_s)
    asyncio.run(parse_all(clocks, parser))
    assert parser.n_left == 0
    assert max(parser.calls_s) <= PARSING_S + 2 * piece_s


@pytest.mark.parametrize("handling_s", [0.0, 2e-4])
@pytest.mark.parametrize("n_clients", [1, 5])
def test_clients_that_send_without_a_pause_leave_most_of_the_time_to_others(handling_s: float, n_clients: int) -> None:
    clocks = Time()
    asyncio.run(parse_all(clocks, *(Parser(clocks, 200, 1e-4, handling_s) for _ in range(n_clients))))
    assert clocks.cpu_s < clocks.now / 3


def test_the_work_of_others_is_not_taken_for_that_of_messages() -> None:
    clocks = Time()

    async def run() -> None:
        clocks.budget.parse(lambda: clocks.work(1e-5))
        clocks.work(1.0)  # in the same turn
        for _ in range(3):
            await asyncio.sleep(0)
        parsed = list[float]()
        clocks.budget.parse(lambda: parsed.append(clocks.now))
        assert parsed, "at once"

    asyncio.run(run())


def test_an_error_while_parsing_ends_no_turns() -> None:
    async def run() -> None:
        clocks, parsed = Time(), list[int]()
        with pytest.raises(ZeroDivisionError):
            clocks.budget.parse(lambda: print(1 / 0))
        clocks.budget.parse(lambda: parsed.append(1))
        assert parsed

    asyncio.run(run())


@given(st.lists(st.floats(0.0, 2.0), min_size=1))
def test_a_stall_is_seen_at_once_counts_once_and_is_forgotten(delays: list[float]) -> None:
    budget = LoopBudget()
    for delay_s in delays:
        before_s = budget.delay_s
        budget.record_delay(delay_s)
        assert budget.delay_s >= 0.99 * delay_s or delay_s < 0.01
        assert budget.delay_s <= before_s + delay_s + 1e-9
    for _ in range(300):
        budget.record_delay(0.0)
    assert budget.delay_s == pytest.approx(0.0, abs=1e-6)


def test_a_loop_that_is_always_late_delays_every_turn_of_a_stream() -> None:
    budget = LoopBudget()
    for _ in range(100):
        budget.record_delay(0.05)
    assert budget.delay_s == pytest.approx(TURNS * 0.05, rel=0.01)


def test_it_measures_a_blocked_loop() -> None:
    async def scenario() -> float:
        budget = LoopBudget()
        budget.start_measuring()
        await asyncio.sleep(0)
        time.sleep(3 * INTERVAL_S)
        while not budget.delay_s:
            await asyncio.sleep(0)
        budget.stop_measuring()
        return budget.delay_s

    assert asyncio.run(scenario()) > INTERVAL_S
