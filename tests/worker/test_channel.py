"""Messages on a line arrive whole and in order, each with its own descriptor, or not at all."""

import os
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.worker.channel import Channel


def lines() -> tuple[Channel, Channel]:
    here, there = socket.socketpair()
    return Channel(here), Channel(there)


@given(st.lists(st.tuples(st.integers(0, 600_000), st.booleans()), max_size=8))
def test_what_is_sent_arrives_in_order_with_what_came_along(messages: list[tuple[int, bool]]) -> None:
    here, there = lines()
    files = [os.open(os.devnull, os.O_RDONLY) if along else None for _, along in messages]

    def send() -> None:
        for i, ((size, _), file) in enumerate(zip(messages, files, strict=True)):
            here.send((i, b"x" * size), file)

    sender = threading.Thread(target=send)
    sender.start()
    for i, (size, along) in enumerate(messages):
        message, file = there.receive(timeout_s=30.0)
        assert message == (i, b"x" * size)
        assert (file is not None) == along
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
def test_a_message_that_breaks_off_is_no_message(n_bytes: int) -> None:
    whole, there = socket.socketpair()
    Channel(whole).send("a message of some length")
    begun = there.recv(1 << 16)[:n_bytes]
    here, there_too = socket.socketpair()
    here.sendall(begun)
    line = Channel(there_too)
    with pytest.raises(TimeoutError):
        line.receive(timeout_s=0.001)
    for end in (whole, there, here):
        end.close()
    line.close()


def test_whoever_does_not_read_is_not_waited_for_for_ever() -> None:
    here, there = lines()
    with pytest.raises(TimeoutError):
        here.send(b"x" * 10_000_000, timeout_s=0.001)
    here.close()
    there.close()
