"""A worker's process as its parent sees it: send requests, receive replies with their samples."""

import logging
import os
import select
import time
from collections.abc import Sequence

from tutti.errors import WorkerLost
from tutti.process.child import ChildProcess
from tutti.speech import Samples
from tutti.worker import child_main
from tutti.worker.channel import Channel, RowFormat, map_samples
from tutti.worker.messages import (
    BothReady,
    Forget,
    LogMessage,
    Message,
    ModelFactory,
    NumberedReply,
    NumberedRequest,
    RequestFailed,
    SamplesReady,
)

MESSAGE_TIMEOUT_S = 10.0  # from the first byte of a message to its last, where nothing else limits it


class Child:
    """Belongs to the thread that starts it, except for `kill`; on Linux the process dies with that thread."""

    def __init__(self, make_models: ModelFactory, wakeup: int) -> None:
        """`wakeup` is a descriptor that ends every `receive` when it becomes readable."""
        log_level = logging.getLogger("tutti").getEffectiveLevel()
        self._process = ChildProcess("tutti-worker", child_main.main, make_models, log_level)
        self._channel = Channel(self._process.socket)
        self._wakeup = wakeup
        self._poll = select.poll()
        self._poll.register(self._channel, select.POLLIN)
        self._poll.register(wakeup, select.POLLIN)

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_room(self) -> bool:
        """Whether a call with a few rows can be sent without waiting; only Linux promises it."""
        return self._channel.has_room()

    def send(self, message: NumberedRequest | Forget, timeout_s: float) -> None:
        try:
            self._channel.send(message, timeout_s=timeout_s)
        except TimeoutError:
            raise WorkerLost("the worker process hangs: it does not read requests") from None
        except OSError:
            raise self._exit_error() from None

    def receive(self, deadline_s: float | None) -> tuple[Message, list[Samples]] | None:
        """The next message, with the samples of a reply; None after a wake-up.

        WorkerLost when the process dies, or sends nothing until that time of the monotonic clock.
        """
        while True:
            left_s = None if deadline_s is None else max(deadline_s - time.monotonic(), 0.0)
            ready = {descriptor for descriptor, _ in self._poll.poll(None if left_s is None else left_s * 1000)}
            if not ready:
                raise WorkerLost("the worker process hangs: no answer in time")
            if self._channel.fileno() in ready:
                message, samples = self._read(MESSAGE_TIMEOUT_S if left_s is None else left_s)
                if not isinstance(message, LogMessage):
                    return message, samples
                _log(message.record)
            else:
                os.read(self._wakeup, 4096)
                return None

    def kill(self) -> None:
        self._process.kill()

    def stop(self, grace_s: float) -> None:
        """Close the channel, give the process so long to close its models, then kill it."""
        self._process.stop(grace_s)

    def _read(self, timeout_s: float) -> tuple[Message, list[Samples]]:
        try:
            received, descriptor = self._channel.receive(timeout_s)
        except TimeoutError:
            raise WorkerLost("the worker process hangs: its answer is incomplete") from None
        except (EOFError, OSError):
            raise self._exit_error() from None
        message: Message = received  # type: ignore[assignment]  # sent by child_main
        if not isinstance(message, NumberedReply) or not isinstance(message.reply, SamplesReady | BothReady):
            return message, []
        try:
            return message, _read_samples(descriptor, message.reply.formats)
        except OSError as exc:
            error = RequestFailed(WorkerLost(f"the samples did not arrive: {exc}"), message.reply.memory)
            return NumberedReply(message.number, error), []

    def _exit_error(self) -> WorkerLost:
        return WorkerLost(f"the worker process {self._process.exit_cause()}")


def _read_samples(descriptor: int | None, formats: Sequence[RowFormat]) -> list[Samples]:
    if descriptor is None:
        raise OSError("no file descriptor was free")
    try:
        return map_samples(descriptor, formats)
    finally:
        os.close(descriptor)


def _log(record: logging.LogRecord) -> None:
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)
