"""LiveKit's own tests/test_tts.py against a server: `python livekit_tests.py URL FOLDER`, the folder of their tests.

Their services are of other companies; here each plugin gets our address. Toxiproxy is a relay in this process, words
come one by one without a tokeniser to download. Speech is judged by its length, and kept in the folder HEARD if one is
set, with its text, for a recogniser.
"""

import asyncio
import logging
import os
import socket
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from urllib.parse import urlsplit

import livekit.plugins
import pytest
from livekit import rtc
from livekit.agents import utils
from livekit.plugins import azure, cartesia, deepgram, elevenlabs

SERVED = ("azure", "cartesia", "deepgram", "elevenlabs")  # also deepgram-flux
OTHERS = (
    *("aws", "bland", "google", "groq", "hume", "inworld", "lmnt", "mistralai", "neuphonic", "resemble", "rime"),
    *("speechify", "spitch"),
)
HEARD = os.environ.get("HEARD")
SHORTEST_S = 1.0
WORDS_PER_S = 300
N_THAT_FILL_THE_QUEUE = 3  # Linux keeps one or two


class Relay:
    """A proxy to the server. After `add_toxic` nothing answers, no connection is accepted, as behind a dead one."""

    def __init__(self, url: str) -> None:
        self._upstream = (urlsplit(url).hostname, urlsplit(url).port)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=0)
        self._is_silent = False
        self._held: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._accepting = _in_thread(self._accept)

    def create(self, *_: object, **__: object) -> "Relay":
        return self

    def add_toxic(self, *_: object, **__: object) -> None:
        """Swallow everything, and fill the queue of connections that wait to be accepted, so that others hang."""
        self._is_silent = True
        self._connect()
        self._accepting.join()  # it took that connection
        for _ in range(N_THAT_FILL_THE_QUEUE):
            self._connect()

    def close(self) -> None:
        for each in (self._listening, *self._held):
            each.close()

    def _connect(self) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(self._listening.getsockname())
        self._held.append(connection)

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._is_silent:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._upstream)
                _in_thread(self._pump, client, server)
                _in_thread(self._pump, server, client)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self._is_silent:
                    sink.sendall(data)
            if not self._is_silent:
                sink.shutdown(socket.SHUT_WR)


def _in_thread(work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


# -- fixtures of their tests -----------------------------------------------------------------------------------------


@pytest.fixture
def toxiproxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """Every plugin speaks to our server, through a relay of its own."""
    relay = Relay(sys.argv[1])
    key = {"api_key": "any"}
    for plugin, name, options in (
        (elevenlabs, "TTS", {"base_url": f"{relay.url}/v1", **key}),
        (cartesia, "TTS", {"base_url": relay.url, **key}),
        (deepgram, "TTS", {"base_url": f"{relay.url}/v1/speak", **key}),
        (deepgram, "TTSv2", {"base_url": f"{relay.url}/v2/speak", **key}),
        (azure, "TTS", {"speech_endpoint": f"{relay.url}/cognitiveservices/v1", "speech_key": "any"}),
    ):
        monkeypatch.setattr(plugin, name, _with(getattr(plugin, name), options))
    yield relay
    relay.close()


def _with(service: Callable[..., Any], options: dict[str, str]) -> Callable[..., Any]:
    return lambda **more: service(**options, **more)


@pytest.fixture
def logger() -> logging.Logger:
    return logging.getLogger("livekit-tests")


@pytest.fixture
async def job_process() -> AsyncIterator[None]:
    utils.http_context._new_session_ctx()
    yield
    await utils.http_context._close_http_ctx()


async def _words(text: str, tokens_per_second: float) -> AsyncIterator[str]:
    for word in text.split(" "):
        yield f"{word} "
        await asyncio.sleep(1 / WORDS_PER_S)


async def _keep_or_measure(*, frames: Any, text: str, sample_rate: int, num_channels: int) -> None:
    frame = rtc.combine_audio_frames(frames)
    assert (frame.sample_rate, frame.num_channels) == (sample_rate, num_channels)
    assert frame.duration > SHORTEST_S
    if HEARD:
        audio = Path(HEARD, f"{uuid.uuid4().hex}.wav")
        audio.write_bytes(frame.to_wav_bytes())
        audio.with_suffix(".txt").write_text(text)


# -- the run -----------------------------------------------------------------------------------------------------------


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the services that the server has, with what our fixtures replace."""
    items[:] = [item for item in items if item.name.partition("[")[2].startswith(SERVED)]
    for module in {item.module for item in items}:  # type: ignore[attr-defined]
        module.fake_llm_stream = _words
        module.assert_valid_synthesized_audio = _keep_or_measure


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        print(f"\nfailed\t{report.nodeid.rpartition('::')[2]}: {' '.join(str(report.longrepr).split())[-300:]}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    n_passed = session.testscollected - session.testsfailed
    print(f"\n{'failed' if session.testsfailed else 'ok'}\t{n_passed} of {session.testscollected} tests")


def main() -> int:
    for name in OTHERS:
        setattr(livekit.plugins, name, MagicMock())
    tests = Path(sys.argv[2])
    sys.path.insert(0, str(tests.parent))
    options = ["-q", "-s", "--tb=native", "--noconftest", "-p", "no:cacheprovider"]
    settings = ["-o", "asyncio_mode=auto", "-o", "markers=tts"]
    return pytest.main([*options, *settings, str(tests / "test_tts.py")], plugins=[sys.modules[__name__]])


if __name__ == "__main__":
    sys.exit(main())
