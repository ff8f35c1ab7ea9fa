"""A TCP proxy that makes a connection bad: slow, in small pieces, reset, or closed in one direction."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from select import select

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset


@dataclass(frozen=True, slots=True)
class BadConnection:
    """What happens to each connection. Bytes are counted from the server to the client."""

    latency_s: float = 0.0  # before each piece
    max_piece: int = 65_536  # bytes; pieces have a random size up to this
    reset_after: int | None = None  # bytes of the answer
    half_close: bool = False  # end the direction to the server as soon as the request was sent


@contextmanager
def fault_proxy(upstream: tuple[str, int], bad: BadConnection) -> Iterator[tuple[str, int]]:
    """Yield the address of a proxy to `upstream`."""
    listening = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                threads.append(threading.Thread(target=_pass_on, args=(client, upstream, bad), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listening.getsockname()
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join(10)
        for thread in threads:
            thread.join(30)


def _pass_on(client: socket.socket, upstream: tuple[str, int], bad: BadConnection) -> None:
    sizes, n_back = random.Random(7), 0
    with client, socket.create_connection(upstream) as server, suppress(OSError):
        peer = {client: server, server: client}
        while peer:
            for sock in select(list(peer), [], [])[0]:
                part = sock.recv(sizes.randint(1, bad.max_piece))
                time.sleep(bad.latency_s)
                n_back += len(part) if sock is server else 0
                if bad.reset_after is not None and n_back > bad.reset_after:
                    for end in (client, server):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    return
                if part:
                    peer[sock].sendall(part)
                    if sock is client and bad.half_close:
                        server.shutdown(socket.SHUT_WR)
                        del peer[client]
                        peer.setdefault(server, client)
                else:
                    peer.pop(sock).shutdown(socket.SHUT_WR)
