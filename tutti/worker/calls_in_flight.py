"""The calls that a worker's process has, and which of them run. Pure: the time is an argument."""

from collections import deque
from itertools import count, islice
from operator import itemgetter

from tutti.errors import WorkerLost
from tutti.worker.base import PendingCall
from tutti.worker.messages import Forget

MAX_IN_FLIGHT = 2  # calls of one kind at the process: the one that runs and the next, so that it need not wait


class CallsInFlight:
    """Calls in the order in which they were sent. The first one runs; where stages overlap, the first of each kind:
    acoustic calls, and all others.
    """

    def __init__(self, stages_overlap: bool) -> None:
        self._stages_overlap = stages_overlap
        self._numbers = count()
        self._calls: dict[bool, deque[tuple[int, PendingCall]]] = {False: deque(), True: deque()}
        self._deadlines_s: dict[bool, float] = {}  # of the running call of each kind

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    @property
    def deadline_s(self) -> float | None:
        """When the process hangs if nothing comes until then; none if nothing runs."""
        return min(self._deadlines_s.values(), default=None)

    def may_send(self, item: PendingCall | Forget) -> bool:
        return isinstance(item, Forget) or len(self._calls[self._kind(item)]) < MAX_IN_FLIGHT

    def add(self, call: PendingCall, now: float) -> int:
        """Return the number of the call."""
        number, kind = next(self._numbers), self._kind(call)
        self._calls[kind].append((number, call))
        self._set_deadline(kind, now)
        return number

    def pop(self, number: int, now: float) -> PendingCall:
        """Remove the call of an answer, which must run; the next of its kind runs from now on."""
        for kind, calls in self._calls.items():
            if calls and calls[0][0] == number:
                _, call = calls.popleft()
                del self._deadlines_s[kind]
                self._set_deadline(kind, now)
                return call
        raise WorkerLost(f"the worker process answered call {number}, which does not run")

    def running(self) -> list[PendingCall]:
        return [calls[0][1] for calls in self._calls.values() if calls]

    def waiting(self) -> list[PendingCall]:
        """The calls that the process has not begun, in the order in which they were sent."""
        pairs = [pair for calls in self._calls.values() for pair in islice(calls, 1, None)]
        return [call for _, call in sorted(pairs, key=itemgetter(0))]

    def _kind(self, call: PendingCall) -> bool:
        return self._stages_overlap and call.run.stages == "acoustic"

    def _set_deadline(self, kind: bool, now: float) -> None:
        """Start the time of the call that has begun to run."""
        if self._calls[kind] and kind not in self._deadlines_s:
            self._deadlines_s[kind] = now + self._calls[kind][0][1].timeout_s
