"""A worker owns one device: it runs one batch at a time, and keeps each row's frames between the two stages."""

from asyncio import Future
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tutti.batching.orders import Make, Memory, Progress, Span, State, Status
from tutti.batching.process import ProcessWorker
from tutti.batching.thread import ThreadWorker
from tutti.speech import Samples, Utterance

__all__ = ["Make", "Memory", "ProcessWorker", "Progress", "State", "Status", "ThreadWorker", "Worker"]


class Worker(Protocol):
    """What the batcher asks of a worker. All of it belongs to the event loop in which the worker was started."""

    @property
    def status(self) -> Status: ...

    @property
    def restarts(self) -> int: ...

    @property
    def memory(self) -> Memory: ...

    async def start(self) -> None:
        """Returns when the models are loaded and warm; raises their error when trying again would not help."""

    def acoustic(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], timeout_s: float, *, on: bool = False
    ) -> Future[list[NDArray[np.int64]]]:
        """Frames for each token of each row; what the vocoder needs stays in the worker under the row's id.

        The worker has it when this returns, and the answer comes when it comes.
        `on`: the vocoder will be asked for the same rows next, so a worker may begin with that at once.

        A model's error stands for the whole batch. WorkerLost: the worker died or hung, and every row it held is gone.
        While the worker is being started again, calls wait.
        """

    def vocoder(
        self, checkpoint: str, ids: Sequence[int], timeout_s: float, spans: Mapping[int, Span] = {}
    ) -> Future[list[Samples]]:
        """The samples of rows that went through `acoustic`; the worker then forgets the rows.

        Of a row with a span only those frames sound, or some less at its end, where it is quieter there; the row is
        forgotten when its last frame has sounded.
        After a model's error the rows are still there, to be tried in halves. WorkerLost also when a row is not there.
        """

    def forget(self, ids: Sequence[int]) -> None:
        """Nobody waits for these rows any more."""

    async def close(self) -> None:
        """Ends the worker; calls that still wait raise WorkerLost."""
