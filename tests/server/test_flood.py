"""Overload and bad connections: requests are refused or cut with a reason, and every one is counted."""

import asyncio
import logging
import random
import re
import signal
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from select import select

import httpx2
import pytest

from tests.fakes import FakeEngine, Gate, GatedModel, silent_voices, tone_engine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, serving
from tests.server.test_serve import process
from tests.server.test_streaming import raw
from tutti.admission.loop_budget import RATIONS
from tutti.audio import FORMATS
from tutti.errors import QueueFull
from tutti.server.encoding import OpenStream

pytestmark = [pytest.mark.server, pytest.mark.process]


def test_under_overload_some_are_served_correctly_and_the_rest_get_429(tmp_path: Path) -> None:
    model, n = GatedModel(gate=Gate(n_permits=0)), 150
    engine = tone_engine(silent_voices(tmp_path), lambda: model, max_queue=20)
    with serving(engine) as server:

        async def send_all() -> list[httpx2.Response]:
            limits = httpx2.Limits(max_connections=None)
            async with httpx2.AsyncClient(base_url=server.url, timeout=120, limits=limits) as client:
                tasks = [
                    asyncio.create_task(
                        client.post("/v1/audio/speech", json={"input": SHORT, "response_format": "pcm"})
                    )
                    for _ in range(n)
                ]
                # While the model is held, all requests are refused but those in the queue and in the running batch.
                while sum(task.done() for task in tasks) < n - 40:
                    await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
                assert {task.result().status_code for task in tasks if task.done()} == {429}
                assert server.engine.stats()["queue_status"]["current_size"] <= 20
                model.gate.open()
                return await asyncio.gather(*tasks)

        answers = asyncio.run(send_all())
        served = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert len(served) >= 20
        for answer in refused:
            assert_error(answer, 429, "queue_full")
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.headers["x-should-retry"] == "true"
        alone = server.speak(response_format="pcm")  # and the server works as before
        assert {answer.content for answer in served} == {alone.content}
        assert server.get("/readyz").status_code == 200


def test_few_requests_start_per_turn_of_the_loop(fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    turn, starts = 0, Counter[int]()

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def count_start(*_: object) -> OpenStream:
        starts[turn] += 1
        raise QueueFull("full", retry_after_s=1)

    monkeypatch.setattr("tutti.server.responses.start_stream", count_start)
    with serving(fake_engine) as server, ExitStack() as stack:
        counting = asyncio.run_coroutine_threadsafe(count(), server.loop)
        with server.suspended():
            socks = [stack.enter_context(socket.create_connection(server.host_port)) for _ in range(64)]
            for sock in socks:
                sock.sendall(raw("/v1/audio/speech", {"input": SHORT}))
        for sock in socks:
            assert sock.recv(100).startswith(b"HTTP/1.1 429")
        counting.cancel()
    assert starts.total() == 64
    assert max(starts.values()) <= RATIONS["start"].per_turn


def test_five_hundred_unfinished_requests_do_not_block_others(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, idle_s=600) as server, ExitStack() as stack:
        for n in range(500):
            sock = stack.enter_context(socket.create_connection(server.host_port))
            request = raw("/v1/audio/speech", {"input": SHORT})
            sock.sendall(request[: 1 + n % (len(request) - 1)])
        assert server.speak().status_code == 200
        assert server.get("/readyz").status_code == 200


def test_a_server_that_cannot_write_to_any_disk_still_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent_voices(tmp_path)
    monkeypatch.setenv("TMPDIR", "/proc/nowhere")
    with process(tmp_path, limit="-f 0") as (server, url), httpx2.Client(base_url=url, timeout=60) as client:
        server.send_signal(signal.SIGUSR1)
        for format in FORMATS:
            assert client.post("/tts", json={"text": SHORT, "format": format}).status_code == 200
        assert client.post("/tts/batch", json={"requests": [{"text": LONG}] * 5}).status_code == 200
        with client.stream("POST", "/v1/audio/speech", json={"input": LONG * 5}) as response:
            assert sum(map(len, response.iter_raw())) > 50_000
        assert client.get("/metrics").status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


@contextmanager
def bad_connection(server: RunningServer, *, cut_after: int | None) -> Iterator[tuple[str, int]]:
    """A proxy that passes bytes on in small pieces of random size, and may end with a reset."""

    def serve() -> None:
        sizes, n_back = random.Random(7), 0
        with listening:
            client, _ = listening.accept()
        with client, socket.create_connection(server.host_port) as upstream:
            peer = {client: upstream, upstream: client}
            while peer:
                for sock in select(list(peer), [], [])[0]:
                    part = sock.recv(sizes.randint(1, 1500))
                    n_back += len(part) if sock is upstream else 0
                    if cut_after is not None and n_back > cut_after:
                        for end in (client, upstream):  # so that closing sends a reset
                            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                    if part:
                        peer[sock].sendall(part)
                    else:
                        peer.pop(sock).shutdown(socket.SHUT_WR)

    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("format", ["pcm", "mp3"])
def test_over_a_bad_connection_every_byte_arrives_or_the_break_is_counted(
    fake_engine: FakeEngine, caplog: pytest.LogCaptureFixture, format: str
) -> None:
    body = {"input": LONG, "response_format": format}
    with serving(fake_engine) as server, caplog.at_level(logging.WARNING):
        whole = server.speak(**body).content
        with bad_connection(server, cut_after=None) as address, httpx2.Client(timeout=60) as client:
            url = f"http://{address[0]}:{address[1]}/v1/audio/speech"
            assert client.post(url, json=body, headers={"connection": "close"}).content == whole
        for cut_after in (1, 300, 10_000):
            fake_engine.hold_from = 1  # the answer is incomplete when the connection breaks
            with bad_connection(server, cut_after=cut_after) as address, socket.create_connection(address) as sock:
                sock.sendall(raw("/v1/audio/speech", body))
                with suppress(ConnectionResetError):
                    while sock.recv(65536):
                        pass
            assert fake_engine.streams_cancelled.acquire(timeout=60)
        fake_engine.release()
        while '"left"' not in (metrics := server.get("/metrics").text) or server.app.state.service.lifecycle.n_active:
            pass
        outcomes = re.findall(r'http_answers_total{[^}]*outcome="(\w+)",route="/v1/audio/speech"[^}]*} (\S+)', metrics)
        assert sorted(outcomes) == [("done", "2.0"), ("left", "3.0")]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING and record.name != "asyncio"]
