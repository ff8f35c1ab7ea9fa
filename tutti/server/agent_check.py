"""The agent-check port for HAProxy: to each connection one line with the state and the weight of this server.

A connection is answered and closed in the same turn of the event loop. Nothing is read from it, so a client can neither
send too much nor keep a connection open.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from tutti.errors import Draining, NotReady
from tutti.server.service import Service

HALF_WEIGHT = 0.1  # share of the first-audio target: a predicted wait of so much halves the weight; smaller reacts more
KEEP_S = 0.02  # how long a line is used again, so that many connections cost little
BACKLOG = 16  # connections accepted in one turn of the event loop, and in the kernel; further ones are refused there


def agent_line(service: Service) -> str:
    """`drain`: finish what runs. `down`: no work. `up ready N%`: work, in proportion to N, 1 to 100."""
    try:
        service.lifecycle.check_processes()
    except Draining:
        return "drain\n"
    except NotReady:
        return "down\n"
    # Of a whole answer: a stream would go before those that wait, but the balancer sends both kinds.
    monitor = service.engine.monitor
    return f"up ready {weight(monitor.predicted_wait_s('whole'), monitor.target_s)}%\n"


def weight(wait_s: float, target_s: float) -> int:
    """Percent of the weight in the configuration; never 0, which would mean drained."""
    return max(1, round(100 / (1 + max(0.0, wait_s) / (HALF_WEIGHT * target_s))))


class AgentCheck(asyncio.Protocol):
    """Answers and closes each connection at once."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._line, self._made_s = b"", float("-inf")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._made_s + KEEP_S:
            self._line, self._made_s = agent_line(self._service).encode(), now
        connection = cast(asyncio.Transport, transport)
        connection.write(self._line)
        connection.close()


@asynccontextmanager
async def serve_agent_check(service: Service, sock: socket.socket) -> AsyncIterator[None]:
    """Answer on this socket, from the start until the last stream has ended."""
    check = AgentCheck(service)  # one for all connections: it keeps nothing of them
    server = await asyncio.get_running_loop().create_server(lambda: check, sock=sock, backlog=BACKLOG)
    try:
        yield
    finally:
        server.close()
