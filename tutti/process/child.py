"""Start, watch and stop a child process: it leaves the signals that stop a server to its parent, and dies with it."""

import asyncio
import atexit
import ctypes
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import resource_tracker
from pathlib import Path

EXIT_WAIT_S = 1.0  # a connection breaks a moment before its process is gone; longer delays the report of a real hang
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_SPAWN = multiprocessing.get_context("spawn")
# On Linux a child dies with the THREAD that has spawned it (PR_SET_PDEATHSIG), so all children of event loops are
# spawned by one thread that lives as long as this process: neither the end of a loop nor of a pool's thread kills them.
_SPAWNER = ThreadPoolExecutor(1, "tutti-spawner")
_LIVING: set["ChildProcess"] = set()


class ChildProcess:
    """A spawned process, and the parent's end of a socket to it. On Linux it dies with the thread that spawns it.

    Spawning takes some milliseconds, `stop` and `exit_cause` wait: an event loop calls them in threads.
    """

    def __init__(self, name: str, main: Callable[..., None], *args: object) -> None:
        """Run `main(socket, *args)` in a new process; `main` and `args` must be picklable."""
        self.socket, child_end = socket.socketpair()
        self._process = _SPAWN.Process(target=_run, args=(name, main, child_end, args), name=name)
        resource_tracker.ensure_running()  # it unblocks the signals, so it must start before they are blocked
        # The child inherits the mask: signals stay pending until it can ignore them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._process.start()
        except BaseException:
            self.socket.close()
            raise
        finally:
            child_end.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.pid = self._process.pid or 0
        _LIVING.add(self)

    def kill(self) -> None:
        with suppress(ValueError, AttributeError):  # stopped already, or just now in another thread
            self._process.kill()

    def stop(self, grace_s: float) -> None:
        """Close the socket, give the process so long to end by itself, then kill it."""
        self.socket.close()
        self._process.join(grace_s)
        self._process.kill()
        self._process.join()
        with suppress(ValueError):  # just now reaped by multiprocessing, as another thread starts a process
            self._process.close()
        _LIVING.discard(self)

    def cpu_s(self) -> float:
        """Seconds of computing so far; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def exit_cause(self) -> str:
        """Say how the process ended, for a sentence that starts with its name."""
        self._process.join(EXIT_WAIT_S)
        match self._process.exitcode:
            case None:
                return "closed its connection"
            case -9:
                return "was killed (SIGKILL; the machine may be out of memory)"
            case code if code < 0:
                return f"died of {signal.Signals(-code).name}"
            case code:
                return f"ended with status {code}"


async def spawn(name: str, main: Callable[..., None], *args: object) -> ChildProcess:
    """Spawn a process that dies with this one; `main` and its arguments must be picklable, and less than a pipe holds.

    If the caller is cancelled, the process is ended as soon as it has begun.
    """
    spawning = _SPAWNER.submit(ChildProcess, name, main, *args)
    try:
        return await asyncio.wrap_future(spawning)
    except asyncio.CancelledError:
        spawning.add_done_callback(_stop_unwanted)
        raise


def _stop_unwanted(spawning: "Future[ChildProcess]") -> None:
    if not spawning.cancelled() and not spawning.exception():
        spawning.result().stop(0.0)


@atexit.register  # before multiprocessing's own function, which waits for all of them
def _kill_all() -> None:
    for child in tuple(_LIVING):
        child.kill()


# In the child:


def _run(name: str, main: Callable[..., None], child_end: socket.socket, args: tuple[object, ...]) -> None:
    for ignored in _SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if sys.platform == "linux":
        # Native code that never releases the interpreter lock would keep the thread below from running.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())  # for ps and top
    threading.Thread(target=_exit_with_parent, name="tutti-parent-watch", daemon=True).start()
    main(child_end, *args)


def _exit_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)
