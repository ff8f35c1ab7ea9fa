"""Home Assistant's side of the wire: the real `wyoming` client against the real listener, on tones."""

import asyncio
import json
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

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import LONG, SHORT, FakeEngine, fake_speeches, make_fake_engine
from tests.third_party.process import tone_server
from tutti.engine.engine import Engine
from tutti.errors import ModelFailed, QueueFull
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.run import bind
from tutti.server.service import Service
from tutti.server.wyoming import serve_wyoming
from tutti.settings import Settings
from tutti.speech import SpeechParams
from tutti.voices import NAMES

Test = Callable[[AsyncTcpClient], Awaitable[None]]
PIECES = [
    "The old ",
    "bridge stands",
    ". The water runs",
    " deep.\n\nIt is still",
    " tonight, and Dr",
    ". Stone",
    " sleeps.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture
def fake_engine(folder: Path) -> FakeEngine:
    return make_fake_engine(folder)


@pytest.fixture
def engine(folder: Path) -> Engine:
    """The real one, which takes a text while it is being written."""
    return tone_engine(silent_voices(folder))


@asynccontextmanager
async def listening(fake_engine: EngineProtocol, **chosen: Any) -> AsyncIterator[tuple[Service, AsyncTcpClient]]:
    """A listener on a free port, and a client that is connected to it."""
    options = Settings(port=0, **chosen)
    service = Service.of(fake_engine, options)
    await fake_engine.start()
    try:
        with bind(options) as sock:
            async with serve_wyoming(service, sock), AsyncTcpClient(*sock.getsockname()) as client:
                yield service, client
    finally:
        await fake_engine.close()
        service.encoder_threads.shutdown(wait=True)


def talk(fake_engine: EngineProtocol, test: Test, **chosen: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), listening(fake_engine, **chosen) as (_, client):
            await test(client)

    asyncio.run(run())


async def heard(client: AsyncTcpClient, until: type[AudioStop] | type[SynthesizeStopped] = AudioStop) -> bytes:
    """The audio between its start and its end, which must be one piece of s16le at 24 kHz."""
    first = await client.read_event()
    assert first is not None
    assert AudioStart.is_type(first.type), first
    audio, ended = b"", False
    while (event := await client.read_event()) is not None and not until.is_type(event.type):
        ended = ended or AudioStop.is_type(event.type)
        if not ended:
            chunk = AudioChunk.from_event(event)
            assert (chunk.rate, chunk.width, chunk.channels) == (24_000, 2, 1)
            audio += chunk.audio
    assert event is not None, "the connection ended before the audio did"
    return audio


def pcm(fake_engine: FakeEngine, text: str, voice: str = "af_heart") -> bytes:
    said = np.concatenate([speech.samples for speech in fake_speeches(fake_engine.voices, text, voice=voice)])
    return np.rint(said * 32767).astype("<i2").tobytes()


async def refused(client: AsyncTcpClient) -> Error:
    """The error, after which the server must hang up."""
    while (event := await client.read_event()) is not None and not Error.is_type(event.type):
        assert not AudioStop.is_type(event.type)
    assert event is not None
    assert await client.read_event() is None
    return Error.from_event(event)


def test_every_voice_is_told_with_its_language(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Describe().event())
        event = await client.read_event()
        assert event is not None
        (program,) = Info.from_event(event).tts
        assert program.supports_synthesize_streaming
        assert program.installed
        assert program.version
        assert [voice.name for voice in program.voices] == list(NAMES)
        assert all(voice.installed and voice.attribution.name and voice.version for voice in program.voices)
        spoken = {voice.name: voice.languages for voice in program.voices}
        assert (spoken["af_heart"], spoken["bm_george"], spoken["pf_dora"], spoken["jf_alpha"]) == (
            ["en-US"],
            ["en-GB"],
            ["pt-BR"],
            ["ja"],
        )

    talk(fake_engine, test)


def test_questions_are_answered_before_the_model_is_warm(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        fake_engine.ready = False
        await client.write_event(Describe().event())
        assert (event := await client.read_event()) is not None
        assert Info.is_type(event.type)
        await client.write_event(Ping(text="there?").event())
        assert (event := await client.read_event()) is not None
        assert Pong.from_event(event).text == "there?"
        await client.write_event(Synthesize(SHORT).event())
        assert (await refused(client)).code == "not_ready"

    talk(fake_engine, test)


def test_texts_are_said_one_after_the_other_as_over_http(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        for text in (SHORT, LONG):
            await client.write_event(Synthesize(text).event())
        await client.write_event(Synthesize(SHORT, SynthesizeVoice(name="am_adam")).event())
        assert await heard(client) == pcm(fake_engine, SHORT)
        assert await heard(client) == pcm(fake_engine, LONG)
        assert await heard(client) == pcm(fake_engine, SHORT, "am_adam")
        assert [asked["voice"] for asked in fake_engine.requests] == ["af_heart", "af_heart", "am_adam"]

    talk(fake_engine, test)


@pytest.mark.parametrize(
    ("wanted", "voice"),
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
def test_a_voice_is_found_by_name_or_language(
    fake_engine: FakeEngine, wanted: SynthesizeVoice | None, voice: str
) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(SHORT, wanted).event())
        await heard(client)
        assert fake_engine.requests[0]["voice"] == voice

    talk(fake_engine, test, voice="am_puck")


def test_a_text_that_arrives_in_pieces_is_said_before_its_end_and_whole(engine: Engine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(SynthesizeStart(voice=SynthesizeVoice(name="bf_emma")).event())
        for piece in PIECES[:3]:
            await client.write_event(SynthesizeChunk(piece).event())
        first = [await client.read_event(), await client.read_event()]  # the client has not said that it is done
        assert first[0] is not None
        assert AudioStart.is_type(first[0].type)
        assert first[1] is not None
        audio = AudioChunk.from_event(first[1]).audio
        for piece in PIECES[3:]:
            await client.write_event(SynthesizeChunk(piece).event())
        await client.write_event(Synthesize("".join(PIECES)).event())  # as Home Assistant repeats it
        await client.write_event(SynthesizeStop().event())
        while (event := await client.read_event()) is not None and AudioChunk.is_type(event.type):
            audio += AudioChunk.from_event(event).audio
        assert event is not None
        assert AudioStop.is_type(event.type)
        event = await client.read_event()
        assert event is not None
        assert SynthesizeStopped.is_type(event.type)

        async def pieces() -> AsyncIterator[str]:
            for piece in PIECES:
                yield piece

        said = [speech.samples async for speech in engine.stream(pieces(), SpeechParams("bf_emma"))]
        # Where it was parted depends on when the pieces came; each part has its own pads.
        assert len(audio) // 2 == pytest.approx(sum(map(len, said)), rel=0.15)
        await client.write_event(Synthesize(SHORT).event())  # and the connection is good for more
        whole = await engine.speak(SHORT, SpeechParams("af_heart"))
        assert await heard(client) == np.rint(whole.samples * 32767).astype("<i2").tobytes()

    talk(engine, test)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([Synthesize(SHORT, SynthesizeVoice(name="af_hart")).event()], "voice_not_found"),
        ([Synthesize(SHORT, SynthesizeVoice(language="tlh")).event()], "unknown_language"),
        ([Synthesize("  ").event()], "nothing_to_speak"),
        ([Event("synthesize", {"text": SHORT, "text_format": "ssml"})], "invalid_input"),
        ([Synthesize("a" * 301).event()], "too_large"),
        ([SynthesizeStart().event(), SynthesizeStart().event()], "invalid_input"),
        ([SynthesizeStart().event(), *[SynthesizeChunk("a" * 100).event()] * 4], "too_large"),
        ([SynthesizeStart().event(), SynthesizeStop().event()], "nothing_to_speak"),
        ([Event("synthesize", {"text": 7})], "invalid_input"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_done_is_an_error_event_and_the_end(engine: Engine, events: list[Event], code: str) -> None:
    async def test(client: AsyncTcpClient) -> None:
        for event in events:
            await client.write_event(event)
        error = await refused(client)
        assert (error.code, bool(error.text)) == (code, True)

    talk(engine, test, max_text=300)


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
def test_what_is_not_wyoming_is_refused_and_harms_nobody(fake_engine: FakeEngine, raw: bytes) -> None:
    async def test(client: AsyncTcpClient) -> None:
        assert client._writer is not None
        reader, writer = await asyncio.open_connection(*client._writer.get_extra_info("peername"))
        writer.write(raw)
        assert json.loads((await reader.read()).split(b"\n")[0])["type"] == "error"
        writer.close()
        await client.write_event(Synthesize(SHORT).event())
        assert await heard(client) == pcm(fake_engine, SHORT)

    talk(fake_engine, test)


def test_events_for_others_are_let_pass(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        for event in (Event("select-program", {"name": "tutti"}), Event("transcribe"), SynthesizeStop().event()):
            await client.write_event(event)
        await client.write_event(Synthesize(SHORT).event())
        assert await heard(client) == pcm(fake_engine, SHORT)

    talk(fake_engine, test)


@pytest.mark.parametrize("error", [ModelFailed("the row broke"), QueueFull("full", retry_after_s=1), RuntimeError("x")])
def test_a_failure_in_mid_stream_never_looks_like_an_end(fake_engine: FakeEngine, error: Exception) -> None:
    fake_engine.fail_at, fake_engine.error = 1, error

    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(LONG).event())
        assert (await refused(client)).code == getattr(error, "code", "internal_error")

    talk(fake_engine, test)


@pytest.mark.parametrize("hold_from", [0, 1])
def test_who_hangs_up_is_forgotten_at_once(fake_engine: FakeEngine, hold_from: int) -> None:
    fake_engine.hold_from = hold_from

    async def run() -> None:
        async with asyncio.timeout(60), listening(fake_engine) as (service, client):
            await client.write_event(Synthesize(LONG).event())
            while not fake_engine.requests:
                await asyncio.sleep(0)
            await client.disconnect()
            while not fake_engine.streams_cancelled.acquire(blocking=False):
                await asyncio.sleep(0)
            while service.lifecycle.n_active:
                await asyncio.sleep(0)

    asyncio.run(run())


def test_a_text_under_way_is_finished_while_the_server_drains_and_no_other_begun(fake_engine: FakeEngine) -> None:
    fake_engine.hold_from = 1

    async def run() -> None:
        async with asyncio.timeout(60), listening(fake_engine) as (service, client):
            await client.write_event(Synthesize(LONG).event())
            assert await client.read_event() is not None
            drained = asyncio.create_task(service.lifecycle.drain(60))
            await asyncio.sleep(0)
            async with AsyncTcpClient(client.host, client.port) as other:
                await other.write_event(Synthesize(SHORT).event())
                assert (await refused(other)).code == "draining"
            assert not drained.done()
            fake_engine.release()
            while (event := await client.read_event()) is not None and not AudioStop.is_type(event.type):
                pass
            assert event is not None
            assert await drained

    asyncio.run(run())


def test_the_rate_limit_counts_here_too(fake_engine: FakeEngine) -> None:
    async def test(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(SHORT).event())
        await heard(client)
        await client.write_event(Synthesize(SHORT).event())
        assert (await refused(client)).code == "rate_limited"

    talk(fake_engine, test, rate_requests=1)


def test_texts_that_wait_are_few(fake_engine: FakeEngine) -> None:
    fake_engine.hold_from = 0

    async def test(client: AsyncTcpClient) -> None:
        for _ in range(20):
            await client.write_event(Synthesize(SHORT).event())
        assert (await refused(client)).code == "queue_full"

    talk(fake_engine, test)


def test_one_who_never_reads_is_cut(fake_engine: FakeEngine) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), listening(fake_engine, idle_s=0.02) as (service, client):
            client_sock = client._writer.get_extra_info("socket")  # type: ignore[union-attr]
            client_sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client._reader._transport.pause_reading()  # type: ignore[union-attr]
            await client.write_event(Synthesize(LONG * 60).event())
            while not fake_engine.streams_cancelled.acquire(blocking=False):
                await asyncio.sleep(0.01)
            while service.lifecycle.n_active:
                await asyncio.sleep(0)

    asyncio.run(run())


def test_tutti_serve_speaks_both_and_ends_cleanly(fake_engine: FakeEngine) -> None:
    async def say(port: int) -> bytes:
        async with asyncio.timeout(60), AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Synthesize(LONG).event())
            return await heard(client)

    with tone_server("--wyoming-port", "0") as server:
        assert server.wyoming_port is not None
        body = {"input": LONG, "response_format": "pcm"}
        assert asyncio.run(say(server.wyoming_port)) == httpx2.post(f"{server.url}/v1/audio/speech", json=body).content
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0


def test_a_taken_port_is_one_line_before_anything_is_loaded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "tutti", "serve", "--port", "0", "--wyoming-port", port]
        done = subprocess.run([*command, "--home", str(tmp_path), "--offline"], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_package_is_one_line_that_names_the_cure() -> None:
    code = "import sys; sys.modules['wyoming'] = None; from tutti import cli; cli.main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--wyoming-port", "0", "--offline"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert "tutti-tts[wyoming]" in done.stderr
    assert "Traceback" not in done.stderr
