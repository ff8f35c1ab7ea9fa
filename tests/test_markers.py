"""A test without a marker starts no process and no server; conftest.py sees to it."""

import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest


def run_process() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def start_child() -> None:
    multiprocessing.get_context("spawn").Process(target=print).start()


def fork() -> None:
    os.fork()


def listen() -> None:
    with socket.socket() as sock:
        sock.listen()


@pytest.mark.parametrize("start", [run_process, start_child, fork])
def test_a_pure_test_cannot_start_a_process(start: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"@pytest\.mark\.process"):
        start()


def test_a_pure_test_cannot_listen() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"@pytest\.mark\.server"):
        listen()


@pytest.mark.process
@pytest.mark.server
def test_a_marked_test_may_do_both() -> None:
    run_process()
    listen()
