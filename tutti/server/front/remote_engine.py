"""The engine as an HTTP process sees it: its streams come over a link from the server's process."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from itertools import count

from tutti.admission.loop_budget import LoopBudget
from tutti.admission.refusals import Refusals
from tutti.admission.ticket import Delivery
from tutti.engine.request import StreamRequest
from tutti.errors import WorkerLost
from tutti.server.front.messages import (
    EngineState,
    LeaveStream,
    NextSpeech,
    SpeechReady,
    StartStream,
    StreamEnded,
    StreamReport,
)
from tutti.speech import Speech
from tutti.trace import current_trace
from tutti.voices import Voices

REPORT_S = 0.25  # between two reports of refused streams and first audio

Reply = SpeechReady | StreamEnded


class RemoteEngine:
    """What the routes for speech need of an engine."""

    def __init__(self, state: EngineState, refusals: Refusals, voices: Voices) -> None:
        self.state, self.refusals, self.voices = state, refusals, voices
        self.loop_budget = LoopBudget()
        self.send: Callable[[object], None] = lambda _: None  # until the link is there
        self._numbers = count()
        self._replies: dict[int, asyncio.Future[Reply]] = {}  # of the streams that wait for one
        self._n_refused = 0  # streams that were not reported yet
        self._first_audio: list[tuple[float, Delivery]] = []  # that was not reported yet

    @property
    def ready(self) -> bool:
        return self.state.ready

    @property
    def checkpoints(self) -> tuple[str, ...]:
        return self.state.checkpoints

    @property
    def batching_enabled(self) -> bool:
        return self.state.batching_enabled

    async def stream(self, request: StreamRequest) -> AsyncGenerator[Speech]:
        """Yield speech chunk by chunk; closing the generator cancels the rest."""
        assert isinstance(request.text, str), "live text is spoken by the server's process"
        number, has_ended = next(self._numbers), False
        wanted: object = StartStream(number, request, current_trace.get().id)
        try:
            while True:
                match await self._ask(number, wanted):
                    case SpeechReady(_, speech, is_last):
                        has_ended = is_last
                        yield speech
                        del speech  # not held until the next one is there
                        if is_last:
                            return
                    case StreamEnded(_, error):
                        has_ended = True
                        if error is not None:
                            try:
                                raise error
                            finally:
                                del error  # it refers to this frame
                        return
                wanted = NextSpeech(number)
        finally:
            if not has_ended:
                self._replies.pop(number, None)
                self.send(LeaveStream(number))

    def count_refusal(self) -> None:
        """Report that a stream was refused without asking the engine; many in one message."""
        self._report_soon()
        self._n_refused += 1

    def first_audio(self, waited_s: float, delivery: Delivery) -> None:
        """Report how long a stream has waited until the first bytes of its audio could be sent; likewise."""
        self._report_soon()
        self._first_audio.append((waited_s, delivery))

    def receive(self, reply: Reply) -> None:
        """Take a reply of the server's process; one for a stream that was closed meanwhile is dropped."""
        waiting = self._replies.pop(reply.number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def lost(self) -> None:
        """All streams fail: the server's process is gone."""
        replies, self._replies = self._replies, {}
        for number, waiting in replies.items():
            if not waiting.done():
                waiting.set_result(StreamEnded(number, WorkerLost("the server stops")))

    def _ask(self, number: int, wanted: object) -> "asyncio.Future[Reply]":
        waiting = self._replies[number] = asyncio.get_running_loop().create_future()
        self.send(wanted)
        return waiting

    def _report_soon(self) -> None:
        if self._n_refused == 0 and not self._first_audio:
            asyncio.get_running_loop().call_later(REPORT_S, self._report)

    def _report(self) -> None:
        self.send(StreamReport(self._n_refused, self._first_audio))
        self._n_refused, self._first_audio = 0, []
