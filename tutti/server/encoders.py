"""The threads that encode the audio of all answers, piece by piece: the piece that is needed first comes first."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count
from math import ceil
from queue import Empty, PriorityQueue

from tutti.admission.ticket import Delivery
from tutti.errors import QueueFull
from tutti.speech import SAMPLE_RATE

# Share of the threads that the audio of listeners may take while it is played. Larger accepts more listeners, but
# leaves less for whole answers, and for pieces that take longer than usual.
UTILISATION = 0.8
FIRST_COST = 0.01  # seconds of a thread for a second of audio in any format, until that is measured
LEARNED_S = 20.0  # of audio over which it is averaged; longer is smoother, and reacts later
ANSWER_S = 5.0  # of audio that a typical answer still has to encode; longer lets clients that are refused wait longer
# Seconds until the first piece of an answer is due, beside a listener's, which is due at once: as for the device.
DUE_S: Mapping[Delivery, float] = {"live": 0.0, "whole": 20.0, "bulk": 60.0}


@dataclass(order=True, slots=True)
class EncodingCall:
    """A call that waits for a thread."""

    due_s: float
    number: int  # of two that are due at the same time the first to come
    call: Callable[[], bytes] = field(compare=False)
    result: "Future[tuple[bytes, float]]" = field(compare=False, default_factory=Future)  # and the seconds it took


class Encoders:
    """Encodes pieces in threads, in the order in which their listeners need them, and knows what that costs.

    New listeners are refused when the audio of those before them fills the threads even if it is encoded no sooner than
    it is played: then more would only make gaps in all of them.
    """

    def __init__(
        self,
        first_audio: Callable[[float, Delivery], None],
        n_threads: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`first_audio` is told how long each answer's listener has waited when its first bytes are there."""
        self.first_audio = first_audio
        self.clock = clock
        self.n_threads = n_threads or os.cpu_count() or 1
        self.share = 1.0  # of the cores, for its listeners; the rest is for those of other HTTP processes
        self._threads = ThreadPoolExecutor(self.n_threads, "encoding")
        self._numbers = count()
        self._waiting: PriorityQueue[EncodingCall] = PriorityQueue()
        self._costs: dict[str, float] = {}  # by format: seconds of a thread for a second of audio
        self._n_live: Counter[str] = Counter()  # by format: listeners whose audio is to come, or waits to be encoded

    @property
    def wait_s(self) -> float:
        """Seconds until there are threads for one more listener; none as long as all audio is encoded in time."""
        load = sum(n * self._costs.get(name, FIRST_COST) for name, n in self._n_live.items())
        load /= self.n_threads * self.share
        return load * ANSWER_S if load > UTILISATION else 0.0

    def place(self, format: str, max_wait_s: float) -> AbstractContextManager[None]:
        """Count a listener while its audio is to come; raise QueueFull if there is no thread for it in time."""
        if (wait_s := self.wait_s) > max_wait_s:
            raise QueueFull(
                f"too much {format} has to be encoded; try again later, or ask for pcm or wav",
                retry_after_s=ceil(10 * wait_s) / 10,
            )
        return self._counted(format)

    async def run(self, call: Callable[[], bytes], due_s: float) -> bytes:
        """Run a call in a thread."""
        return (await self._run(call, due_s))[0]

    async def encode(
        self, call: Callable[[], bytes], due_s: float, format: str, n_samples: int, *, is_live: bool
    ) -> bytes:
        """Run a call that encodes so many samples, and learn what it costs."""
        with self._counted(format) if is_live else nullcontext():
            data, took_s = await self._run(call, due_s)
        audio_s = n_samples / SAMPLE_RATE
        if audio_s:
            before = self._costs.get(format, FIRST_COST)
            self._costs[format] = before + (took_s / audio_s - before) * min(1.0, audio_s / LEARNED_S)
        return data

    def close(self) -> None:
        """Cancel all that waits."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with suppress(Empty):
            while True:
                self._waiting.get_nowait().result.cancel()

    @contextmanager
    def _counted(self, format: str) -> Iterator[None]:
        self._n_live[format] += 1
        try:
            yield
        finally:
            self._n_live[format] -= 1

    async def _run(self, call: Callable[[], bytes], due_s: float) -> tuple[bytes, float]:
        piece = EncodingCall(due_s, next(self._numbers), call)
        self._waiting.put(piece)
        self._threads.submit(self._run_next)
        return await asyncio.wrap_future(piece.result)

    def _run_next(self) -> None:
        """Run the piece that is needed first; in a thread, once for each piece."""
        piece = self._waiting.get_nowait()
        if not piece.result.set_running_or_notify_cancel():
            return
        started_s = time.monotonic()
        try:
            data = piece.call()
        except BaseException as error:  # noqa: BLE001 - it is raised where the piece is awaited
            piece.result.set_exception(error)
        else:
            piece.result.set_result((data, time.monotonic() - started_s))
