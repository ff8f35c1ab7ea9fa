"""A server with a G2P service sends the calls of all texts at once; a call that hangs holds up its own text only."""

import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import RunningServer, serving

pytestmark = pytest.mark.server

N_TEXTS = 8
GIVE_UP_S = 20.0  # how long a failing test waits for the calls that do not come


@contextmanager
def g2p_service(before_answer: Callable[[str], bool]) -> Iterator[str]:
    """A service that calls `before_answer` with each text; False breaks the connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = json.loads(self.rfile.read(int(self.headers["content-length"])))["text"]
            if not before_answer(text):
                self.close_connection = True
                return
            content = json.dumps({"phonemes": " ".join("həlˈO" for _ in text.split())}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None: ...

    class Service(ThreadingHTTPServer):
        request_queue_size = 64

    service = Service(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{service.server_port}"
    finally:
        service.shutdown()
        service.server_close()
        thread.join()


@contextmanager
def serving_with(g2p_url: str, folder: Path) -> Iterator[RunningServer]:
    options = {"g2p_url": g2p_url, "g2p_timeout_s": 3 * GIVE_UP_S}
    with serving(tone_engine(silent_voices(folder), **options), **options) as server:
        yield server


def test_the_texts_of_a_batch_reach_the_service_at_the_same_time(tmp_path: Path) -> None:
    """No call is answered before all have arrived."""
    all_here = threading.Barrier(N_TEXTS)

    def wait_for_the_others(text: str) -> bool:
        try:
            return all_here.wait(GIVE_UP_S) >= 0
        except threading.BrokenBarrierError:
            return False

    items = [{"text": f"text {'abcdefgh'[n]}"} for n in range(N_TEXTS)]
    with g2p_service(wait_for_the_others) as url, serving_with(url, tmp_path) as server:
        response = server.post("/tts/batch", {"requests": items})
    manifest = json.loads(zipfile.ZipFile(io.BytesIO(response.content)).read("manifest.json"))
    assert [entry["ok"] for entry in manifest] == [True] * N_TEXTS, manifest


def test_a_call_that_hangs_affects_only_its_own_request(tmp_path: Path) -> None:
    hangs, leave = threading.Event(), threading.Event()

    def hang_on_one(text: str) -> bool:
        if "hang" not in text:
            return True
        hangs.set()
        assert leave.wait(3 * GIVE_UP_S)
        return False

    statuses: list[int] = []
    with g2p_service(hang_on_one) as url, serving_with(url, tmp_path) as server:
        hung = threading.Thread(target=lambda: statuses.append(server.post("/tts", {"text": "now hang"}).status_code))
        hung.start()
        try:
            assert hangs.wait(GIVE_UP_S)
            others = [server.client().post("/tts", json={"text": f"text {'abcdefgh'[n]}"}) for n in range(N_TEXTS)]
            assert [response.status_code for response in others] == [200] * N_TEXTS
            assert statuses == []
        finally:
            leave.set()
            hung.join()
    assert statuses == [502]
