"""The memory and the disk that audio takes: both have a limit, and who meets it is told to come back."""

import threading

import httpx2
import pytest

from tests.faults.limited_server import TEXT, LimitedServer

pytestmark = [pytest.mark.process, pytest.mark.server]

PAUSES = "[pause:60s] deep " * 5  # 14 MB of PCM from 85 bytes


def test_whole_answers_share_one_budget_and_streams_go_on(server: LimitedServer) -> None:
    """Of this server: 40 MB for all, 20 MB for a caller, 16 MB for an answer."""
    before, answers = server.memory(), list[httpx2.Response]()

    def ask(n: int) -> None:
        body = {"input": f"{PAUSES} {n}", "response_format": "pcm", "stream": False}
        answers.append(httpx2.post(f"{server.url}/v1/audio/speech", json=body, timeout=120))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    assert server.speak().status_code == 200  # a stream
    for thread in threads:
        thread.join(120)
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) >= 4
    for answer in refused:
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "memory_full")
        assert int(answer.headers["retry-after"]) >= 1
    assert server.memory() < before + 120e6  # 8 x 14 MB, each with a copy, would be 224 MB more
    for _ in range(500):  # the last answers may still be on their way
        if server.metric("tutti_audio_held_bytes") <= 4.1e6:
            break
    assert server.metric("tutti_audio_held_bytes") <= 4.1e6  # the cache
    assert server.speak(PAUSES, stream=False).status_code == 200


def test_a_long_pause_of_a_stream_takes_little_memory(server: LimitedServer) -> None:
    """One minute of silence is handed over in pieces; what is held is never more than a few seconds."""
    body, before = {"input": PAUSES, "response_format": "pcm"}, server.metric("tutti_audio_held_bytes")
    with server.client.stream("POST", "/v1/audio/speech", json=body) as response:
        n_bytes, held = 0, list[float]()
        for piece in response.iter_raw():
            n_bytes += len(piece)
            if len(held) < 9:
                held.append(server.metric("tutti_audio_held_bytes"))
    assert n_bytes > 5 * 60 * 48_000
    assert max(held) > before  # it is counted
    assert max(held) < before + 60 * 48_000  # the first pause alone


def test_a_job_of_pauses_is_refused_by_its_true_size(server: LimitedServer) -> None:
    """2.6 kB of text with hours of pauses; the limit of this server is 20 MB for all jobs."""
    refused = server.client.post("/v1/jobs", json={"text": "[pause:60s] deep\n\n" * 130, "format": "wav"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (507, "storage_full")


def test_a_job_stops_at_the_limit_of_the_disk_and_can_be_resumed(server: LimitedServer) -> None:
    body = {"text": (TEXT * 20 + "\n\n") * 3, "format": "wav", "lexicon": {"deep": "very deep indeed " * 10}}
    job = server.client.post("/v1/jobs", json=body).json()
    while (state := server.client.get(f"/v1/jobs/{job['id']}").json())["state"] in ("queued", "running"):
        pass
    assert state["state"] == "paused"
    assert "TUTTI_MAX_JOBS_GB" in state["error"]["message"]
    assert server.client.delete(f"/v1/jobs/{job['id']}").status_code == 200
