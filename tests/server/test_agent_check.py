"""HAProxy learns the state and the load of a server from one line, and no client can hurt the port."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import HEART, FakeEngine, GatedModel, tone_engine
from tutti.admission.ticket import Ticket
from tutti.engine.request import StreamRequest
from tutti.server.agent_check import agent_line, serve_agent_check, weight
from tutti.server.run import agent_check_listener, bind
from tutti.server.service import Service
from tutti.settings import Settings
from tutti.voices import Voices


@given(st.floats(0, 1000), st.floats(0, 1000), st.floats(0.01, 10))
def test_the_weight_falls_with_the_wait_and_is_never_zero(one_s: float, other_s: float, target_s: float) -> None:
    assert weight(0.0, target_s) == 100
    assert weight(0.1 * target_s, target_s) == 50
    assert 1 <= weight(one_s, target_s) <= 100
    if one_s <= other_s:
        assert weight(one_s, target_s) >= weight(other_s, target_s)


def test_the_line_says_down_up_and_drain(fake_engine: FakeEngine) -> None:
    service = Service.of(fake_engine, Settings())
    assert agent_line(service) == "down\n", "it loads"
    fake_engine.ready = True
    assert agent_line(service) == "up ready 100%\n"
    fake_engine.frontend_ready = False
    assert agent_line(service) == "down\n", "no text is read"
    fake_engine.frontend_ready = True
    service.lifecycle.draining = True
    assert agent_line(service) == "drain\n", "streams under way may end"


def test_a_server_with_waiting_streams_gets_fewer(voices: Voices) -> None:
    async def run() -> None:
        model = GatedModel("acoustic")
        async with tone_engine(voices, lambda: model, capped=True) as engine:
            service = Service.of(engine, Settings())
            with model.gate.closed():

                async def speak() -> None:
                    request = StreamRequest("The old bridge stands still.", HEART, Ticket(delivery="whole"))
                    async for _ in engine.stream(request):
                        pass

                tasks = [asyncio.create_task(speak()) for _ in range(8)]
                async with asyncio.timeout(60):
                    while len(engine.batchers[0]._rows) < 8:
                        await asyncio.sleep(0.001)
                percent = int(agent_line(service).removeprefix("up ready ").removesuffix("%\n"))
                assert percent == weight(engine.predicted_wait_s("whole"), engine.pacing.target_s) < 50
            await asyncio.gather(*tasks)

    asyncio.run(run())


@asynccontextmanager
async def agent_port(engine: FakeEngine) -> AsyncIterator[int]:
    settings = Settings(port=0)
    engine.ready = True
    with bind(settings) as sock:
        async with serve_agent_check(Service.of(engine, settings), sock):
            yield sock.getsockname()[1]


async def ask(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.server
def test_each_connection_gets_one_line_and_is_closed(fake_engine: FakeEngine) -> None:
    async def run() -> list[bytes]:
        async with agent_port(fake_engine) as port:
            return [await ask(port) for _ in range(3)]

    assert asyncio.run(run()) == [b"up ready 100%\n"] * 3


@pytest.mark.server
def test_clients_that_send_and_never_read_leave_nothing_behind(fake_engine: FakeEngine) -> None:
    async def run() -> None:
        async with agent_port(fake_engine) as port:
            await ask(port)
            n_before = len(os.listdir("/proc/self/fd"))
            hostile = []
            for _ in range(100):
                sock = socket.create_connection(("127.0.0.1", port))
                sock.setblocking(False)
                with suppress(OSError):  # it was closed already
                    sock.send(b"GET / HTTP/1.1\r\n" * 4096)
                hostile.append(sock)
                await asyncio.sleep(0)
            assert await ask(port) == b"up ready 100%\n"
            async with asyncio.timeout(60):
                while len(os.listdir("/proc/self/fd")) > n_before + len(hostile):  # their own ends stay open
                    await asyncio.sleep(0.001)
            for sock in hostile:
                sock.close()

    asyncio.run(run())


@pytest.mark.server
def test_a_port_in_use_fails_before_anything_is_loaded() -> None:
    with bind(Settings(port=0)) as taken:
        taken.listen()
        with (
            pytest.raises(Exception, match="cannot listen"),
            agent_check_listener(Settings(agent_check_port=taken.getsockname()[1])),
        ):
            pass
