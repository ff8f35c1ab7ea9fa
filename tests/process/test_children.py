"""One law for all children: whatever happens to one, its callers get an answer, another takes its place, it closes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.live_text import alive
from tests.process import mains
from tests.process.kinds import GRACE_S, KINDS, PATIENT_S, Kind
from tests.process.test_link import no_descriptor_left
from tutti.process.child import spawn

pytestmark = [pytest.mark.process, pytest.mark.server, pytest.mark.timeout(120)]

IN_TIME_S = GRACE_S + 2.0
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Kind]:
    """Makes a child of each kind."""
    make = KINDS[request.param]
    make.set_limits(monkeypatch, PATIENT_S)  # type: ignore[attr-defined]
    return lambda: make(tmp_path)


def run(scenario: Callable[[Kind], Awaitable[None]], kind: Kind) -> None:
    """Run a scenario; in the end the child is gone in time, and no call waits."""

    async def whole() -> None:
        calls: list[asyncio.Task[object]] = []
        call = kind.call

        def remember() -> "asyncio.Task[object]":
            calls.append(asyncio.ensure_future(call()))
            return calls[-1]

        kind.call = remember  # type: ignore[method-assign]
        try:
            await scenario(kind)
        finally:
            children, started_s = psutil.Process().children(), time.monotonic()
            await kind.close()
            took_s = time.monotonic() - started_s
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    if child.name().startswith("tutti-"):
                        child.kill()
                        pytest.fail(f"{child.name()} is left")
        assert took_s < IN_TIME_S
        async with asyncio.timeout(5):
            await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(whole())


async def outcome(call: "Awaitable[object]") -> object:
    """What a call comes to, an error included."""
    (result,) = await asyncio.gather(call, return_exceptions=True)
    return result


async def works_again(kind: Kind) -> None:
    """Ask until a child answers as ever."""
    while isinstance(await outcome(kind.call()), Exception):
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV], ids=lambda fault: fault.name)
def test_a_child_that_dies_or_stops_is_replaced_and_its_callers_are_answered(
    kind: Callable[[], Kind], fault: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(kind: Kind) -> None:
        await kind.start()
        expected = await kind.call()
        pid = kind.supervisor.pid
        assert pid
        kind.set_limits(monkeypatch, 0.5)
        os.kill(pid, fault)
        await outcome(kind.call())
        kind.set_limits(monkeypatch, PATIENT_S)
        await works_again(kind)
        assert type(await kind.call()) is type(expected)
        assert kind.supervisor.pid not in (None, pid)
        assert not psutil.pid_exists(pid)

    run(scenario, kind())


@pytest.mark.parametrize("fault", [None, signal.SIGKILL, signal.SIGSTOP], ids=lambda fault: fault and fault.name)
def test_a_child_is_closed_in_time_and_its_callers_are_answered(
    kind: Callable[[], Kind], fault: signal.Signals | None
) -> None:
    async def scenario(kind: Kind) -> None:
        await kind.start()
        pid = kind.supervisor.pid
        assert pid
        if fault:
            os.kill(pid, fault)
        calls = [kind.call() for _ in range(3)]
        await asyncio.sleep(0.05)
        await kind.close()
        for call in calls:
            await asyncio.wait_for(outcome(call), 5)

    run(scenario, kind())


@pytest.mark.parametrize("main", mains.WRONG, ids=lambda main: main.__name__)
def test_children_that_are_wrong_from_their_start_are_replaced_ever_later_and_closed_in_time(
    kind: Callable[[], Kind], main: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(kind: Kind) -> None:
        waits_s: list[float] = []
        await kind.start()
        supervisor, pid = kind.supervisor, kind.supervisor.pid
        assert pid
        lost = supervisor._lost
        supervisor._lost = lambda reason, wait_s: (waits_s.append(wait_s), lost(reason, wait_s))[1]
        supervisor._spawn = partial(spawn, "tutti-wrong", main)  # type: ignore[assignment]
        kind.set_limits(monkeypatch, 0.2)
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            while len(waits_s) < 3:
                await asyncio.wait([kind.call()], timeout=1)  # type: ignore[type-var]
        assert waits_s[0] == 0.0
        assert sorted(waits_s) == waits_s
        assert waits_s[-1] > 0.0

    run(scenario, kind())


def test_without_a_free_descriptor_calls_are_answered_and_later_all_is_as_before(kind: Callable[[], Kind]) -> None:
    async def scenario(kind: Kind) -> None:
        await kind.start()
        pid = kind.supervisor.pid
        assert pid
        with no_descriptor_left():
            calls = [kind.call()]
            await asyncio.sleep(0.1)
            os.kill(pid, signal.SIGKILL)
            calls.append(kind.call())
            await asyncio.sleep(0.3)
        for call in calls:
            await asyncio.wait_for(outcome(call), 30)
        await works_again(kind)

    run(scenario, kind())


@pytest.mark.parametrize("name", KINDS)
def test_a_child_ends_with_its_parent(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.process.kinds", name, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        try:
            assert alive(pid)
            parent.kill()
            while alive(pid):
                time.sleep(0.005)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
