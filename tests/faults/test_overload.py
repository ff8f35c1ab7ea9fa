"""More requests than can be served, a clock that steps, and labels that a client could multiply."""

import asyncio
import re
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.faults.limited_server import TEXT, LimitedServer, limited_server

pytestmark = [pytest.mark.process, pytest.mark.server]

LONG = TEXT * 12
MAX_QUEUE = 40


def test_a_thousand_requests_at_once_are_served_or_refused_with_a_time_to_retry(tmp_path: Path) -> None:
    async def send(client: httpx2.AsyncClient) -> httpx2.Response:
        return await client.post("/v1/audio/speech", json={"input": TEXT, "response_format": "pcm"})

    async def send_all(n: int, url: str) -> list[httpx2.Response]:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
            sending = [asyncio.create_task(send(client)) for _ in range(n)]
            while not all(task.done() for task in sending):
                assert (await client.get("/health/workers")).json()["queueSize"] <= MAX_QUEUE
            return [task.result() for task in sending]

    with limited_server(tmp_path, "--max-queue", str(MAX_QUEUE), "--cache-mb", "0", limit="-n 4096") as server:
        expected, memory = server.speak().content, server.memory()
        answers = asyncio.run(send_all(1000, server.url))
        assert Counter(answer.status_code for answer in answers).keys() == {200, 429}
        for answer in answers:
            if answer.status_code == 429:
                assert int(answer.headers["retry-after"]) >= 1
            else:
                assert answer.content == expected
        assert server.memory() < memory + 60e6
        assert server.speak().content == expected
        assert not server.errors()


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_stream_is_whole_when_the_clock_steps(tmp_path: Path, step_s: float) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    with limited_server(tmp_path, "--cache-mb", "0", TONE_CLOCK=str(clock)) as server:
        expected = server.speak(LONG).content
        job = server.client.post("/v1/jobs", json={"text": LONG, "format": "wav"}).json()
        body = {"input": LONG, "response_format": "pcm"}
        with server.client.stream("POST", "/v1/audio/speech", json=body) as response:
            pieces = response.iter_raw()
            first = next(pieces)
            clock.write_text(str(step_s))
            assert server.client.get("/readyz").status_code == 200
            assert first + b"".join(pieces) == expected
        assert server.speak(LONG).content == expected
        while (state := server.client.get(f"/v1/jobs/{job['id']}").json()["state"]) in ("queued", "running"):
            pass
        assert state == "done"
        assert not server.errors()


def test_no_client_can_add_labels_to_the_metrics(server: LimitedServer) -> None:
    def send(n: int) -> None:
        client = server.client
        for body in ({"voice": f"af_sky({n})+af_bella"}, {"model": f"m{n}"}, {"voice": f"v{n}"}, {"language": f"l{n}"}):
            client.post("/v1/audio/speech", json={"input": f"deep {n}", "response_format": "pcm", **body})
        client.get(f"/nothing/{n}", headers={"authorization": f"Bearer sk-{n}"})
        client.get(f"/v1/jobs/{n}")
        client.request(f"METHOD{n}", f"/nothing/{n}")
        client.post(f"/v1/text-to-speech/voice{n}", json={"text": "deep"})

    def series() -> set[str]:
        lines = server.client.get("/metrics").text.splitlines()
        return {re.sub(r" \S+$", "", line) for line in lines if not line.startswith("#")}

    send(0)
    before = series()
    for n in range(1, 20):
        send(n)
    assert series() == before
