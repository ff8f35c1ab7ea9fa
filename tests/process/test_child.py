"""A child process runs its function, leaves signals to its parent and says how it ended."""

import os
import signal
import socket

import psutil
import pytest

from tutti.process.child import ChildProcess

pytestmark = pytest.mark.process

GRACE_S = 10.0


def echo(end: socket.socket, suffix: bytes) -> None:
    while message := end.recv(100):
        end.sendall(message + suffix)


def end_by(end: socket.socket, signal_number: int, status: int) -> None:
    if signal_number:
        os.kill(os.getpid(), signal_number)
    end.close()
    os._exit(status)


def test_a_child_ignores_signals_and_ends_when_its_socket_closes() -> None:
    child = ChildProcess("echo", echo, b"!")
    process = psutil.Process(child.pid)
    child.socket.sendall(b"one")
    assert child.socket.recv(100) == b"one!"
    for ignored in (signal.SIGINT, signal.SIGTERM):
        os.kill(child.pid, ignored)
    child.socket.sendall(b"two")
    assert child.socket.recv(100) == b"two!"
    child.stop(GRACE_S)
    assert not process.is_running()
    child.kill()  # after the end it does nothing


@pytest.mark.parametrize(
    ("signal_number", "status", "cause"),
    [(signal.SIGKILL, 0, "SIGKILL"), (signal.SIGSEGV, 0, "died of SIGSEGV"), (0, 3, "ended with status 3")],
)
def test_the_cause_of_an_exit_is_named(signal_number: int, status: int, cause: str) -> None:
    child = ChildProcess("ends", end_by, signal_number, status)
    assert child.socket.recv(1) == b""
    assert cause in child.exit_cause()
    child.stop(0.0)


def test_a_child_that_cannot_be_started_leaves_no_descriptor_open() -> None:
    ChildProcess("echo", echo, b"").stop(GRACE_S)  # starts the resource tracker, which stays
    before = psutil.Process().num_fds()
    with pytest.raises(Exception, match="lambda"):
        ChildProcess("fails", lambda _: None)
    assert psutil.Process().num_fds() == before
