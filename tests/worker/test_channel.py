"""Messages on a channel arrive whole and in order, each with its own descriptor, or not at all."""

import os
import pickle
import socket
import threading

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
