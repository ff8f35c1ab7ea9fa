"""A server whose HTTP is spoken by processes of its own: for its callers it is one server."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from websockets.sync.client import connect

from tests.faults.limited_server import TEXT, LimitedServer, limited_server, stop
from tests.server.harness import assert_error, wait_until

pytestmark = [pytest.mark.server, pytest.mark.process]

N_PROCESSES = 2
LONG = " ".join(f"{TEXT}Sentence {n} is here." for n in ("one", "two", "three", "four", "five", "six"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    folder = tmp_path_factory.mktemp("http-processes")
    with limited_server(folder, "--http-processes", str(N_PROCESSES)) as server:
        yield server
        assert not server.errors()


def http_processes(server: LimitedServer) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(server.process.pid).children():
        with suppress(psutil.NoSuchProcess):
            if child.name() == "tutti-http" and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
    return found


def speak_alone(server: LimitedServer, text: str = TEXT, **body: Any) -> httpx2.Response:
    """Speak over a connection of its own, so that any of the processes may get it."""
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        return client.post("/v1/audio/speech", json={"input": text, "response_format": "pcm", **body})


def request_bytes(method: str, path: str, body: Any = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "content-type: application/json"]
    lines += [f"content-length: {len(content)}"] if content else []
    return "\r\n".join([*lines, "", ""]).encode() + content


def test_every_process_answers_and_all_answers_are_equal(server: LimitedServer) -> None:
    wait_until(lambda: len(http_processes(server)) == N_PROCESSES)  # a server is ready with the first of them
    before = {child.pid: sum(child.cpu_times()[:2]) for child in http_processes(server)}
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: speak_alone(server), range(40)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    after = {child.pid: sum(child.cpu_times()[:2]) for child in http_processes(server)}
    assert all(after[pid] > before[pid] for pid in before)


@pytest.mark.parametrize("body", [{"stream": False}, {"stream": False, "response_format": "wav"}, {}])
def test_whole_and_streamed_answers_have_the_same_audio(server: LimitedServer, body: dict[str, Any]) -> None:
    streamed, whole = speak_alone(server).content, speak_alone(server, **body).content
    assert whole[-len(streamed) :] == streamed


def test_words_come_with_the_audio_as_events(server: LimitedServer) -> None:
    answer = speak_alone(server, "The old bridge stands.", stream_format="sse", word_timestamps=True)
    events = [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data: ")]
    words = [word["word"] for event in events if event["type"] == "speech.audio.words" for word in event["words"]]
    assert words == ["The", "old", "bridge", "stands."]
    assert events[-1]["type"] == "speech.audio.done"


def test_errors_are_those_of_one_process(server: LimitedServer) -> None:
    assert_error(speak_alone(server, ""), 400, "nothing_to_speak", "input")
    assert_error(speak_alone(server, voice="nobody"), 400, "voice_not_found", "voice")
    assert_error(speak_alone(server, speed=99), 400, "invalid_input", "speed")


def test_other_routes_are_answered_on_the_same_port(server: LimitedServer) -> None:
    for path in ("/readyz", "/v1/models", "/v1/audio/voices", "/health/batching", "/metrics", "/nothing"):
        with httpx2.Client(base_url=server.url) as client:
            assert client.get(path).status_code == (404 if path == "/nothing" else 200), path


def test_a_connection_may_ask_for_anything_in_any_order(server: LimitedServer) -> None:
    audio = speak_alone(server).content
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        for _ in range(3):
            assert client.post("/v1/audio/speech", json={"input": TEXT, "response_format": "pcm"}).content == audio
            assert client.get("/readyz").json() == {"status": "ready"}


def test_requests_that_are_sent_ahead_are_answered_in_order(server: LimitedServer) -> None:
    body = {"input": TEXT, "response_format": "pcm", "stream": False}
    speech = request_bytes("POST", "/v1/audio/speech", body)
    with socket.create_connection(server.host_port) as sock:
        sock.settimeout(60)
        sock.sendall(speech + request_bytes("GET", "/readyz") + speech + request_bytes("GET", "/v1/test"))
        received = b""
        while not received.endswith(b'{"status":"ok"}') and (part := sock.recv(1 << 16)):
            received += part
    heads = [part.partition(b"\r\n")[0] for part in received.split(b"HTTP/1.1 ")[1:]]
    assert heads == [b"200 OK"] * 4
    assert received.index(b'{"status":"ready"}') < received.rindex(b"audio/pcm") < received.index(b'{"status":"ok"}')


def test_a_large_body_for_another_route_arrives_whole(server: LimitedServer) -> None:
    text = "deep " * 60_000
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        answer = client.post("/dev/phonemize", json={"text": text[:4000], "padding": text})
    assert answer.status_code == 200, answer.text[:300]


def test_a_websocket_is_spoken_by_the_server(server: LimitedServer) -> None:
    with connect(f"ws{server.url.removeprefix('http')}/v1/audio/speech/stream") as live:
        live.send(json.dumps({"type": "input.text", "text": "The old bridge stands. "}))
        live.send(json.dumps({"type": "input.done"}))
        assert any(isinstance(message, bytes) for message in live)


def test_every_answer_is_counted_once(server: LimitedServer) -> None:
    counted = server.metric("tutti_http_answers_total", route="/v1/audio/speech")
    for _ in range(10):
        speak_alone(server, "deep")
    assert server.metric("tutti_http_answers_total", route="/v1/audio/speech") == counted + 10


def test_a_client_that_leaves_ends_its_stream_in_the_engine(server: LimitedServer) -> None:
    held = server.metric("tutti_audio_held_bytes")  # by the cache
    with (
        httpx2.Client(base_url=server.url, timeout=60) as client,
        client.stream("POST", "/v1/audio/speech", json={"input": LONG * 20, "response_format": "pcm"}) as answer,
    ):
        next(answer.iter_raw())
    while server.metric("tutti_http_requests") > 1 or server.metric("tutti_audio_held_bytes") > held:
        time.sleep(0.05)  # the request for the metrics is one
    while server.client.get("/health/batching").json()["queue_status"]["current_size"]:
        time.sleep(0.05)


def test_a_process_that_dies_is_replaced_and_what_it_counted_stays(server: LimitedServer) -> None:
    audio = speak_alone(server).content
    counted = server.metric("tutti_http_answers_total", route="/v1/audio/speech")
    victim = http_processes(server)[0]
    victim.kill()
    while victim.pid in (pids := [child.pid for child in http_processes(server)]) or len(pids) < N_PROCESSES:
        time.sleep(0.02)
    # New connections wait in the listening socket until the new process accepts them: none is lost.
    assert [speak_alone(server).content == audio for _ in range(10)] == [True] * 10
    assert server.metric("tutti_http_answers_total", route="/v1/audio/speech") >= counted + 10


def test_a_process_that_hangs_is_replaced_and_meanwhile_the_server_is_not_ready(tmp_path: Path) -> None:
    with limited_server(tmp_path, "--http-processes", "1", TONE_BEAT_S="0.3") as server:
        audio = speak_alone(server).content
        (victim,) = http_processes(server)
        with httpx2.Client(base_url=server.url, timeout=60) as client:
            assert client.get("/readyz").status_code == 200  # from now on the server's process has this connection
            victim.suspend()
            wait_until(lambda: client.get("/readyz").status_code == 503)
            assert_error(client.get("/readyz"), 503, "not_ready")
            wait_until(lambda: client.get("/readyz").status_code == 200)
        assert victim.pid not in [child.pid for child in http_processes(server)]
        assert speak_alone(server).content == audio
        assert any("does not answer" in line for line in server.log)


def test_connections_of_a_hung_process_are_accepted_by_the_server(tmp_path: Path) -> None:
    """It is not killed here: as long as it hangs, half of all new connections wait for it."""
    env = {"TONE_BEAT_S": "0.2", "TONE_HUNG_BEATS": "100000"}
    with limited_server(tmp_path, "--http-processes", str(N_PROCESSES), **env) as server:
        wait_until(lambda: len(http_processes(server)) == N_PROCESSES)
        wait_until(lambda: speak_alone(server).status_code == 200)
        audio, (hung, _) = speak_alone(server).content, http_processes(server)
        hung.suspend()
        try:
            with httpx2.Client(base_url=server.url, timeout=60) as client:
                assert [speak_alone(server).content == audio for _ in range(20)] == [True] * 20
                assert_error(client.get("/readyz"), 503, "not_ready")
        finally:
            hung.resume()
        server.wait_until_ready()
        assert [speak_alone(server).content == audio for _ in range(20)] == [True] * 20


def test_processes_that_die_at_their_start_are_tried_again_ever_later_and_the_server_answers(tmp_path: Path) -> None:
    with limited_server(tmp_path, "--http-processes", "1", TONE_HTTP_DIES="1") as server:
        assert speak_alone(server).status_code == 200
        assert_error(server.client.get("/readyz"), 503, "not_ready")
        for wait_s in ("0", "0.5", "1", "2"):
            wait_until(lambda text=f"another one is started in {wait_s} s": any(text in line for line in server.log))
        assert stop(server) == 0


def test_an_http_process_goes_on_while_the_server_takes_no_connection(tmp_path: Path) -> None:
    env = {"limit": "-n 4096", "TONE_BUSY": "1"}
    with limited_server(tmp_path, "--http-processes", "1", **env) as server, ExitStack() as stack:
        assert_error(speak_alone(server, speed=99), 400, "invalid_input", "speed")
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            waiting = [stack.enter_context(socket.create_connection(server.host_port, timeout=60)) for _ in range(500)]
            for sock in waiting:
                sock.sendall(request_bytes("GET", "/version"))
            with httpx2.Client(base_url=server.url, timeout=5) as client:  # it is answered without the server
                assert client.post("/v1/audio/speech", json={"input": "deep", "speed": 99}).status_code == 400
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        for sock in waiting:
            assert sock.recv(100).startswith(b"HTTP/1.1 200")


def test_sigterm_lets_streams_end_and_refuses_new_ones(tmp_path: Path) -> None:
    flags = ("--http-processes", str(N_PROCESSES), "--grace-s", "60")
    with limited_server(tmp_path, *flags, TONE_PACED="1") as server:
        whole, pieces = speak_alone(server, LONG).content, list[bytes]()
        body = {"input": LONG, "response_format": "pcm"}
        with server.client.stream("POST", "/v1/audio/speech", json=body) as answer:
            parts = answer.iter_raw()
            pieces.append(next(parts))
            ended = threading.Thread(target=stop, args=(server,))
            ended.start()
            while (refused := speak_alone(server)).status_code == 200:
                pass
            assert_error(refused, 503, "draining")
            pieces += parts
        ended.join(60)
        assert b"".join(pieces) == whole
        assert server.process.returncode == 0


def test_http_processes_end_with_the_server(tmp_path: Path) -> None:
    with limited_server(tmp_path, "--http-processes", "1") as server:
        children = http_processes(server)
        os.kill(server.process.pid, signal.SIGKILL)
        psutil.wait_procs(children, timeout=60)
        assert not [child for child in children if child.is_running()]


def test_with_rate_limits_the_server_speaks_http_itself(tmp_path: Path) -> None:
    with limited_server(tmp_path, "--http-processes", "2", "--rate-requests", "3") as server:
        assert http_processes(server) == []
        statuses = [speak_alone(server, "deep").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        assert any("TUTTI_HTTP_PROCESSES" in line or "--http-processes has no effect" in line for line in server.log)
