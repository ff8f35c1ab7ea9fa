"""A whole engine around a model that misbehaves: every request ends once, and the healthy ones as in a clean run."""

import gc
import tempfile
import time
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.fakes import HEART, running, silent_voices, tone_engine
from tests.faults.misbehaving import BROKEN, NOT_A_NUMBER, RAISES, WRONG_LENGTH, MisbehavingModel
from tutti.admission.ticket import Delivery, Ticket
from tutti.engine.batcher import Batcher
from tutti.engine.request import StreamRequest
from tutti.engine.stream import Stream
from tutti.errors import NothingToSpeak, QueueFull, TuttiError

pytestmark = pytest.mark.slow

HEALTHY = ("Deep water runs still.", "The old stone bridge.\n\nUnder the water tonight it is deep. " * 3, "Oh no")
TEXTS = (*HEALTHY, *(f"The {letter}{letter} fails." for letter in (RAISES, NOT_A_NUMBER, WRONG_LENGTH, BROKEN)), "…")


@cache
def clean_run(text: str) -> bytes:
    """The samples of a text from an engine that works."""
    with tempfile.TemporaryDirectory() as folder, running(tone_engine(silent_voices(Path(folder)))) as engine:
        return engine.speak(text).samples.tobytes()


class EngineMachine(RuleBasedStateMachine):
    """Requests start, are left, and end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.engine = self.stack.enter_context(running(tone_engine(silent_voices(folder), MisbehavingModel)))
        self.requests: list[tuple[str, Delivery, Future[Any]]] = []
        self.ends: list[int] = []

    @rule(text=st.sampled_from(TEXTS), delivery=st.sampled_from(["live", "whole", "bulk"]))
    def speak(self, text: str, delivery: Delivery) -> None:
        number = len(self.requests)
        self.ends.append(0)

        async def request() -> bytes:
            try:
                stream = self.engine.engine.stream(StreamRequest(text, HEART, Ticket(delivery=delivery)))
                return b"".join([speech.samples.tobytes() async for speech in stream])
            finally:
                self.ends[number] += 1

        self.requests.append((text, delivery, self.engine.portal.start_task_soon(request)))

    @rule(n=st.integers(0, 30))
    def leave(self, n: int) -> None:
        if n < len(self.requests):
            self.requests[n][2].cancel()

    @rule(n=st.integers(0, 30))
    def wait(self, n: int) -> None:
        if n < len(self.requests):
            self.check(*self.requests[n])

    def check(self, text: str, delivery: Delivery, request: "Future[bytes]") -> None:
        if request.cancelled():
            return
        error = request.exception(60)
        if text in HEALTHY:
            assert error is None
            if delivery != "live":  # the chunks of a live text depend on the load
                assert request.result() == clean_run(text)
        else:
            assert isinstance(error, NothingToSpeak if text == "…" else TuttiError | ZeroDivisionError), error

    def teardown(self) -> None:
        try:
            for request in self.requests:
                self.check(*request)
            started = [n for n, (_, _, request) in enumerate(self.requests) if not request.cancelled()]
            assert [self.ends[n] for n in started] == [1] * len(started)
            assert max(self.ends, default=1) <= 1
            assert self.engine.engine.workers()["queueSize"] == 0
        finally:
            self.stack.close()


@pytest.mark.parametrize("is_refused", [False, True], ids=["left", "refused"])
def test_a_stream_that_ends_early_is_freed_without_the_garbage_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    """Its audio is in files; a garbage collection may come much later."""

    def refuse(*_: object) -> None:
        raise QueueFull("full", retry_after_s=1)

    async def leave() -> None:
        stream = engine.engine.stream(StreamRequest(HEALTHY[1] * 5, HEART))
        with suppress(QueueFull):
            await anext(stream)
            assert not is_refused
        await stream.aclose()

    if is_refused:
        monkeypatch.setattr(Batcher, "speak", refuse)
    with running(tone_engine(silent_voices(tmp_path))) as engine:
        gc.collect()
        gc.disable()
        try:
            engine.portal.call(leave)
            for _ in range(500):  # the engine's thread may still be in the last step of that call
                if not any(type(each) is Stream for each in gc.get_objects()):
                    break
                time.sleep(0.005)
            assert not any(type(each) is Stream for each in gc.get_objects())
        finally:
            gc.enable()


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
