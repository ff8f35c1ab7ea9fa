"""A worker's process as its parent sees it: born, told, heard, buried."""

import logging
import os
import select
import time

from tutti.child_process import ChildProcess
from tutti.errors import WorkerLost
from tutti.speech import Samples
from tutti.worker import child_main as inside
from tutti.worker import shared_memory as shelf
from tutti.worker.channel import Channel
from tutti.worker.messages import BothReady, Failed, Logged, Make, Order, Reply, Sound

BREAK_S = 10.0  # within a message


class Child:
    """Belongs to the thread that made it, but for `kill`; on Linux it dies with that thread."""

    def __init__(self, make: Make, wake: int) -> None:
        """`wake` is a descriptor that ends every wait when it becomes readable."""
        level = logging.getLogger("tutti").getEffectiveLevel()
        self._process = ChildProcess("tutti-worker", inside.main, make, level)
        self._line = Channel(self._process.socket)
        self._wake = wake
        self._poll = select.poll()
        self._poll.register(self._line, select.POLLIN)
        self._poll.register(wake, select.POLLIN)

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, order: Order, timeout_s: float) -> None:
        try:
            self._line.send(order, timeout_s=timeout_s)
        except TimeoutError:
            raise WorkerLost("the worker process hangs: it takes no orders") from None
        except OSError:
            raise self._dead() from None

    def hear(self, until_s: float | None) -> tuple[Reply, list[Samples]] | None:
        """What it says next, with the samples that came along; None when woken.

        WorkerLost when it dies, or says nothing until that time of the monotonic clock.
        """
        while True:
            left_s = None if until_s is None else max(until_s - time.monotonic(), 0.0)
            ready = {descriptor for descriptor, _ in self._poll.poll(None if left_s is None else left_s * 1000)}
            if not ready:
                raise WorkerLost("the worker process hangs: no answer in time")
            if self._line.fileno() in ready:
                reply, samples = self._receive(BREAK_S if left_s is None else left_s)
                if not isinstance(reply, Logged):
                    return reply, samples
                _write(reply.record)
            else:
                os.read(self._wake, 4096)
                return None

    def kill(self) -> None:
        self._process.kill()

    def bury(self, grace_s: float) -> None:
        """Hangs up, gives it that long to put its models away, then kills it."""
        self._process.stop(grace_s)

    def _receive(self, timeout_s: float) -> tuple[Reply, list[Samples]]:
        try:
            message, descriptor = self._line.receive(timeout_s)
        except TimeoutError:
            raise WorkerLost("the worker process hangs: its answer breaks off") from None
        except (EOFError, OSError):
            raise self._dead() from None
        reply: Reply = message  # type: ignore[assignment]  # the other end is inside.py
        if not isinstance(reply, Sound | BothReady):
            return reply, []
        try:
            return reply, _taken(descriptor, reply.n_samples)
        except OSError as exc:
            return Failed(WorkerLost(f"the samples did not arrive: {exc}"), reply.memory), []

    def _dead(self) -> WorkerLost:
        return WorkerLost(f"the worker process {self._process.exit_cause()}")


def _taken(descriptor: int | None, n_samples: tuple[int, ...]) -> list[Samples]:
    if descriptor is None:
        raise OSError("no file descriptor was free")
    try:
        return shelf.take(descriptor, n_samples)
    finally:
        os.close(descriptor)


def _write(record: logging.LogRecord) -> None:
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)
