"""Replicas behind Ray Serve: the same answers as the plain server, and nothing lost when a part of the cluster dies."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.cluster.local_cluster import LocalCluster
from tests.cluster.tones import slow_tone_engine
from tests.server.harness import LONG, SHORT, RunningServer, serving
from tutti.settings import Settings

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]

CHANGING = {"date", "server", "server-timing", "x-request-id", "x-stream-id", "x-batch-size"}
STREAM = "/v1/audio/speech"
SENTENCE = "The old bridge stands still under the water tonight and runs deep."  # one chunk: others depend on the load
LONG_BODY = {"input": LONG * 30, "response_format": "pcm"}  # its stream lasts for seconds


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=cluster.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def plain() -> Iterator[RunningServer]:
    with serving(slow_tone_engine(Settings(), 0.02)) as server:
        yield server


def metric(client: httpx2.Client, name: str, **labels: str) -> dict[str, float]:
    """The values of a metric by replica."""
    values: dict[str, float] = {}
    for line in client.get("/metrics").text.splitlines():
        if line.startswith(f"{name}{{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
            replica = line.partition('replica="')[2].partition('"')[0]
            values[replica] = values.get(replica, 0.0) + float(line.rpartition(" ")[2])
    return values


def wait_until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.1)


REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "stream": ("POST", STREAM, {"json": {"input": SENTENCE, "response_format": "pcm"}}),
    "whole": ("POST", STREAM, {"json": {"input": SHORT, "response_format": "wav", "stream": False}}),
    "events": ("POST", STREAM, {"json": {"input": SHORT, "response_format": "pcm", "stream_format": "sse"}}),
    "wrong field": ("POST", STREAM, {"json": {"input": SHORT, "speed": 99}}),
    "no such voice": ("POST", STREAM, {"json": {"input": SHORT, "voice": "af_nobody"}}),
    "no such route": ("GET", "/nowhere", {}),
    "wrong method": ("GET", STREAM, {}),
    "probe": ("GET", "/readyz", {}),
    "head": ("HEAD", "/docs", {}),
    "another page": ("POST", STREAM, {"json": {"input": SHORT}, "headers": {"origin": "https://evil.example"}}),
    "another host": ("GET", "/v1/models", {"headers": {"host": "evil.example"}}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_answer_is_that_of_the_plain_server(client: httpx2.Client, plain: RunningServer, name: str) -> None:
    method, path, options = REQUESTS[name]
    expected, answer = (each.request(method, path, **options) for each in (plain.clients[0], client))
    assert (answer.status_code, answer.content) == (expected.status_code, expected.content)
    names = [name for name, _ in answer.headers.raw]
    assert len(names) == len({name.lower() for name in names}), "no header twice"
    fixed = [{k: v for k, v in each.headers.items() if k not in CHANGING} for each in (expected, answer)]
    assert fixed[0] == fixed[1]
    assert answer.headers.keys() - expected.headers.keys() <= {"server"}


def test_the_page_of_the_server_itself_may_use_it(client: httpx2.Client, cluster: LocalCluster) -> None:
    assert client.post(STREAM, json={"input": SHORT}, headers={"origin": cluster.url}).status_code == 200


def test_a_request_keeps_its_id(client: httpx2.Client) -> None:
    answer = client.post(STREAM, json={"input": SHORT}, headers={"x-request-id": "mine"})
    assert answer.headers.get_list("x-request-id") == ["mine"]


def test_metrics_are_those_of_all_replicas(client: httpx2.Client) -> None:
    wait_until(lambda: len(metric(client, "tutti_busy_ratio")) == 2 or len(metric(client, "tutti_rows_total")) == 2)
    for _ in range(5):  # whichever replica answers
        assert len(metric(client, "tutti_rows_total", outcome="spoken")) == 2


def test_a_client_that_leaves_is_booked_as_that(client: httpx2.Client, cluster: LocalCluster) -> None:
    def count(outcome: str) -> float:
        return sum(metric(client, "tutti_http_answers_total", route=STREAM, outcome=outcome).values())

    left, cut = count("left"), count("cut")
    with httpx2.Client(base_url=cluster.url) as leaving, leaving.stream("POST", STREAM, json=LONG_BODY) as answer:
        next(answer.iter_raw())
    wait_until(lambda: count("left") == left + 1)
    assert count("cut") == cut


def test_a_job_is_found_at_every_replica(client: httpx2.Client) -> None:
    id = client.post("/v1/jobs", json={"text": LONG, "format": "wav"}).json()["id"]
    route, before = "/v1/jobs/{id}", metric(client, "tutti_http_answers_total", route="/v1/jobs/{id}")

    def asked() -> bool:
        assert client.get(f"/v1/jobs/{id}").status_code == 200
        counts = metric(client, "tutti_http_answers_total", route=route)
        return sum(counts[replica] > before.get(replica, 0) for replica in counts) == 2

    wait_until(asked)
    wait_until(lambda: client.get(f"/v1/jobs/{id}").json()["state"] == "done")
    assert len({client.get(f"/v1/jobs/{id}/audio").content for _ in range(6)}) == 1
    assert client.delete(f"/v1/jobs/{id}").status_code == 200


def test_the_ports_of_the_replicas_need_the_token(cluster: LocalCluster) -> None:
    import grpc
    import psutil

    ports = [
        connection.laddr.port
        for pid in cluster.replica_pids()
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert ports
    answers = []
    for port in ports:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/ray.serve.ASGIService/HandleRequest")
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", timeout=10)
            answers.append(caught.value.code())
    assert set(answers) == {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNIMPLEMENTED}  # the latter: of Ray itself
    assert answers.count(grpc.StatusCode.UNAUTHENTICATED) == len(cluster.replica_pids())


@dataclass
class Result:
    sent_s: float
    done_s: float
    status: int  # 0: no answer
    whole: bool


class Load:
    """Short requests at a steady rate from a thread, each on a connection of its own."""

    def __init__(self, url: str, per_s: float) -> None:
        self._url, self._per_s = url, per_s
        self.results: list[Result] = []
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(60)

    async def _run(self) -> None:
        tasks = []
        while not self._stop.is_set():
            tasks.append(asyncio.create_task(self._request()))
            await asyncio.sleep(1 / self._per_s)
        await asyncio.gather(*tasks)

    async def _request(self) -> None:
        result = Result(time.monotonic(), 0.0, 0, whole=False)
        self.results.append(result)
        with suppress(httpx2.HTTPError):
            async with (
                httpx2.AsyncClient(timeout=60) as client,
                client.stream("POST", self._url + STREAM, json={"input": SHORT, "response_format": "pcm"}) as answer,
            ):
                result.status = answer.status_code
                async for _ in answer.aiter_raw():
                    pass
                result.whole = answer.status_code == 200
        result.done_s = time.monotonic()

    def failed(self, from_s: float = 0.0) -> list[Result]:
        """The requests sent since then that were neither answered whole nor refused honestly."""
        return [each for each in self.results if each.sent_s >= from_s and not each.whole and each.status != 429]


def stream_long(url: str, started: list[str]) -> tuple[int, bool]:
    """Read a long stream: its bytes, and whether it ended as it should. Adds to `started` with its first audio.

    A busy machine may refuse it with 429; then it is sent again, as clients should.
    """
    n_bytes, status = 0, 429
    try:
        while status == 429:
            with httpx2.Client(timeout=120) as client, client.stream("POST", url + STREAM, json=LONG_BODY) as answer:
                status = answer.status_code
                for piece in answer.iter_raw() if status == 200 else ():
                    if n_bytes == 0:
                        started.append(url)
                    n_bytes += len(piece)
    except httpx2.HTTPError:
        return n_bytes, False
    return n_bytes, status == 200


def is_whole(expected: int, n_bytes: int, ended: bool) -> bool:
    """Whether a stream is complete. Where it is cut into chunks, and so its pauses, depend on the load."""
    return ended and abs(n_bytes - expected) < 0.05 * expected


async def speak_on_a_socket(url: str, seconds: float) -> bool:
    """Send a text sentence by sentence for so long; whether all audio came."""
    try:
        async with connect(f"ws://{url.removeprefix('http://')}/v1/audio/speech/stream", max_size=None) as socket:
            until_s = time.monotonic() + seconds
            while time.monotonic() < until_s:
                await socket.send(json.dumps({"type": "input.text", "text": LONG}))
                await socket.send(json.dumps({"type": "input.done"}))
                done = False
                while not done:
                    message = await socket.recv()
                    done = isinstance(message, str) and json.loads(message)["type"] == "session.done"
                await asyncio.sleep(0.2)
            return True
    except ConnectionClosed:
        return False


def in_threads(n: int, function: Callable[[], Any]) -> tuple[list[Any], list[threading.Thread]]:
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(function())) for _ in range(n)]
    for thread in threads:
        thread.start()
    return results, threads


def test_an_update_breaks_neither_streams_nor_websockets(cluster: LocalCluster, client: httpx2.Client) -> None:
    pids, load = set(cluster.replica_pids()), Load(cluster.url, 4)
    n_bytes = len(client.post(STREAM, json=LONG_BODY).content)
    with load.running():
        started: list[str] = []
        streams, stream_threads = in_threads(4, lambda: stream_long(cluster.url, started))
        sockets, socket_threads = in_threads(2, lambda: asyncio.run(speak_on_a_socket(cluster.url, 8)))
        wait_until(lambda: len(started) == 4)
        cluster.deploy(cache_mb=63)
        for thread in (*stream_threads, *socket_threads):
            thread.join(120)
    assert all(is_whole(n_bytes, *stream) for stream in streams), streams
    assert len(streams) == 4
    assert sockets == [True, True]
    assert load.results
    assert load.failed() == []
    assert not pids & set(cluster.replica_pids()), "every replica is new"


@pytest.mark.parametrize("part", ["replica", "node"])
def test_new_requests_survive_a_death(cluster: LocalCluster, client: httpx2.Client, part: str) -> None:
    n_bytes, load = len(client.post(STREAM, json=LONG_BODY).content), Load(cluster.url, 4)
    with load.running():
        started: list[str] = []
        streams, threads = in_threads(4, lambda: stream_long(cluster.url, started))
        wait_until(lambda: len(started) == 4)
        pids, killed_s = set(cluster.replica_pids()), time.monotonic()
        if part == "replica":
            cluster.kill_replica()
        else:
            cluster.kill_node()
            cluster.add_node()
        cluster.wait_for_new_replica(pids, timeout_s=30)  # on two idle cores 5 to 8 s
        for thread in threads:
            thread.join(120)
        time.sleep(1)
    assert len(streams) == 4
    assert all(is_whole(n_bytes, *stream) for stream in streams if stream[1])
    assert any(not whole for _, whole in streams), "the streams of the dead replica broke visibly"
    assert any(whole for _, whole in streams), f"those of the other did not: {streams}"
    assert load.failed(killed_s + 1) == []
    assert len(load.failed(killed_s - 30)) <= 4, "what was under way when it died"
