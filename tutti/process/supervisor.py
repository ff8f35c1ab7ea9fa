"""Keep a child process running: start it, talk to it, replace it when it dies or hangs, and end it in time."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from tutti.process.child import ChildProcess, spawn
from tutti.process.link import Link
from tutti.process.messages import WithDescriptor, close_descriptor

FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.5, 30.0  # wait before the second restart in a row; it doubles up to the maximum
# Each waits for the end of one child, so more are of use only if more children are closed at once.
_WAITERS = ThreadPoolExecutor(32, "tutti-child-end")
log = logging.getLogger(__name__)


def backoff_s(failures: int) -> float:
    """Exponential backoff before the next start, by the failures in a row; none after the first."""
    return 0.0 if failures <= 1 else min(FIRST_BACKOFF_S * 2 ** min(failures - 2, 16), MAX_BACKOFF_S)


class ChildLost(Exception):
    """Why a child is gone, in words that follow its name."""


class Supervisor:
    """One child after the other, in the event loop. Only spawning one, and waiting for its end, is done in a thread.

    A child fails when it cannot be spawned, dies, closes its end or hangs. The next one is started at once after the
    first failure, and ever later after more of them without `answered` in between.
    """

    def __init__(
        self,
        name: str,
        main: Callable[..., None],
        args: tuple[object, ...],
        *,
        began: Callable[[], None],
        receive: Callable[[Any], None],
        lost: Callable[[Exception, float], None],
        grace_s: float,
        backoff_s: Callable[[int], float] = backoff_s,
    ) -> None:
        """`began` is called when there is a new child, to which `link` leads; `receive` with each of its messages.

        `lost` is called with the reason when it has failed (a ChildLost, what kept it from being spawned, or what
        `kill` was given), and with the seconds until the next start. After `close` none of them is called.
        `grace_s`: for a child that is not wanted any more to end by itself; then it is killed.
        """
        self.link: Link | None = None  # while there is a child
        self.failures = 0  # since the last answer
        self._spawn = partial(spawn, name, main, *args)
        self._name = name
        self._began = began
        self._receive = receive
        self._lost = lost
        self._grace_s = grace_s
        self._backoff_s = backoff_s
        self._wait_s = 0.0  # before the next start
        self._child: ChildProcess | None = None
        self._ending: asyncio.Future[Exception | None] | None = None  # why the child ends; none: it is not wanted
        self._deadline_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0  # when it fires
        self._is_wanted = asyncio.Event()
        self._has_none = asyncio.Event()  # there is no child, and none is being started
        self._is_closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Of the child; None while there is none."""
        return self._child.pid if self._child else None

    def cpu_s(self) -> float:
        """Seconds of computing of the child so far; 0 where the system does not tell, or there is no child."""
        return self._child.cpu_s() if self._child else 0.0

    def start(self) -> None:
        """Keep a child running from now on."""
        self._is_wanted.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._supervise(), name=f"{self._name}-supervisor")

    def answered(self) -> None:
        """Note that the child is of use: its next failure is the first one."""
        self.failures = 0

    def expect(self, deadline_s: float | None) -> None:
        """The child hangs if this is not called again before that time of the monotonic clock; none: it may wait."""
        self._deadline_s = deadline_s
        if deadline_s is None or (self._timer is not None and self._timer_s <= deadline_s):
            return  # it looks again when it fires: hardly any call needs a timer of its own
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = deadline_s
        left_s = max(deadline_s - time.monotonic(), 0.0)
        self._timer = asyncio.get_running_loop().call_later(left_s, self._look)

    def kill(self, reason: Exception) -> None:
        """Kill the child, which is lost for this reason."""
        if self._child is not None:
            self._child.kill()
        _end(self._ending, reason)

    def replace(self) -> None:
        """End the child in peace, and start the next one."""
        _end(self._ending, None)

    def retire(self) -> None:
        """Start no other child after this one, until `start`."""
        if not self._is_closing.is_set():
            self._is_wanted.clear()

    async def stop(self) -> None:
        """End the child in peace, and return when it is gone; the next one begins with `start`."""
        self.retire()
        _end(self._ending, None)
        if self._task is not None:
            await self._has_none.wait()

    async def close(self) -> None:
        """End the child, whatever it does, and return when it is gone."""
        self._is_closing.set()
        self._is_wanted.set()
        _end(self._ending, None)
        if self._task is not None:
            await asyncio.wait([self._task])  # which ends even if the caller is cancelled

    async def _supervise(self) -> None:
        try:
            while not self._is_closing.is_set():
                self._has_none.clear()
                self._wait_s = 0.0
                try:
                    await self._run_child()
                except Exception as exc:
                    log.exception("supervising %s failed", self._name)
                    self._fail(exc)
                self._has_none.set()
                if self._wait_s:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._is_closing.wait(), self._wait_s)
                await self._is_wanted.wait()
        finally:
            self._has_none.set()
            if self._timer is not None:
                self._timer.cancel()

    async def _run_child(self) -> None:
        """Start a child and return when it is gone."""
        ending = self._ending = asyncio.get_running_loop().create_future()
        try:
            child = self._child = await self._spawn()
        except Exception as exc:  # noqa: BLE001 - `lost` judges it
            self._fail(exc)
            return
        try:
            reason = await self._talk(child, ending)
            if isinstance(reason, _Broken):
                reason = ChildLost(await _in_thread(child.exit_cause))
            if reason is not None:
                self._fail(reason)
            await _in_thread(child.stop, self._grace_s if reason is None else 0.0)
        finally:
            child.kill()  # only if this is cancelled, as the loop ends
            self._child = None

    async def _talk(self, child: ChildProcess, ending: "asyncio.Future[Exception | None]") -> Exception | None:
        """Receive the messages of a child until one of both ends it; return why."""

        def receive(message: Any) -> None:
            if not ending.done():
                self._receive(message)
            elif isinstance(message, WithDescriptor):
                close_descriptor(message.descriptor)

        link = Link(receive, partial(_end, ending, _Broken()))
        try:
            if not ending.done():
                self.link = link
                link.open(child.socket)
                self._began()
            return await ending
        finally:
            self.link, self._deadline_s = None, None
            link.close()

    def _fail(self, reason: Exception) -> None:
        if self._is_closing.is_set():
            return
        self.failures += 1
        self._wait_s = self._backoff_s(self.failures)
        try:
            self._lost(reason, self._wait_s)
        except Exception:  # the next child is started nevertheless
            log.exception("after the loss of %s", self._name)

    def _look(self) -> None:
        """Kill the child if its time is over. What has come while the loop was busy is received before timers fire."""
        self._timer = None
        deadline_s, link = self._deadline_s, self.link
        if deadline_s is None or link is None:
            return
        if deadline_s > time.monotonic():
            self.expect(deadline_s)
        else:
            does = "it does not read" if link.has_unsent else "no answer in time"
            self.kill(ChildLost(f"hangs: {does}"))


class _Broken(Exception):
    """The child has closed its end, for a reason that is still to be found."""


def _end(ending: "asyncio.Future[Exception | None] | None", reason: Exception | None) -> None:
    """Note why a child ends; the first reason counts."""
    if ending is not None and not ending.done():
        ending.set_result(reason)


async def _in_thread(function: Callable[..., Any], *args: object) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_WAITERS, function, *args)
