"""Any sequence of messages, right and wrong ones, is answered or closes its socket, and leaves nothing behind.

WIRE_SESSIONS=1000: so many sessions on each wire instead of a few.
"""

import asyncio
import gc
import json
import os
import random
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.server.harness import RunningServer
from tests.wires import Message, wire
from tutti.server.speech_session import Context

pytestmark = pytest.mark.server

N_SESSIONS = int(os.environ.get("WIRE_SESSIONS", "25"))
AT_ONCE = 5
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 5, 1.5, 1e308, "", " ", "deep", "still water. It", "x" * 2000, "\ud800", "null"),
    *([], [5], [{}], {}, {"speed": 2}, {"speed": "x"}, {"mode": "id", "id": "af_sky"}, {"text": "deep"}),
    *([{"text": "deep water. "}], [{"text": 5}], "af_sky", "nobody", "<speak>deep</speak>", "[voice:nobody] deep"),
)
FIELDS = {
    "/v1/text-to-speech/af_heart/multi-stream-input?output_format=pcm_8000": (
        *("text", "context_id", "contextId", "flush", "voice_settings", "close_context", "close_socket", "xi_api_key"),
    ),
    "/v1/text-to-speech/af_heart/stream-input?auto_mode=true&output_format=mp3_22050_32": (
        *("text", "flush", "voice_settings", "try_trigger_generation", "generation_config"),
    ),
    "/v1/text-to-dialogue/multi-stream-input?output_format=ulaw_8000": (
        *("inputs", "context_id", "voices", "keep_alive", "flush", "close_context", "close_socket"),
    ),
    "/tts/websocket": (
        *("transcript", "context_id", "continue", "flush", "cancel", "voice", "output_format", "max_buffer_delay_ms"),
        *("add_timestamps", "add_phoneme_timestamps", "generation_config", "language", "model_id", "speed"),
    ),
    "/v1/speak": ("type", "text"),
    "/v2/speak": ("type", "text", "speed", "playback_offset"),
    "/v1/audio/speech/stream": ("type", "text", "context", "session", "voice"),
}
TYPES = ("Speak", "Flush", "Clear", "Interrupt", "Configure", "Close", "input.text", "input.flush", "input.done")
LIKELY: dict[str, tuple[Any, ...]] = {
    "type": (*TYPES, "input.cancel", "session.config", 5),
    **dict.fromkeys(("context_id", "contextId", "context"), ("a", "b", "c", None, 5)),
    **dict.fromkeys(("text", "transcript"), ("deep water. ", "it runs", " ", "", 5)),
    **dict.fromkeys(("continue", "flush", "close_context", "cancel", "add_timestamps"), (True, False)),
    "voice": ("af_sky", {"mode": "id", "id": "am_adam"}, "nobody", 5),
}


def message(fields: tuple[str, ...], chance: random.Random) -> Message:
    names = chance.sample(fields, chance.randint(0, len(fields)))
    return {name: chance.choice(LIKELY.get(name, VALUES) if chance.random() < 0.8 else VALUES) for name in names}


async def session(server: RunningServer, path: str, chance: random.Random) -> None:
    async with wire(server.socket_url, path) as client:
        with suppress(ConnectionClosed):
            for _ in range(chance.randint(0, 8)):
                sent: str | bytes = json.dumps(message(FIELDS[path], chance))
                if chance.random() < 0.05:
                    sent = chance.choice(("{", "[]", b"\x00\xff", "5", "[" * 500))
                await client.socket.send(sent)
                if chance.random() < 0.3:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.01):
                            await client.receive()


@pytest.mark.parametrize("path", FIELDS)
def test_fuzzed_sessions_leave_nothing(server: RunningServer, path: str, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        for first in range(0, N_SESSIONS, AT_ONCE):
            chances = [random.Random(f"{path} {n}") for n in range(first, min(N_SESSIONS, first + AT_ONCE))]
            await asyncio.gather(*(session(server, path, chance) for chance in chances))

    asyncio.run(run())
    while server.app.state.service.lifecycle.n_active:
        assert server.get("/healthz").status_code == 200
    assert server.speak(input="deep").status_code == 200
    gc.collect()
    n_contexts = sum(type(each) is Context for each in gc.get_objects())
    assert n_contexts <= 4 * AT_ONCE, "contexts of closed sockets are still held"
    assert not [record for record in caplog.records if record.exc_info and record.name.startswith("tutti")]
    assert 'status="5' not in server.get("/metrics").text


def test_a_message_of_a_megabyte_ends_no_other_context(server: RunningServer) -> None:
    async def run() -> None:
        async with wire(server.socket_url, "/tts/websocket") as client:
            await client.send(context_id="a", transcript="deep water. ", **{"continue": True})
            await client.send(context_id="b", transcript="deep", voice="x" * 1_000_000)
            assert (await client.until(lambda event: event["context_id"] == "b"))["error_code"] == "invalid_input"
            await client.send(context_id="a", transcript="", **{"continue": False})
            assert (await client.until(lambda event: event["type"] == "done"))["context_id"] == "a"

    asyncio.run(run())
