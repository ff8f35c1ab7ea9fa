"""The real `wyoming` client library of Home Assistant against the real listener, with tones."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from tests.fakes import FakeEngine, fake_speeches, make_fake_engine, silent_voices, tone_engine
from tests.server.harness import LONG, SHORT
from tests.third_party.process import tone_server
from tutti.engine.engine import Engine
from tutti.engine.request import StreamRequest
from tutti.errors import ModelFailed, QueueFull
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.run import bind
from tutti.server.service import Service
from tutti.server.wyoming import serve_wyoming
from tutti.settings import Settings
from tutti.speech import SpeechParams
from tutti.voices import NAMES

pytestmark = [pytest.mark.server, pytest.mark.process]

Test = Callable[[AsyncTcpClient], Awaitable[None]]
PIECES = (
    *("The old ", "bridge stands", ". The water runs", " deep.\n\nIt is still"),
    *(" tonight, and Dr", ". Stone", " sleeps."),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture
def fake_engine(folder: Path) -> FakeEngine:
    return make_fake_engine(folder)


@pytest.fixture
def engine(folder: Path) -> Engine:
    """The real engine, which takes text while it is being written."""
    return tone_engine(silent_voices(folder))


@asynccontextmanager
async def connected(fake_engine: EngineProtocol, **options: Any) -> AsyncIterator[tuple[Service, AsyncTcpClient]]:
    """Start a listener on a free port and connect a client to it."""
    settings = Settings(port=0, **options)
    service = Service.of(fake_engine, settings)
    await fake_engine.start()
    try:
        with bind(settings) as sock:
            async with serve_wyoming(service, sock), AsyncTcpClient(*sock.getsockname()) as client:
                yield service, client
    finally:
        await fake_engine.close()
        service.encoders.close()


def run_test(fake_engine: EngineProtocol, test: Test, **options: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), connected(fake_engine, **options) as (_, client):
            await test(client)

    asyncio.run(run())


async def read_event(client: AsyncTcpClient) -> Event:
    event = await client.read_event()
    assert event is not None
    return event


async def read_audio(client: AsyncTcpClient) -> bytes:
    """Read the audio from its start to its end; it must be s16le at 24 kHz."""
    first = await read_event(client)
    assert AudioStart.is_type(first.type), first
    audio = b""
    while not AudioStop.is_type((event := await read_event(client)).type):
        chunk = AudioChunk.from_event(event)
        assert (chunk.rate, chunk.width, chunk.channels) == (24_000, 2, 1)
        audio += chunk.audio
    return audio


def pcm(fake_engine: FakeEngine, text: str, voice: str = "af_heart") -> bytes:
    samples = np.concatenate([speech.samples for speech in fake_speeches(fake_engine.voices, text, voice=voice)])
    return np.rint(samples * 32767).astype("<i2").tobytes()


async def read_error(client: AsyncTcpClient) -> Error:
    """Read up to the error, after which the server must close the connection."""
    while not Error.is_type((event := await read_event(client)).type):
        assert not AudioStop.is_type(event.type)
    assert await client.read_event() is None
    return Error.from_event(event)


async def wait_until_cancelled(fake_engine: FakeEngine, service: Service) -> None:
    while not fake_engine.streams_cancelled.acquire(blocking=False):
        await asyncio.sleep(0.01)
    while service.lifecycle.n_active:
        await asyncio.sleep(0.01)


def test_every_voice_is_listed_with_its_language(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Describe().event())
        (program,) = Info.from_event(await read_event(client)).tts
        assert program.supports_synthesize_streaming
        assert program.installed
        assert program.version
        assert [voice.name for voice in program.voices] == list(NAMES)
        assert all(voice.installed and voice.attribution.name and voice.version for voice in program.voices)
        spoken = {voice.name: voice.languages for voice in program.voices}
        for name, code in {"af_heart": "en-US", "bm_george": "en-GB", "pf_dora": "pt-BR", "jf_alpha": "ja"}.items():
            assert spoken[name] == [code]

    run_test(fake_engine, test)


@pytest.mark.parametrize(("keys", "says_why"), [("key-of-ours", True), ("", False)])
def test_a_voice_that_is_not_seen_is_refused_with_the_reason(
    fake_engine: FakeEngine, keys: str, says_why: bool
) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize("hi", voice=SynthesizeVoice(name="kira")).event())
        error = await read_error(client)
        assert error.code == "voice_not_found"
        assert "'kira'" in error.text
        assert ("access=shared" in error.text) == says_why

    run_test(fake_engine, test, **({"api_keys": keys} if keys else {}))


def test_describe_and_ping_work_before_the_model_is_ready(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        fake_engine.ready = False
        await client.write_event(Describe().event())
        assert Info.is_type((await read_event(client)).type)
        await client.write_event(Ping(text="there?").event())
        assert Pong.from_event(await read_event(client)).text == "there?"
        await client.write_event(Synthesize(SHORT).event())
        assert (await read_error(client)).code == "not_ready"

    run_test(fake_engine, test)


def test_texts_are_spoken_in_order_with_the_audio_of_http(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        for text in (SHORT, LONG):
            await client.write_event(Synthesize(text).event())
        await client.write_event(Synthesize(SHORT, SynthesizeVoice(name="am_adam")).event())
        assert await read_audio(client) == pcm(fake_engine, SHORT)
        assert await read_audio(client) == pcm(fake_engine, LONG)
        assert await read_audio(client) == pcm(fake_engine, SHORT, "am_adam")
        assert [request["voice"] for request in fake_engine.requests] == ["af_heart", "af_heart", "am_adam"]

    run_test(fake_engine, test)


@pytest.mark.parametrize(
    ("requested", "voice"),
    [
        (SynthesizeVoice(name="alloy"), "af_alloy"),
        (SynthesizeVoice(name="af_bella(2)+af_sky"), "af_bella(2)+af_sky"),
        (SynthesizeVoice(language="en-US"), "am_puck"),
        (SynthesizeVoice(language="en_GB"), "bf_emma"),
        (SynthesizeVoice(language="ja"), "jf_alpha"),
        (SynthesizeVoice(language="es"), "ef_dora"),
        (None, "am_puck"),
    ],
    ids=str,
)
def test_a_voice_is_found_by_name_or_language(fake_engine: FakeEngine, requested: Any, voice: str) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(SHORT, requested).event())
        await read_audio(client)
        assert fake_engine.requests[0]["voice"] == voice

    run_test(fake_engine, test, voice="am_puck")


def test_text_in_pieces_is_spoken_before_its_end_and_completely(engine: Engine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(SynthesizeStart(voice=SynthesizeVoice(name="bf_emma")).event())
        for piece in PIECES[:3]:
            await client.write_event(SynthesizeChunk(piece).event())
        # The client has not finished its text.
        assert AudioStart.is_type((await read_event(client)).type)
        audio = AudioChunk.from_event(await read_event(client)).audio
        for piece in PIECES[3:]:
            await client.write_event(SynthesizeChunk(piece).event())
        await client.write_event(Synthesize("".join(PIECES)).event())  # Home Assistant sends it again
        await client.write_event(SynthesizeStop().event())
        while AudioChunk.is_type((event := await read_event(client)).type):
            audio += AudioChunk.from_event(event).audio
        assert AudioStop.is_type(event.type)
        assert SynthesizeStopped.is_type((await read_event(client)).type)

        async def pieces() -> AsyncIterator[str]:
            for piece in PIECES:
                yield piece

        samples = [speech.samples async for speech in engine.stream(StreamRequest(pieces(), SpeechParams("bf_emma")))]
        # Where the text is split depends on when its pieces arrive, and each part has its own silence.
        assert len(audio) // 2 == pytest.approx(sum(map(len, samples)), rel=0.15)
        await client.write_event(Synthesize(SHORT).event())  # the connection can be used again
        whole = await engine.speak(SHORT, SpeechParams("af_heart"))
        assert await read_audio(client) == np.rint(whole.samples * 32767).astype("<i2").tobytes()

    run_test(engine, test)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([Synthesize(SHORT, SynthesizeVoice(name="af_hart")).event()], "voice_not_found"),
        ([Synthesize(SHORT, SynthesizeVoice(language="tlh")).event()], "unknown_language"),
        ([Synthesize("  ").event()], "nothing_to_speak"),
        ([Event("synthesize", {"text": SHORT, "text_format": "html"})], "invalid_input"),
        ([Event("synthesize", {"text": "<speak>deep", "text_format": "ssml"})], "invalid_input"),
        ([Synthesize("a" * 301).event()], "too_large"),
        ([SynthesizeStart().event(), SynthesizeStart().event()], "invalid_input"),
        ([SynthesizeStart().event(), *[SynthesizeChunk("a" * 100).event()] * 4], "too_large"),
        ([SynthesizeStart().event(), SynthesizeStop().event()], "nothing_to_speak"),
        ([Event("synthesize", {"text": 7})], "invalid_input"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_invalid_request_gets_an_error_event_and_is_closed(engine: Engine, events: list[Event], code: str) -> None:
    async def test(client: AsyncTcpClient) -> None:
        for event in events:
            await client.write_event(event)
        error = await read_error(client)
        assert (error.code, bool(error.text)) == (code, True)

    run_test(engine, test, max_text=300)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b'{"type": "synthesize", "data": []' + b"}\n",
        b'{"type": "synthesize", "data": "x"}\n',
        b'{"type": "synthesize", "data_length": 99999999999}\n',
        b'{"type": "synthesize", "data_length": -1}\n',
        b'{"type": "synthesize", "payload_length": "9"}\n',
        b'{"type": "synthesize", "data_length": 2}\n[]',
        b'{"type": "synthesize", "data": {"text": "\\ud800", "voice": {"name": "\\ud800"}}}\n',
        b"x" * 70_000,
        b"[" * 60_000 + b"\n",
    ],
    ids=lambda raw: raw[:60].decode(),
)
def test_invalid_bytes_are_refused_and_affect_no_other_client(fake_engine: FakeEngine, raw: bytes) -> None:
    async def test(client: AsyncTcpClient) -> None:
        assert client._writer is not None
        reader, writer = await asyncio.open_connection(*client._writer.get_extra_info("peername"))
        writer.write(raw)
        assert json.loads((await reader.read()).split(b"\n")[0])["type"] == "error"
        writer.close()
        await client.write_event(Synthesize(SHORT).event())
        assert await read_audio(client) == pcm(fake_engine, SHORT)

    run_test(fake_engine, test)


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("ssml", ['<speak>deep <break time="2s"/> water</speak>', 'deep <break time="2s"/> water'])
def test_ssml_is_spoken_also_in_pieces_and_without_its_root(engine: Engine, ssml: str, pieces: int) -> None:
    async def test(client: AsyncTcpClient) -> None:
        if pieces == 1:
            await client.write_event(Event("synthesize", {"text": ssml, "text_format": "ssml"}))
        else:
            await client.write_event(Event("synthesize-start", {"text_format": "ssml"}))
            size = len(ssml) // pieces + 1
            for start in range(0, len(ssml), size):
                await client.write_event(SynthesizeChunk(ssml[start : start + size]).event())
            await client.write_event(SynthesizeStop().event())
        spoken = await read_audio(client)
        if pieces > 1:
            assert SynthesizeStopped.is_type((await read_event(client)).type)
        await client.write_event(Synthesize("deep [pause:2s] water").event())
        assert spoken == await read_audio(client)

    run_test(engine, test)


def test_an_unknown_voice_is_named_whole(engine: Engine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(SHORT, SynthesizeVoice(name="en_US-ryan-low")).event())
        assert "'en_US-ryan-low'" in (await read_error(client)).text

    run_test(engine, test)


def test_unknown_events_are_ignored(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        for event in (Event("select-program", {"name": "tutti"}), Event("transcribe"), SynthesizeStop().event()):
            await client.write_event(event)
        await client.write_event(Synthesize(SHORT).event())
        assert await read_audio(client) == pcm(fake_engine, SHORT)

    run_test(fake_engine, test)


@pytest.mark.parametrize("error", [ModelFailed("the row broke"), QueueFull("full", retry_after_s=1), RuntimeError("x")])
def test_a_failure_in_mid_stream_is_an_error_event(fake_engine: FakeEngine, error: Exception) -> None:
    fake_engine.fail_at, fake_engine.error = 1, error

    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(LONG).event())
        assert (await read_error(client)).code == getattr(error, "code", "internal_error")

    run_test(fake_engine, test)


@pytest.mark.parametrize("hold_from", [0, 1])
def test_a_disconnect_cancels_the_stream_at_once(fake_engine: FakeEngine, hold_from: int) -> None:
    fake_engine.hold_from = hold_from

    async def run() -> None:
        async with asyncio.timeout(60), connected(fake_engine) as (service, client):
            await client.write_event(Synthesize(LONG).event())
            while not fake_engine.requests:
                await asyncio.sleep(0)
            await client.disconnect()
            await wait_until_cancelled(fake_engine, service)

    asyncio.run(run())


def test_draining_finishes_the_current_text_and_refuses_others(fake_engine: FakeEngine) -> None:
    fake_engine.hold_from = 1

    async def run() -> None:
        async with asyncio.timeout(60), connected(fake_engine) as (service, client):
            await client.write_event(Synthesize(LONG).event())
            await read_event(client)
            draining = asyncio.create_task(service.lifecycle.drain(60))
            await asyncio.sleep(0)
            async with AsyncTcpClient(client.host, client.port) as other:
                await other.write_event(Synthesize(SHORT).event())
                assert (await read_error(other)).code == "draining"
            assert not draining.done()
            fake_engine.release()
            while not AudioStop.is_type((await read_event(client)).type):
                pass
            assert await draining

    asyncio.run(run())


def test_the_rate_limit_applies(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(SHORT).event())
        await read_audio(client)
        await client.write_event(Synthesize(SHORT).event())
        assert (await read_error(client)).code == "rate_limited"

    run_test(fake_engine, test, rate_requests=1)


def test_the_queue_of_a_connection_is_limited(fake_engine: FakeEngine) -> None:
    fake_engine.hold_from = 0

    async def test(client: AsyncTcpClient) -> None:
        for _ in range(20):
            await client.write_event(Synthesize(SHORT).event())
        assert (await read_error(client)).code == "queue_full"

    run_test(fake_engine, test)


def test_a_client_that_never_reads_is_disconnected(fake_engine: FakeEngine) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), connected(fake_engine, idle_s=0.02) as (service, client):
            client_sock = client._writer.get_extra_info("socket")  # type: ignore[union-attr]
            client_sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client._reader._transport.pause_reading()  # type: ignore[union-attr]
            await client.write_event(Synthesize(LONG * 60).event())
            await wait_until_cancelled(fake_engine, service)

    asyncio.run(run())


def test_tutti_serve_offers_both_protocols_and_ends_cleanly(fake_engine: FakeEngine) -> None:
    async def speak(port: int) -> bytes:
        async with asyncio.timeout(60), AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Synthesize(LONG).event())
            return await read_audio(client)

    with tone_server("--wyoming-port", "0") as server:
        assert server.wyoming_port is not None
        http = httpx2.post(f"{server.url}/v1/audio/speech", json={"input": LONG, "response_format": "pcm"})
        assert asyncio.run(speak(server.wyoming_port)) == http.content
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0


def test_an_occupied_port_is_reported_before_loading(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = str(occupied.getsockname()[1])
        command = [sys.executable, "-m", "tutti", "serve", "--port", "0", "--wyoming-port", port]
        result = subprocess.run([*command, "--home", str(tmp_path), "--offline"], capture_output=True, text=True)
    assert result.returncode == 2
    assert f"port {port}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_package_is_named_with_its_fix() -> None:
    code = "import sys; sys.modules['wyoming'] = None; from tutti.cli.main import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--wyoming-port", "0", "--offline"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 3
    assert re.search(r"pip install .*\[wyoming\]", result.stderr)  # from an index, or from a clone
    assert "Traceback" not in result.stderr
