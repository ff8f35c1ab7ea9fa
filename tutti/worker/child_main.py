"""Main function of a worker's process: runs stages for the calls that come over a link."""

import copy
import gc
import logging
import os
import pickle
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

from tutti.errors import DeviceFull, ModelFailed, TuttiError
from tutti.model.protocol import Ran
from tutti.process.link import ChildEnd
from tutti.worker import memory
from tutti.worker.base import SWITCH_INTERVAL_S
from tutti.worker.messages import (
    Forget,
    LogMessage,
    Memory,
    ModelFactory,
    ModelsReady,
    NumberedRun,
    Run,
    RunEnded,
    StartFailed,
    StartProgress,
)
from tutti.worker.samples import RowFormat, write_samples
from tutti.worker.stage_runner import StageRunner, as_tutti_error

# Descriptors kept open after they were sent: macOS may lose one that its sender closes before it has arrived, and the
# parent is at most one answer behind.
OPEN_DESCRIPTORS = 2


def main(end: socket.socket, make_models: ModelFactory, log_level: int) -> None:
    """Serve calls until the parent closes the channel. Every error is an answer; none ends the process."""
    channel = ChildEnd(end)
    logging.basicConfig(handlers=[_ChannelHandler(channel)], format="%(message)s", level=log_level, force=True)
    with suppress(EOFError, ConnectionError):  # closed by the parent
        try:
            runner = StageRunner(make_models, lambda *step: channel.send(StartProgress(*step)))
        except Exception as exc:  # noqa: BLE001 - raised by the parent
            channel.send(StartFailed(_sendable(exc)))
            return
        gc.freeze()  # the models stay: searching PyTorch's objects for garbage takes 80 ms each time
        channel.send(ModelsReady(memory.current(), runner.stages_overlap))
        try:
            if runner.stages_overlap:
                _serve_overlapping(runner, channel)
            else:
                _serve(runner, channel, channel.receive, channel.readable)
        finally:
            runner.close()


def _serve(runner: StageRunner, channel: ChildEnd, receive: Callable[[], object], readable: Callable[[], bool]) -> None:
    """Handle messages in order until `receive` raises EOFError; `readable`: whether the next one is there."""
    with ThreadPoolExecutor(1, "tutti-answer-sender") as background:
        sender = _AnswerSender(runner, channel, background, readable)
        while True:
            message = receive()
            if isinstance(message, Forget):
                sender.flush()
                runner.forget(message.ids)
            else:
                assert isinstance(message, NumberedRun)
                sender.send(message, _run(runner, message.run))


def _serve_overlapping(runner: StageRunner, channel: ChildEnd) -> None:
    """Run acoustic calls in one thread and all others in a second one, while this one receives."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    acoustic, others = _Inbox(), _Inbox()

    def serve_acoustic() -> None:
        while True:
            message = acoustic.receive()
            if isinstance(message, NumberedRun):
                channel.send(RunEnded(message.number, _run(runner, message.run), (), memory.current()))
            else:
                others.put(message)

    serve_others = partial(_serve, runner, channel, others.receive, others.readable)
    threads = [
        threading.Thread(target=_run_thread, args=(runner, channel, serve), name=name)
        for name, serve in (("tutti-acoustic", serve_acoustic), ("tutti-vocoder", serve_others))
    ]
    for thread in threads:
        thread.start()
    try:
        while True:
            match message := channel.receive():
                case NumberedRun(_, Run(stages="acoustic")):
                    acoustic.put(message)
                case NumberedRun():
                    others.put(message)
                case _:  # forget what is here, and what acoustic calls before it have still to make
                    others.put(message)
                    acoustic.put(message)
    finally:
        for inbox, thread in zip((acoustic, others), threads, strict=True):
            inbox.put(None)
            thread.join()


def _run_thread(runner: StageRunner, channel: ChildEnd, serve: Callable[[], None]) -> None:
    """Serve calls until the end. Without this thread the process is of no use, so its end is that of the channel."""
    try:
        runner.enter_thread()
        with suppress(EOFError, ConnectionError):
            serve()
    finally:
        channel.shut_down()


class _Inbox:
    """The messages for one thread; None is the last."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[object] = SimpleQueue()
        self.put = self._queue.put

    def receive(self) -> object:
        message = self._queue.get()
        if message is None:
            raise EOFError
        return message

    def readable(self) -> bool:
        return not self._queue.empty()


def _run(runner: StageRunner, run: Run) -> Ran | TuttiError:
    try:
        return runner.run(run)
    except Exception as exc:  # noqa: BLE001 - raised by the parent, to the caller
        return _sendable(exc)


class _AnswerSender:
    """Sends answers in order; those with samples in the background, if the next call is already there."""

    def __init__(
        self, runner: StageRunner, channel: ChildEnd, background: Executor, readable: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._channel = channel
        self._background = background
        self._readable = readable
        self._unsent: Future[None] | None = None
        self._device_bytes = memory.device_bytes()
        self._descriptors: deque[int] = deque()

    def send(self, call: NumberedRun, result: Ran | TuttiError) -> None:
        self.flush()
        if isinstance(result, TuttiError) or not result.samples:
            self._channel.send(RunEnded(call.number, result, (), memory.current()))
        elif self._readable():
            self._unsent = self._background.submit(self._send_samples, call, result)
        else:
            self._send_samples(call, result)

    def flush(self) -> None:
        """Wait until the last answer has been sent."""
        if self._unsent is not None:
            unsent, self._unsent = self._unsent, None
            unsent.result()

    def _send_samples(self, call: NumberedRun, result: Ran) -> None:
        """Without memory for the samples the rows are kept: they may be requested again, in smaller batches."""
        try:
            descriptor = write_samples(result.samples)
        except OSError as exc:
            error = DeviceFull(f"no memory to hand over the samples: {exc}; send fewer rows")
            self._channel.send(RunEnded(call.number, error, (), memory.current()))
            return
        # Before the answer, after which the parent may use the same ids again.
        self._runner.forget_finished(call.run)
        use = Memory(memory.resident_bytes(), self._device_bytes)
        formats = tuple(map(RowFormat.of, result.samples))
        self._channel.send(RunEnded(call.number, result._replace(samples=()), formats, use), descriptor)
        self._device_bytes = memory.device_bytes()  # for the next answer: it takes long, and no call waits now
        self._descriptors.append(descriptor)
        while len(self._descriptors) > OPEN_DESCRIPTORS:
            os.close(self._descriptors.popleft())


def _sendable(exc: Exception) -> TuttiError:
    error = as_tutti_error(exc)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - an error that cannot be pickled may fail in any way
        return ModelFailed(f"{type(error).__name__}: {error}")
    return error


class _ChannelHandler(logging.Handler):
    """Sends log records to the parent."""

    def __init__(self, channel: ChildEnd) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        plain = copy.copy(record)
        plain.msg = self.format(record)  # with its traceback, which cannot be pickled
        plain.args = plain.exc_info = plain.exc_text = plain.stack_info = None
        try:
            self._channel.send(LogMessage(plain))
        except Exception:  # noqa: BLE001 - as every handler does
            self.handleError(record)
