"""More than can be served, and lines that are bad: refused or cut in plain words, everyone accounted for."""

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

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import LONG, SHORT, FakeEngine, RunningServer, assert_error, serving
from tests.server.test_live import Held
from tests.server.test_serve import process
from tests.server.test_streaming import raw
from tutti.audio import FORMATS
from tutti.errors import QueueFull
from tutti.server.encoding import OpenStream
from tutti.server.middleware.ingress import MAX_STARTS_PER_TURN


def test_of_a_flood_some_are_served_right_and_the_rest_told_when_to_come_again(tmp_path: Path) -> None:
    model, n = Held(), 150
    model.turns = threading.Semaphore(0)
    engine = tone_engine(silent_voices(tmp_path), lambda: model, max_queue=20)
    with serving(engine) as server:

        async def ask_all() -> list[httpx2.Response]:
            limits = httpx2.Limits(max_connections=None)
            async with httpx2.AsyncClient(base_url=server.url, timeout=120, limits=limits) as client:
                asked = [
                    asyncio.create_task(
                        client.post("/v1/audio/speech", json={"input": SHORT, "response_format": "pcm"})
                    )
                    for _ in range(n)
                ]
                # While nothing is spoken, all but those in the queue and the few in the model's hands are answered.
                while sum(task.done() for task in asked) < n - 40:
                    await asyncio.wait([task for task in asked if not task.done()], return_when=asyncio.FIRST_COMPLETED)
                assert {task.result().status_code for task in asked if task.done()} == {429}
                assert server.engine.stats()["queue_status"]["current_size"] <= 20
                assert model.turns
                model.turns.release(1000)
                return await asyncio.gather(*asked)

        answers = asyncio.run(ask_all())
        served = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert len(served) >= 20
        for answer in refused:
            assert_error(answer, 429, "queue_full")
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.headers["x-should-retry"] == "true"
        alone = server.speak(response_format="pcm")  # and it goes on as if nothing had been
        assert {answer.content for answer in served} == {alone.content}
        assert server.get("/readyz").status_code == 200


def test_a_crowd_that_comes_at_once_is_let_in_a_few_at_a_time(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, begun = 0, Counter[int]()

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def beginning(*_: object) -> OpenStream:
        begun[turn] += 1
        raise QueueFull("full", retry_after_s=1)

    monkeypatch.setattr("tutti.server.responses.start_stream", beginning)
    with serving(fake_engine) as server, ExitStack() as crowd:
        counting = asyncio.run_coroutine_threadsafe(count(), server.loop)
        with server.suspended():
            socks = [crowd.enter_context(socket.create_connection(server.host_port)) for _ in range(64)]
            for sock in socks:
                sock.sendall(raw("/v1/audio/speech", {"input": SHORT}))
        for sock in socks:
            assert sock.recv(100).startswith(b"HTTP/1.1 429")
        counting.cancel()
    assert begun.total() == 64
    assert max(begun.values()) <= MAX_STARTS_PER_TURN


def test_five_hundred_who_never_finish_their_sentence_hold_up_nobody(fake_engine: FakeEngine) -> None:
    with serving(fake_engine, idle_s=600) as server, ExitStack() as crowd:
        for n in range(500):
            sock = crowd.enter_context(socket.create_connection(server.host_port))
            sock.sendall(raw("/v1/audio/speech", {"input": SHORT})[: 1 + n % 150])
        assert server.speak().status_code == 200
        assert server.get("/readyz").status_code == 200


def test_a_server_that_cannot_write_a_byte_to_any_disk_serves_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def bad_line(server: RunningServer, *, cut_after: int | None) -> Iterator[tuple[str, int]]:
    """A way to the server that passes bytes on in odd little pieces, and may break off with a reset."""

    def serve() -> None:
        odd, n_back = random.Random(7), 0
        with listening:
            client, _ = listening.accept()
        with client, socket.create_connection(server.host_port) as upstream:
            peer = {client: upstream, upstream: client}
            while peer:
                for sock in select(list(peer), [], [])[0]:
                    part = sock.recv(odd.randint(1, 1500))
                    n_back += len(part) if sock is upstream else 0
                    if cut_after is not None and n_back > cut_after:
                        for end in (client, upstream):  # so that closing resets
                            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                    if part:
                        peer[sock].sendall(part)
                    else:
                        peer.pop(sock).shutdown(socket.SHUT_WR)

    listening = socket.create_server(("127.0.0.1", 0))
    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    yield listening.getsockname()
    serving.join(60)
    assert not serving.is_alive()


@pytest.mark.parametrize("format", ["pcm", "mp3"])
def test_over_a_bad_line_every_byte_comes_or_the_break_is_counted(
    fake_engine: FakeEngine, caplog: pytest.LogCaptureFixture, format: str
) -> None:
    body = {"input": LONG, "response_format": format}
    with serving(fake_engine) as server, caplog.at_level(logging.WARNING):
        whole = server.speak(**body).content
        with bad_line(server, cut_after=None) as place, httpx2.Client(timeout=60) as client:
            url = f"http://{place[0]}:{place[1]}/v1/audio/speech"
            assert client.post(url, json=body, headers={"connection": "close"}).content == whole
        for cut_after in (1, 300, 10_000):
            fake_engine.hold_from = 1  # it is still being made when the line breaks
            with bad_line(server, cut_after=cut_after) as place, socket.create_connection(place) as sock:
                sock.sendall(raw("/v1/audio/speech", body))
                with suppress(ConnectionResetError):
                    while sock.recv(65536):
                        pass
            assert fake_engine.streams_cancelled.acquire(timeout=60)
        fake_engine.release()
        while '"left"' not in (counted := server.get("/metrics").text) or server.app.state.service.lifecycle.n_active:
            pass
        told = re.findall(r'http_answers_total{[^}]*outcome="(\w+)",route="/v1/audio/speech"[^}]*} (\S+)', counted)
        assert sorted(told) == [("done", "2.0"), ("left", "3.0")]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING and record.name != "asyncio"]
