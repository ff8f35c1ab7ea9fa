"""Streams over a link: the same speech, errors and cancellations as from the engine itself."""

import asyncio
import gc
import os
import pickle
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEngine, silent_voices
from tutti.admission.ticket import Ticket
from tutti.engine.request import StreamRequest
from tutti.errors import InvalidInput, NothingToSpeak, QueueFull, TuttiError
from tutti.process.link import Link
from tutti.process.messages import pack
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.errors import RateLimited
from tutti.server.front.messages import EngineState, NextSpeech, SpeechReady
from tutti.server.front.remote_engine import RemoteEngine
from tutti.server.front.stream_server import StreamServer
from tutti.speech import Speech, SpeechParams, Timing, WordTime
from tutti.worker.samples import RowFormat, map_samples, write_samples

TEXT = "The first of them. The second one is longer. And there is a third sentence."
PARAMS = SpeechParams("af_heart", lexicon={"tutti": "tˈuti"})


def speech_ready(number: int, row: list[int], *, shared: bool) -> SpeechReady:
    samples = np.array(row, np.int16)
    if shared:
        descriptor = write_samples([np.zeros(5, np.int16), samples])
        samples = cast(Any, map_samples(descriptor, [RowFormat(5, is_pcm=True), RowFormat(len(row), is_pcm=True)])[1])
        os.close(descriptor)
    return SpeechReady(number, Speech(cast(Any, samples), (), (0, number)))


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


async def deliver(messages: list[Any], received: list[Any], buffer_bytes: int) -> None:
    """Send messages over a link whose socket holds so many bytes."""
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    sender, receiver = Link(lambda _: None, lambda: None), Link(received.append, lambda: None)
    sender.open(near)
    for message in messages:
        sender.send(message)
    receiver.open(far)
    while len(received) < len(messages):
        await asyncio.sleep(0)
    sender.close()
    receiver.close()


def test_a_speech_loses_nothing_on_its_way() -> None:
    """Its pickled form names each field by hand."""
    words = (WordTime("deep", 0.0, 0.5, (0, 4)),)
    timing = Timing(0.1, 0.2, 0.3, 0.4, 5, 6.0)
    assert all(getattr(timing, each.name) != each.default for each in fields(Timing))
    speech = Speech(np.ones(3, np.float32), words, (1, 4), ("☃",), timing, ("a notice",))
    copy = pickle.loads(pickle.dumps(speech))
    for each in fields(Speech):
        assert np.array_equal(getattr(copy, each.name), getattr(speech, each.name)), each.name


short_rows = st.lists(st.integers(-32768, 32767), max_size=50)
long_rows = st.integers(0, 30_000).map(lambda n: list(range(n)))


@given(
    kinds=st.lists(st.none() | st.tuples(short_rows | long_rows, st.booleans()), max_size=8),
    buffer_bytes=st.sampled_from([1, 10_000, 1_000_000]),
)
@settings(max_examples=60, deadline=None)
def test_messages_arrive_whole_and_in_order_and_leave_no_descriptor(kinds: list[Any], buffer_bytes: int) -> None:
    before = open_descriptors()
    messages = [
        NextSpeech(n) if kind is None else speech_ready(n, kind[0], shared=kind[1]) for n, kind in enumerate(kinds)
    ]
    received = list[Any]()
    asyncio.run(deliver(messages, received, buffer_bytes))
    assert len(received) == len(messages)
    for message, copy in zip(messages, received, strict=True):
        assert type(copy) is type(message)
        assert copy.number == message.number
        if isinstance(message, SpeechReady):
            assert copy.speech.samples.dtype == np.int16
            assert np.array_equal(copy.speech.samples, message.speech.samples)
            assert copy.speech.span == message.speech.span
    messages.clear()
    message = copy = None
    assert open_descriptors() == before


def test_samples_in_shared_memory_are_not_sent_but_their_descriptor() -> None:
    async def run() -> None:
        near, far = socket.socketpair()
        link = Link(lambda _: None, lambda: None)
        link.open(near)
        for shared in (False, True):
            link.send(speech_ready(0, [1] * 20_000, shared=shared))
            data, descriptors, _, _ = socket.recv_fds(far, 1 << 20, 1)
            assert (len(data) > 40_000, len(descriptors)) == (not shared, int(shared))
            for descriptor in descriptors:
                os.close(descriptor)
        link.close()
        far.close()

    asyncio.run(run())


def test_a_link_ends_if_a_descriptor_does_not_arrive() -> None:
    async def run() -> None:
        near, far = socket.socketpair()
        is_lost = asyncio.Event()
        link = Link(lambda _: None, is_lost.set)
        link.open(near)
        far.sendall(b"".join(pack(speech_ready(0, [1, 2], shared=True), share=True).parts))
        await is_lost.wait()
        far.close()

    asyncio.run(run())


def test_what_waits_in_the_socket_can_be_answered_at_once() -> None:
    async def run() -> None:
        near, far = socket.socketpair()
        question = b"".join(pack(NextSpeech(7)).parts)
        far.send(question)
        link = Link(lambda message: link.send(message), lambda: None)
        link.open(near)
        assert far.recv(1 << 16) == question
        link.close()
        far.close()

    asyncio.run(run())


@pytest.fixture
def fake(tmp_path: Path) -> FakeEngine:
    return FakeEngine(silent_voices(tmp_path))


HangUp = Callable[[], None]


def run_linked(fake: FakeEngine, test: Callable[[RemoteEngine, HangUp], Awaitable[None]]) -> None:
    """Run a test with an engine behind a link, which it may close; afterwards neither end may have a stream."""

    async def run() -> None:
        await fake.start()
        near, far = socket.socketpair()
        remote = RemoteEngine(
            EngineState(ready=True, checkpoints=("kokoro",), batching_enabled=True), fake.refusals, fake.voices
        )

        def receive(message: object) -> None:
            streams.receive(cast(Any, message))

        server_link = Link(receive, lambda: streams.close())
        streams = StreamServer(cast(EngineProtocol, fake), server_link.send)
        server_link.open(far)
        link = Link(lambda reply: remote.receive(cast(Any, reply)), remote.lost)
        remote.send = link.send
        link.open(near)
        await test(remote, server_link.close)
        while streams._streams:
            await asyncio.sleep(0)
        assert not remote._replies
        link.close()
        server_link.close()
        await asyncio.sleep(0)

    asyncio.run(run())


async def speeches(stream: AsyncGenerator[Speech]) -> list[Speech]:
    async with aclosing(stream):
        return [speech async for speech in stream]


def test_speech_over_a_link_is_the_engines_own(fake: FakeEngine) -> None:
    async def test(remote: RemoteEngine, _: HangUp) -> None:
        direct = await speeches(fake.stream(StreamRequest(TEXT, PARAMS, Ticket(caller="c", id="i"))))
        linked = await speeches(remote.stream(StreamRequest(TEXT, PARAMS, Ticket(caller="c", id="i", max_start_s=3.0))))
        assert len(direct) == len(linked) > 1
        for one, other in zip(direct, linked, strict=True):
            assert np.array_equal(one.samples, other.samples)
            assert (one.words, one.span, one.dropped, one.notices) == (
                other.words, other.span, other.dropped, other.notices,
            )  # fmt: skip
        sent, received = fake.requests
        assert received["caller"] == sent["caller"]
        assert received["lexicon"] == {"tutti": "tˈuti"}
        assert received["max_start_s"] == 3.0

    run_linked(fake, test)


@pytest.mark.parametrize("text", ["One chunk is all.", TEXT])
def test_the_end_of_a_stream_comes_with_its_last_speech(fake: FakeEngine, text: str) -> None:
    """A stream of one chunk takes one message in each direction, so its answer can be sent at once."""

    async def test(remote: RemoteEngine, _: HangUp) -> None:
        asked, answers, send, receive = list[object](), list[object](), remote.send, remote.receive
        remote.send = lambda message: (asked.append(message), send(message))[1]
        remote.receive = lambda reply: (answers.append(reply), receive(reply))[1]  # type: ignore[method-assign]
        n_speeches = len(await speeches(remote.stream(StreamRequest(text, PARAMS))))
        assert n_speeches == (2 if text == TEXT else 1)
        assert len(asked) == len(answers) == n_speeches
        assert [cast(SpeechReady, answer).is_last for answer in answers] == [False] * (n_speeches - 1) + [True]

    run_linked(fake, test)


@pytest.mark.parametrize("text", ["One chunk is all.", TEXT])
def test_a_stream_is_one_task_of_the_engines_process(fake: FakeEngine, text: str) -> None:
    """A generator that is left before its end would be closed by a task of its own, for each stream."""

    async def test(remote: RemoteEngine, _: HangUp) -> None:
        loop, created = asyncio.get_running_loop(), list[str]()

        def note(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
            created.append(getattr(coroutine, "__qualname__", type(coroutine).__name__))
            return asyncio.Task(coroutine, loop=loop, **options)

        loop.set_task_factory(note)
        assert await speeches(remote.stream(StreamRequest(text, PARAMS)))
        for _ in range(10):
            await asyncio.sleep(0)
        loop.set_task_factory(None)
        assert created == ["StreamServer._speak"]

    run_linked(fake, test)


def test_an_error_after_the_last_letter_comes_after_the_speech_before_it(fake: FakeEngine) -> None:
    whole_stream = fake.stream

    async def failing_stream(*args: Any, **options: Any) -> AsyncGenerator[Speech]:
        async for speech in whole_stream(*args, **options):
            yield speech
        raise InvalidInput("at the very end")

    async def test(remote: RemoteEngine, _: HangUp) -> None:
        fake.stream = failing_stream  # type: ignore[method-assign]
        stream = remote.stream(StreamRequest(TEXT, PARAMS))
        assert len([await anext(stream) for _ in range(2)]) == 2
        with pytest.raises(InvalidInput):
            await anext(stream)

    run_linked(fake, test)


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("no such voice", param="voice"),
        NothingToSpeak("nothing", param="input", dropped=("☃",)),
        QueueFull("full", retry_after_s=3),
        RateLimited("too many", retry_after_s=7),
    ],
)
def test_an_error_keeps_its_type_and_its_fields(fake: FakeEngine, error: TuttiError) -> None:
    async def test(remote: RemoteEngine, _: HangUp) -> None:
        fake.fail_at, fake.error = 1, error
        with pytest.raises(type(error)) as raised:
            await speeches(remote.stream(StreamRequest(TEXT, PARAMS)))
        assert str(raised.value) == str(error)
        assert vars(raised.value) == vars(error)

    run_linked(fake, test)


def test_a_refusal_leaves_no_garbage_at_either_end(fake: FakeEngine) -> None:
    """A server that refuses a thousand streams a second would collect it all the time."""

    async def refuse(*_: Any, **__: Any) -> AsyncGenerator[Speech]:
        raise QueueFull("full", retry_after_s=3)
        yield

    fake.stream = refuse  # type: ignore[method-assign]

    async def test(remote: RemoteEngine, _: HangUp) -> None:
        refused = False
        try:
            await speeches(remote.stream(StreamRequest(TEXT, PARAMS, Ticket(max_start_s=1.0))))
        except QueueFull:
            refused = True
        assert refused

    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        run_linked(fake, test)
        gc.collect()
        assert not [each for each in gc.garbage if isinstance(each, QueueFull)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.mark.filterwarnings("ignore")
def test_a_bug_in_the_engine_is_an_internal_error_of_one_stream(fake: FakeEngine) -> None:
    async def test(remote: RemoteEngine, _: HangUp) -> None:
        fake.fail_at, fake.error = 1, RuntimeError("a secret of the server")
        with pytest.raises(TuttiError, match="internal error"):
            await speeches(remote.stream(StreamRequest(TEXT, PARAMS)))
        fake.fail_at = None
        assert await speeches(remote.stream(StreamRequest(TEXT, PARAMS)))

    run_linked(fake, test)


@pytest.mark.parametrize("n_taken", [0, 1])
def test_a_stream_that_is_closed_is_cancelled_in_the_engine(fake: FakeEngine, n_taken: int) -> None:
    async def test(remote: RemoteEngine, _: HangUp) -> None:
        fake.hold_from = n_taken
        stream = remote.stream(StreamRequest(TEXT, PARAMS))
        taking = asyncio.ensure_future(anext(stream))
        if n_taken:
            await taking
        else:
            while not fake.requests:
                await asyncio.sleep(0)
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        await stream.aclose()
        while not fake.streams_cancelled.acquire(blocking=False):
            await asyncio.sleep(0)

    run_linked(fake, test)


def test_the_engine_makes_no_more_than_is_taken(fake: FakeEngine) -> None:
    n_made = 0
    original = fake.stream

    async def counting(request: StreamRequest) -> AsyncGenerator[Speech]:
        nonlocal n_made
        async for speech in original(request):
            n_made += 1
            yield speech

    fake.stream = counting  # type: ignore[method-assign]

    async def test(remote: RemoteEngine, _: HangUp) -> None:
        stream = remote.stream(StreamRequest(TEXT, PARAMS))
        for n_taken in (1, 2):
            await anext(stream)
            for _ in range(50):
                await asyncio.sleep(0)
            assert n_made == n_taken
        await stream.aclose()

    run_linked(fake, test)


def test_streams_fail_when_the_link_is_closed_and_end_in_the_engine(fake: FakeEngine) -> None:
    async def test(remote: RemoteEngine, hang_up: HangUp) -> None:
        fake.hold_from = 1
        stream = remote.stream(StreamRequest(TEXT, PARAMS))
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        hang_up()
        with pytest.raises(TuttiError, match="stops"):
            await waiting
        while not fake.streams_cancelled.acquire(blocking=False):
            await asyncio.sleep(0)

    run_linked(fake, test)
