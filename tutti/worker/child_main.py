"""What runs inside of a worker's process: a desk, and the line to whoever gives the orders."""

import copy
import gc
import logging
import os
import pickle
import socket
from collections import deque
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress

from tutti.errors import DeviceFull, ModelFailed, TuttiError
from tutti.speech import Samples
from tutti.worker import memory
from tutti.worker import shared_memory as shelf
from tutti.worker.channel import Channel
from tutti.worker.messages import (
    Acoustic,
    BothReady,
    BothStages,
    CallMessage,
    Durations,
    Failed,
    Forget,
    Logged,
    Make,
    Ready,
    RunBoth,
    Sound,
    Step,
    Vocoder,
)
from tutti.worker.stage_runner import StageRunner, typed

KEPT_SHELVES = 2


def main(end: socket.socket, make: Make, log_level: int) -> None:
    """Serves orders until the line ends. What goes wrong is answered; only a broken line ends the process."""
    line = Channel(end)
    logging.basicConfig(handlers=[_OverLine(line)], format="%(message)s", level=log_level, force=True)
    with suppress(EOFError, ConnectionError):  # the parent has hung up
        try:
            desk = StageRunner(make, lambda what, done, steps: line.send(Step(what, done, steps)))
        except Exception as exc:  # noqa: BLE001 - raised by the parent
            line.send(_failed(exc))
            return
        gc.freeze()  # what was loaded stays: to look through PyTorch's objects for garbage takes 80 ms each time
        line.send(Ready(memory.held()))
        try:
            _serve(desk, line)
        finally:
            desk.close()


def _serve(desk: StageRunner, line: Channel) -> None:
    with ThreadPoolExecutor(1, "tutti-porter") as hands:
        porter = _Porter(desk, line, hands)
        while True:
            order, _ = line.receive()
            if isinstance(order, Forget):
                porter.wait()
                desk.forget(order.ids)
                continue
            assert isinstance(order, CallMessage)
            made = _made(desk, order)
            porter.carry(order, made)
            if isinstance(order, Acoustic) and order.on and isinstance(made, Durations):
                desk.begin(order.checkpoint, [id for id, _ in order.rows])


Result = list[Samples] | BothStages | Durations | Failed


def _made(desk: StageRunner, order: CallMessage) -> Result:
    try:
        if isinstance(order, Acoustic):
            durations = desk.acoustic(order.checkpoint, order.rows)
            return Durations(tuple(durations), None if order.on else memory.held())
        if isinstance(order, RunBoth):
            return desk.both(order.checkpoint, order.rows)
        return desk.vocoder(order.checkpoint, order.ids, order.spans)
    except Exception as exc:  # noqa: BLE001 - raised by the parent, to the caller
        return _failed(exc)


class _Porter:
    """Carries answers out in their order: sound in the background, if the next order is there to be worked on."""

    def __init__(self, desk: StageRunner, line: Channel, hands: Executor) -> None:
        self._desk = desk
        self._line = line
        self._hands = hands
        self._leaving: tuple[CallMessage, Future[bool]] | None = None
        self._shelves: deque[int] = deque()

    def carry(self, order: CallMessage, made: Result) -> None:
        self.wait()
        if isinstance(made, Durations | Failed):
            self._line.send(made)
        elif self._line.more():
            self._leaving = order, self._hands.submit(self._put, made)
        elif self._put(made):
            self._forget(order)

    def wait(self) -> None:
        """The last answer is out."""
        if self._leaving is not None:
            (order, put), self._leaving = self._leaving, None
            if put.result():
                self._forget(order)

    def _forget(self, order: CallMessage) -> None:
        if isinstance(order, Vocoder):
            self._desk.spoken(order.ids, order.spans)

    def _put(self, made: list[Samples] | BothStages) -> bool:
        """False if there was no room: the rows may be asked for again, in smaller batches."""
        samples = made if isinstance(made, list) else made.samples
        try:
            sound = shelf.put(samples)
        except OSError as exc:
            self._line.send(_failed(DeviceFull(f"no room for the samples on their way: {exc}; send fewer rows")))
            return False
        self._line.send(_described(made), sound)
        # Not closed yet: macOS may lose a descriptor that its sender closes before it has arrived. The parent is at
        # most one answer behind.
        self._shelves.append(sound)
        while len(self._shelves) > KEPT_SHELVES:
            os.close(self._shelves.popleft())
        return True


def _described(made: list[Samples] | BothStages) -> Sound | BothReady:
    """The answer without its samples."""
    if isinstance(made, list):
        return Sound(tuple(map(len, made)), memory.held())
    n_samples = tuple(map(len, made.samples))
    return BothReady(tuple(made.durations), n_samples, made.acoustic_s, made.vocoder_s, memory.held())


def _failed(exc: Exception) -> Failed:
    error: TuttiError = typed(exc)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - an error that cannot travel may fail in any way
        error = ModelFailed(f"{type(error).__name__}: {error}")
    return Failed(error, memory.held())


class _OverLine(logging.Handler):
    """Sends what is logged here to the parent's log."""

    def __init__(self, line: Channel) -> None:
        super().__init__()
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        plain = copy.copy(record)
        plain.msg = self.format(record)  # with its traceback, which cannot travel
        plain.args = plain.exc_info = plain.exc_text = plain.stack_info = None
        try:
            self._line.send(Logged(plain))
        except Exception:  # noqa: BLE001 - as every handler does
            self.handleError(record)
