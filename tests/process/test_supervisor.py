"""Whatever a child does: its supervisor says why it is gone, starts the next one ever later, and closes in time."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import psutil
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from tests.process import mains
from tests.process.test_link import no_descriptor_left
from tests.worker.fakes import wait_until
from tutti.process.child import ChildProcess, spawn
from tutti.process.messages import MessageReader, pack
from tutti.process.supervisor import MAX_BACKOFF_S, ChildLost, Supervisor, backoff_s

pytestmark = pytest.mark.process

GRACE_S = 0.2
IN_TIME_S = GRACE_S + 2.0


class Owner:
    """Notes what its supervisor says."""

    def __init__(self, main: Callable[..., None] = mains.echoes, **options: Any) -> None:
        self.received, self.reasons, self.waits_s, self.pids = [], [], [], []  # type: ignore[var-annotated]
        callbacks = {"began": self.began, "receive": self.received.append, "lost": self.lost}
        self.supervisor = Supervisor("child", main, (), grace_s=GRACE_S, **callbacks, **options)

    def began(self) -> None:
        self.pids.append(self.supervisor.pid)

    def lost(self, reason: Exception, wait_s: float) -> None:
        self.reasons.append(reason)
        self.waits_s.append(wait_s)

    async def wait_for(self, message: object) -> None:
        await wait_until(lambda: message in self.received)
        self.received.clear()

    def send(self, message: object) -> None:
        assert self.supervisor.link is not None
        self.supervisor.link.send(message)


def run(
    scenario: Callable[[Owner], Coroutine[Any, Any, None]],
    owner: Owner,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    async def whole() -> None:
        owner.supervisor.start()
        try:
            await scenario(owner)
        finally:
            pids, started_s = [pid for pid in owner.pids if pid], time.monotonic()
            await owner.supervisor.close()
            assert time.monotonic() < started_s + IN_TIME_S
            assert not any(map(psutil.pid_exists, pids))
            assert owner.supervisor.pid is None

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(whole())


def test_messages_go_both_ways_and_a_dead_child_is_replaced_at_once() -> None:
    async def scenario(owner: Owner) -> None:
        for death, cause in (("die", "died of SIGSEGV"), (signal.SIGKILL, "was killed (SIGKILL")):
            await owner.wait_for("ready")
            owner.send("hello")
            await owner.wait_for("hello")
            owner.supervisor.answered()
            if isinstance(death, str):
                owner.send(death)
            else:
                os.kill(owner.pids[-1], death)
            await wait_until(lambda cause=cause: any(cause in str(reason) for reason in owner.reasons))
        await owner.wait_for("ready")
        assert len(set(owner.pids)) == 3
        assert owner.waits_s == [0.0, 0.0]

    run(scenario, Owner())


@pytest.mark.parametrize("what", ["hang", "half", "stopped", "stopped, does not read"])
def test_a_child_that_hangs_is_killed_at_its_deadline_and_not_before(what: str) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.wait_for("ready")
        for _ in range(3):  # each answer in time moves the deadline
            owner.supervisor.expect(time.monotonic() + 30.0)
            owner.send("hello")
            await owner.wait_for("hello")
            owner.supervisor.expect(None)
        if what.startswith("stopped"):
            os.kill(owner.pids[-1], signal.SIGSTOP)
        owner.supervisor.expect(time.monotonic() + 0.1)
        owner.send(b"x" * 5_000_000 if "read" in what else what)
        await wait_until(lambda: bool(owner.reasons))
        assert f"hangs: {'it does not read' if 'read' in what else 'no answer'}" in str(owner.reasons[0])
        await owner.wait_for("ready")

    run(scenario, Owner())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_an_answer_that_waits_in_the_socket_is_in_time_however_late_the_loop_is(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.wait_for("ready")
        owner.send("hello")
        deadline_s = time.monotonic() + 0.2
        owner.supervisor.expect(deadline_s)
        owner.supervisor._receive = lambda _: owner.supervisor.expect(None)
        while time.monotonic() < deadline_s + 0.2:  # the event loop is busy
            pass
        await asyncio.sleep(0.05)
        assert owner.reasons == []

    run(scenario, Owner(), new_loop)


@pytest.mark.parametrize("main", mains.WRONG, ids=lambda main: main.__name__)
def test_it_closes_in_time_whatever_the_child_does(main: Callable[..., None]) -> None:
    async def scenario(owner: Owner) -> None:
        await wait_until(lambda: bool(owner.pids))
        await asyncio.sleep(0.3)

    run(scenario, Owner(main))


def test_a_child_that_dies_at_each_start_is_started_ever_later() -> None:
    async def scenario(owner: Owner) -> None:
        await wait_until(lambda: len(owner.reasons) == 4)
        assert all("ended with status 3" in str(reason) for reason in owner.reasons)
        assert owner.waits_s == [0.0, 0.01, 0.02, 3600.0]  # and closing does not wait for it

    run(scenario, Owner(mains.dies_at_its_start, backoff_s=lambda n: (0.0, 0.01, 0.02, 3600.0)[n - 1]))


def test_a_child_that_cannot_be_spawned_is_started_again() -> None:
    async def scenario(owner: Owner) -> None:
        await owner.wait_for("ready")
        with no_descriptor_left():
            os.kill(owner.pids[-1], signal.SIGKILL)
            await wait_until(lambda: len(owner.reasons) == 3)
        assert [isinstance(reason, ChildLost) for reason in owner.reasons[:2]] == [True, False]
        assert isinstance(owner.reasons[1], OSError)
        await owner.wait_for("ready")

    run(scenario, Owner(backoff_s=lambda _: 0.05))


def test_a_child_rests_until_it_is_wanted_and_is_replaced_without_being_lost() -> None:
    async def scenario(owner: Owner) -> None:
        await owner.wait_for("ready")
        owner.supervisor.replace()
        await owner.wait_for("ready")
        await owner.supervisor.stop()
        assert owner.supervisor.pid is None
        assert not any(map(psutil.pid_exists, owner.pids))
        assert len(owner.pids) == 2
        owner.supervisor.start()
        await owner.wait_for("ready")
        assert owner.reasons == []
        owner.supervisor.retire()
        owner.send("die")
        await wait_until(lambda: bool(owner.reasons) and owner.supervisor.pid is None)
        await asyncio.sleep(0.05)
        assert len(owner.pids) == 3

    run(scenario, Owner())


def test_an_owner_that_fails_is_not_the_end_of_its_child(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.wait_for("ready")

        def fail(*_: Any) -> None:
            raise RuntimeError("a bug of the owner")

        owner.supervisor._lost = fail
        os.kill(owner.pids[-1], signal.SIGKILL)
        await owner.wait_for("ready")
        assert "a bug of the owner" in caplog.text

    run(scenario, Owner())


def test_a_child_outlives_the_thread_and_the_loop_that_asked_for_it() -> None:
    """On Linux it would die with the thread that spawned it."""
    children: list[ChildProcess] = []

    async def start() -> None:
        child = await spawn("child", mains.echoes)
        assert MessageReader().feed(await asyncio.to_thread(child.socket.recv, 1000)) == ["ready"]
        children.append(child)

    thread = threading.Thread(target=lambda: asyncio.run(start()))
    thread.start()
    thread.join()
    (child,) = children
    child.socket.sendall(b"".join(pack("hello").parts))
    assert MessageReader().feed(child.socket.recv(1000)) == ["hello"]
    child.stop(GRACE_S)


def test_a_loop_that_is_cancelled_leaves_no_child() -> None:
    owners: list[Owner] = []

    async def leave() -> None:
        owners.append(Owner())
        owners[0].supervisor.start()
        await owners[0].wait_for("ready")

    asyncio.run(leave())
    (pid,) = owners[0].pids
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=30)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@given(st.integers(1, 10_000))
def test_the_backoff_grows_from_zero_to_its_maximum(failures: int) -> None:
    assert backoff_s(1) == 0.0
    assert backoff_s(failures) <= backoff_s(failures + 1) <= MAX_BACKOFF_S
    assert backoff_s(failures) == MAX_BACKOFF_S or backoff_s(failures) < backoff_s(failures + 1)
