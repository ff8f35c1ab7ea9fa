"""Messages on a channel arrive whole and in order, each with its own descriptor, or not at all."""

import os
import pickle
import select
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.speech import STYLE_SIZE, Prosody, Utterance
from tutti.worker.channel import Channel


def channels() -> tuple[Channel, Channel]:
    here, there = socket.socketpair()
    return Channel(here), Channel(there)


@given(st.lists(st.tuples(st.integers(0, 600_000), st.booleans()), max_size=8))
def test_messages_arrive_in_order_each_with_its_descriptor(messages: list[tuple[int, bool]]) -> None:
    here, there = channels()
    files = [os.open(os.devnull, os.O_RDONLY) if has_file else None for _, has_file in messages]

    def send() -> None:
        for i, ((size, _), file) in enumerate(zip(messages, files, strict=True)):
            here.send((i, b"x" * size), file)

    sender = threading.Thread(target=send)
    sender.start()
    for i, (size, has_file) in enumerate(messages):
        message, file = there.receive(timeout_s=30.0)
        assert message == (i, b"x" * size)
        assert (file is not None) == has_file
        if file is not None:
            assert os.path.samestat(os.fstat(file), os.stat(os.devnull))
            os.close(file)
    sender.join()
    for file in files:
        if file is not None:
            os.close(file)
    here.close()
    with pytest.raises(EOFError):
        there.receive()
    there.close()


@pytest.mark.parametrize("n_bytes", [1, 7, 8, 20])
def test_an_incomplete_message_is_not_received(n_bytes: int) -> None:
    sender, there = socket.socketpair()
    Channel(sender).send("a message of some length")
    start = there.recv(1 << 16)[:n_bytes]
    here, receiver = socket.socketpair()
    here.sendall(start)
    channel = Channel(receiver)
    with pytest.raises(TimeoutError):
        channel.receive(timeout_s=0.001)
    for end in (sender, there, here):
        end.close()
    channel.close()


def test_sending_to_an_end_that_does_not_read_times_out() -> None:
    here, there = channels()
    with pytest.raises(TimeoutError):
        here.send(b"x" * 10_000_000, timeout_s=0.001)
    here.close()
    there.close()


@pytest.mark.parametrize("dtype", ["<i8", "<i4", ">i8"])
def test_an_utterance_arrives_as_it_was(dtype: str) -> None:
    tokens, style = np.array([0, 5, 177, 0], dtype), np.linspace(-2, 2, STYLE_SIZE, dtype=np.float32)
    sent = Utterance(tokens, style, 1.3, 7, Prosody(2.0, 0.5, -1.0), 0.8)
    arrived = pickle.loads(pickle.dumps(sent))
    assert arrived.tokens.tolist() == tokens.tolist()
    assert np.array_equal(arrived.style, style)
    assert arrived.tokens.flags.writeable
    assert arrived.style.flags.writeable
    rest = "speed", "seed", "prosody", "pcm_volume"
    assert [getattr(arrived, name) for name in rest] == [getattr(sent, name) for name in rest]


def test_a_call_keeps_its_limit_whatever_another_thread_waits_for() -> None:
    """A worker's messages are sent by the event loop and received by a thread, each with a limit of its own."""
    end, raw = socket.socketpair()
    channel, errors = Channel(end), list[type[BaseException]]()

    def call(act: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                act()
            except (OSError, EOFError) as error:
                errors.append(type(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    sending = call(lambda: channel.send(b"x" * 20_000_000, timeout_s=0.2))
    select.select([raw], [], [])  # it has begun
    receiving = call(channel.receive)  # without a limit
    for _ in range(10):
        raw.recv(1_000_000, socket.MSG_WAITALL)  # the sender goes on, and then waits again
    sending.join(30)
    hangs = sending.is_alive()
    raw.close()
    for thread in (sending, receiving):
        thread.join()
    channel.close()
    assert not hangs
    assert TimeoutError in errors  # and the receiver, whose channel ended in the middle of a message, EOFError


@pytest.mark.parametrize("with_file", [False, True])
@pytest.mark.parametrize("n_bytes", [30, 3_000, 70_000])
def test_a_message_is_delivered_exactly_if_sending_it_raises_nothing(n_bytes: int, with_file: bool) -> None:
    """To an end that does not read for a while; one that arrived in part ends the channel."""
    here, there = channels()
    file = os.open(os.devnull, os.O_RDONLY) if with_file else None
    sent, received = 0, 0
    with suppress(TimeoutError):
        while True:
            here.send((sent, b"x" * n_bytes), file, timeout_s=0.01)
            sent += 1
    with suppress(TimeoutError, EOFError):
        while True:
            message, descriptor = there.receive(timeout_s=0.0)
            assert message == (received, b"x" * n_bytes)
            received += 1
            if descriptor is not None:
                os.close(descriptor)
    assert sent == received
    with suppress(BrokenPipeError):  # it ended; else the next one arrives whole
        here.send("more", timeout_s=0.0)
        assert there.receive(timeout_s=0.0)[0] == "more"
    if file is not None:
        os.close(file)
    here.close()
    there.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems promise less")
@given(st.lists(st.integers(0, 200_000), max_size=20))
def test_where_there_is_room_a_call_with_a_few_rows_is_sent_without_waiting(sizes: list[int]) -> None:
    here, there = channels()
    for size in sizes:
        if not here.has_room():
            break
        with suppress(TimeoutError, BrokenPipeError):  # one that arrives in part ends the channel
            here.send(b"x" * size, timeout_s=0.0)
    with suppress(BrokenPipeError):
        if here.has_room():
            here.send(b"x" * 24_000, timeout_s=0.0)  # four rows of 510 tokens with their styles
    here.close()
    there.close()
