"""A server without batching or streaming: OpenAI's route on http.server, one request at a time, for comparison.

`python -m tests.client.one_at_a_time_server 8940 HOME` serves the official ONNX model, to be measured with
`tutti bench` beside tutti.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np

from tests.client.faults import head

Speak = Callable[[str, str], bytes]  # text and voice; 24 kHz, mono, s16le


def hum(text: str, voice: str) -> bytes:
    """Return a tone of a tenth of a second for each character."""
    n_samples = 2400 * len(text)
    return (8000 * np.sin(np.arange(n_samples) * 2 * np.pi * 220 / 24_000)).astype("<i2").tobytes()


def official_model(home: Path) -> Speak:
    from benchmarks.quality import Speaker, tutti_phonemes
    from tutti.weights import FP32_MODEL, Store

    model = Speaker(Store(home).path(FP32_MODEL), home / "voices")

    def speak(text: str, voice: str) -> bytes:
        (phonemes,) = tutti_phonemes([(text, False)], home)
        return (np.clip(model.speak(phonemes, voice), -1, 1) * 32767).astype("<i2").tobytes()

    return speak


def server(speak: Speak, port: int = 0) -> HTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 0.2  # an idle connection must not block the next client

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            pcm = speak(body["input"], body["voice"])
            self.wfile.write(
                head(200, content_type="audio/pcm", content_length=str(len(pcm)), connection="close") + pcm
            )
            self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    return HTTPServer(("127.0.0.1", port), Handler)


@contextmanager
def one_at_a_time(speak: Speak = hum) -> Iterator[str]:
    with server(speak) as serving:
        thread = threading.Thread(target=lambda: serving.serve_forever(poll_interval=0.02), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_address[1]}"
        finally:
            serving.shutdown()
            thread.join()


if __name__ == "__main__":
    server(official_model(Path(sys.argv[2])), int(sys.argv[1])).serve_forever()
