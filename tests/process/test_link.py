"""Both ends of a link: messages arrive whole and in order, each with its own descriptor, however slowly one reads."""

import asyncio
import os
import resource
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.process.link import ChildEnd, Link
from tutti.process.messages import LOST, MessageReader, WithDescriptor, pack

sizes = st.lists(st.tuples(st.integers(0, 600_000), st.booleans()), max_size=8)


def open_file() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def check(received: Any, n: int, size: int, *, has_file: bool) -> None:
    """Whether this is the message of that number, with its file, if it has one."""
    descriptor = None
    if has_file:
        received, descriptor = received
        assert descriptor is not None
        assert os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))
        os.close(descriptor)
    assert received == (n, b"x" * size)


@given(messages=sizes)
def test_what_a_link_sends_arrives_at_a_childs_end(messages: list[tuple[int, bool]]) -> None:
    near, far = socket.socketpair()
    end, received = ChildEnd(far), list[Any]()

    def receive() -> None:
        for _ in messages:
            received.append(end.receive())

    async def send() -> None:
        link = Link(lambda _: None, lambda: None)
        link.open(near)
        for n, (size, has_file) in enumerate(messages):
            link.send((n, b"x" * size), open_file() if has_file else None)
        while link.has_unsent:
            await asyncio.sleep(0.001)
        link.close()

    receiver = threading.Thread(target=receive)
    receiver.start()
    asyncio.run(send())
    receiver.join()
    for n, (size, has_file) in enumerate(messages):
        check(received[n], n, size, has_file=has_file)
    with pytest.raises(EOFError):
        end.receive()
    far.close()


@given(messages=sizes)
def test_what_threads_of_a_child_send_arrives_at_a_link(messages: list[tuple[int, bool]]) -> None:
    near, far = socket.socketpair()
    end, received = ChildEnd(far), list[Any]()

    def send(n: int, size: int, *, has_file: bool) -> None:
        file = open_file() if has_file else None
        end.send((n, b"x" * size), file)
        if file is not None:
            os.close(file)

    async def receive() -> None:
        link = Link(received.append, lambda: None)
        link.open(near)
        while len(received) < len(messages):
            await asyncio.sleep(0.001)
        link.close()

    senders = [
        threading.Thread(target=send, args=(n, size), kwargs={"has_file": has_file})
        for n, (size, has_file) in enumerate(messages)
    ]
    for sender in senders:
        sender.start()
    asyncio.run(receive())
    for sender in senders:
        sender.join()
    for message in received:
        n = (message.message if isinstance(message, WithDescriptor) else message)[0]
        check(message, n, messages[n][0], has_file=messages[n][1])
    far.close()


def test_a_childs_end_tells_what_is_there_and_waits_only_if_it_is_told_to() -> None:
    near, far = socket.socketpair()
    end = ChildEnd(far)
    assert not end.readable()
    assert end.receive(wait=False) is None
    near.sendall(b"".join(pack("one").parts + pack("two").parts + pack("three").parts[:1]))
    assert end.readable()
    assert [end.receive(wait=False) for _ in range(3)] == ["one", "two", None]
    near.sendall(pack("three").parts[1])
    assert end.receive() == "three"
    end.shut_down()
    with pytest.raises(EOFError):
        end.receive()
    near.close()
    far.close()


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may lose a descriptor otherwise")
def test_a_descriptor_that_is_lost_is_missing_in_its_own_message_alone() -> None:
    near, far = socket.socketpair()
    reader, file = MessageReader(), open_file()
    for name in ("first", "second"):
        socket.send_fds(near, [b"".join(pack(name, carried=file).parts)], [file])
    data = b""
    for nothing_left in (True, False):
        with no_descriptor_left() if nothing_left else nullcontext():
            part, ancillary, flags, _ = far.recvmsg(1000, socket.CMSG_SPACE(4))
        reader.take_descriptors(ancillary, flags)
        data += part
    (first, lost), (second, descriptor) = reader.feed(data)  # at once, as the end of a long message and the next one
    assert (first, lost, second) == ("first", None, "second")
    assert descriptor is not None
    for each in (descriptor, file, near.detach(), far.detach()):
        os.close(each)


def test_a_message_whose_descriptor_cannot_be_sent_takes_none_of_another() -> None:
    reader, file = MessageReader(), open_file()
    reader.take_descriptors([(socket.SOL_SOCKET, socket.SCM_RIGHTS, file.to_bytes(4, sys.byteorder))], 0)
    data = b"".join(pack("lost", carried=LOST).parts + pack("whole", carried=file).parts)
    assert reader.feed(data) == [WithDescriptor("lost", None), WithDescriptor("whole", file)]
    os.close(file)


def test_a_link_notices_that_the_other_end_does_not_read_and_does_not_wait_for_it() -> None:
    async def run() -> None:
        near, far = socket.socketpair()
        link = Link(lambda _: None, lambda: None)
        link.open(near)
        link.send("small")
        assert not link.has_unsent
        for _ in range(3):
            link.send(b"x" * 1_000_000, open_file())
        assert link.has_unsent
        link.close()
        assert not link.has_unsent
        far.close()

    before = set(os.listdir("/dev/fd"))
    asyncio.run(run())
    assert set(os.listdir("/dev/fd")) == before
