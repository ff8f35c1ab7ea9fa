"""LiveKit's released plugins against a server: `python livekit_services.py URL`; OWN has our own words and length.

Every service speaks a text at once and as it is written, word by word, is interrupted, and speaks again.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
from livekit.agents import tokenize, tts
from livekit.agents.types import APIConnectOptions
from livekit.plugins import azure, cartesia, deepgram, elevenlabs

URL = sys.argv[1]
OWN = json.loads(os.environ["OWN"])
ONCE = APIConnectOptions(max_retry=0, timeout=20)
TIMES_S, LENGTH = 0.02, 0.1  # allowed differences: of a word's start, and of the length as a share
MARKS = ".,!?"  # that some front ends leave out of a word

Service = Callable[[aiohttp.ClientSession], tts.TTS]


def eleven(**options: Any) -> Service:
    return lambda http: elevenlabs.TTS(base_url=f"{URL}/v1", **key(http), **options)


def cartesian(**options: Any) -> Service:
    return lambda http: cartesia.TTS(base_url=URL, **key(http), **options)


def key(http: aiohttp.ClientSession) -> dict[str, Any]:
    return {"api_key": "any", "http_session": http}


def azure_speech(http: aiohttp.ClientSession) -> tts.TTS:
    return azure.TTS(speech_endpoint=f"{URL}/cognitiveservices/v1", speech_key="any", http_session=http)


# Name, service, whether it streams, and whether its word times are those of the whole text.
SERVICES: list[tuple[str, Service, bool, bool]] = [
    ("elevenlabs mp3", eleven(), True, False),  # the plugin does not add up the times of messages
    ("elevenlabs pcm", eleven(encoding="pcm_24000"), True, False),
    ("elevenlabs opus", eleven(encoding="opus_48000_64"), True, False),
    ("elevenlabs v3", eleven(model="eleven_v3", encoding="pcm_24000"), True, True),
    ("elevenlabs words", eleven(word_tokenizer=tokenize.basic.WordTokenizer(), auto_mode=False), True, False),
    ("cartesia", cartesian(), True, True),
    ("cartesia 44.1 kHz", cartesian(sample_rate=44100), True, True),
    ("deepgram", lambda http: deepgram.TTS(base_url=f"{URL}/v1/speak", **key(http)), True, False),
    ("deepgram flux", lambda http: deepgram.TTSv2(base_url=f"{URL}/v2/speak", **key(http)), True, False),
    ("azure", azure_speech, False, False),
]  # fmt: skip


def check_length(seconds: float, what: str) -> None:
    assert abs(seconds - OWN["seconds"]) <= LENGTH * OWN["seconds"], f"{what}: {seconds:.2f} s"


async def synthesize(service: tts.TTS) -> None:
    stream = service.synthesize(OWN["text"], conn_options=ONCE)
    check_length(sum([event.frame.duration async for event in stream]), "synthesize")
    await stream.aclose()


async def write(stream: tts.SynthesizeStream) -> None:
    for word in OWN["text"].split():
        stream.push_text(f"{word} ")
        await asyncio.sleep(0.002)
    stream.end_input()


async def stream(service: tts.TTS, *, has_times: bool) -> None:
    async with service.stream(conn_options=ONCE) as speech:
        writing = asyncio.create_task(write(speech))
        seconds, words = 0.0, []
        async for event in speech:
            seconds += event.frame.duration
            words += event.frame.userdata.get("lk.timed_transcripts", [])
        await writing
    check_length(seconds, "stream")
    if has_times:
        found = [(str(word).strip(), float(word.start_time)) for word in words]
        assert [word.strip(MARKS) for word, _ in found] == [word["word"].strip(MARKS) for word in OWN["words"]], found
        late_s = max(abs(at - word["start"]) for (_, at), word in zip(found, OWN["words"], strict=True))
        assert late_s <= TIMES_S, f"a word is {1000 * late_s:.0f} ms off"


async def interrupt(service: tts.TTS) -> None:
    """Close a stream in the middle of its audio; nothing may be wrong with the next one."""
    speech = service.stream(conn_options=ONCE)
    writing = asyncio.create_task(write(speech))
    await anext(aiter(speech))
    await speech.aclose()
    writing.cancel()


async def main() -> None:
    failures = 0
    async with aiohttp.ClientSession() as http:
        for name, make, streams, has_times in SERVICES:
            service = make(http)
            try:
                await asyncio.wait_for(synthesize(service), 60)
                if streams:
                    await asyncio.wait_for(stream(service, has_times=has_times), 60)
                    await asyncio.wait_for(interrupt(service), 60)
                    await asyncio.wait_for(stream(service, has_times=has_times), 60)
                print(f"ok\t{name}", flush=True)
            except Exception as error:  # noqa: BLE001 - the next service is checked, too
                failures += 1
                print(f"failed\t{name}: {error!r}"[:400], flush=True)
            finally:
                await service.aclose()
    sys.exit(failures)


asyncio.run(main())
