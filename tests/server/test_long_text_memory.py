"""Long texts over HTTP: memory does not grow with the text, and short texts are not delayed."""

import socket
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.fakes import Spelling, silent_voices, tone_engine
from tests.server.harness import SHORT, serving
from tests.server.test_streaming import raw
from tests.third_party.process import tone_server
from tutti.text.frontend import G2PPool

pytestmark = [pytest.mark.server, pytest.mark.process]

PAGE = "“Still water,” she said — and it runs deep… The old bridge stands.\n\n"


def words(n: int) -> str:
    return PAGE * (n // len(PAGE.split()))


def test_ten_times_the_words_stream_in_the_same_memory() -> None:
    with tone_server() as server, httpx2.Client(base_url=server.url, timeout=120) as client:
        process = psutil.Process(server.pid)

        def stream_words(n_words: int) -> tuple[int, int]:
            """Return the bytes received, and the peak memory meanwhile."""
            n_bytes, peak = 0, 0
            body = {"input": words(n_words), "response_format": "pcm"}
            with client.stream("POST", "/v1/audio/speech", json=body) as response:
                assert response.status_code == 200
                for n, piece in enumerate(response.iter_raw()):
                    n_bytes += len(piece)
                    if n % 50 == 0:
                        peak = max(peak, process.memory_info().rss)
            return n_bytes, peak

        stream_words(1000)  # warm up
        few_bytes, few_peak = stream_words(1000)
        many_bytes, many_peak = stream_words(10_000)
    assert many_bytes > 9.9 * few_bytes
    assert many_peak - few_peak < 0.25 * (many_bytes - few_bytes)


def test_a_hundred_thousand_words_are_accepted_by_default(tmp_path: Path) -> None:
    with serving(tone_engine(silent_voices(tmp_path))) as server:
        body = {"input": words(100_000), "response_format": "pcm"}
        with server.client().stream("POST", "/v1/audio/speech", json=body) as response:
            assert response.status_code == 200
            assert len(next(response.iter_raw()))


def test_a_short_text_is_spoken_while_long_ones_are_phonemized_in_the_same_process(tmp_path: Path) -> None:
    engine = tone_engine(silent_voices(tmp_path))
    engine.frontend = G2PPool(Spelling().pronounce)
    with serving(engine) as server:
        long = [socket.create_connection(server.host_port) for _ in range(8)]
        try:
            for sock in long:
                sock.sendall(raw("/v1/audio/speech", {"input": words(15_000), "response_format": "pcm"}))
            for sock in long:
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
            assert server.speak().status_code == 200
            assert server.app.state.service.lifecycle.n_active >= len(long)  # none of them has ended
            assert server.speak(input=SHORT, stream=False).status_code == 200
        finally:
            for sock in long:
                sock.close()
