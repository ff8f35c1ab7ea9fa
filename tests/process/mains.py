"""Main functions of children that do everything wrong, and of one that does not."""

import os
import signal
import socket
import time
from typing import Any

from tutti.process.link import ChildEnd


def echoes(end: socket.socket, *_: Any) -> None:
    """Answer each message with the same, but: sleep for ever at "hang", send half a message at "half", die at "die"."""
    channel = ChildEnd(end)
    channel.send("ready")
    try:
        while True:
            match message := channel.receive():
                case "hang":
                    time.sleep(3600)
                case "half":
                    end.send(b"\1\0\0")
                    time.sleep(3600)
                case "die":
                    os.kill(os.getpid(), signal.SIGSEGV)
                case _:
                    channel.send(message)
    except (EOFError, ConnectionError):
        pass


def dies_at_its_start(end: socket.socket, *_: Any) -> None:
    os._exit(3)


def is_silent(end: socket.socket, *_: Any) -> None:
    """Neither read nor answer, nor notice that the parent closes its end."""
    time.sleep(3600)


def sends_half(end: socket.socket, *_: Any) -> None:
    end.send(b"\1\0\0")
    time.sleep(3600)


def sends_nonsense(end: socket.socket, *_: Any) -> None:
    end.send(b"\1\0\0\0" * 100)
    time.sleep(3600)


def closes_its_end(end: socket.socket, *_: Any) -> None:
    end.close()
    time.sleep(3600)


WRONG = (dies_at_its_start, is_silent, sends_half, sends_nonsense, closes_its_end)
