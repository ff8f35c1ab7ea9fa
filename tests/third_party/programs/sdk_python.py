"""The Python SDKs of ElevenLabs, Cartesia and Deepgram against a server: `python sdk_python.py URL`. Each call."""

import base64
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from cartesia import Cartesia
from deepgram import DeepgramClient
from deepgram.environment import DeepgramClientEnvironment
from elevenlabs import DialogueInput
from elevenlabs.client import ElevenLabs

URL = sys.argv[1]
WS = URL.replace("http", "ws", 1)
OWN = json.loads(os.environ["OWN"])
TEXT, N_WORDS = OWN["text"], len(OWN["words"])
RAW: Any = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000}
LENGTH = 0.1  # allowed difference, as a share

eleven = ElevenLabs(base_url=URL, api_key="any")
cartesia = Cartesia(base_url=URL, api_key="any", websocket_base_url=WS)
deepgram = DeepgramClient(
    api_key="any", environment=DeepgramClientEnvironment(base=URL, production=WS, agent=WS, agent_rest=URL)
)


def check(audio: bytes | Iterable[bytes], seconds: float = OWN["seconds"], bytes_per_s: int = 48_000) -> None:
    n_bytes = len(audio if isinstance(audio, bytes) else b"".join(audio))
    found = n_bytes / bytes_per_s
    assert abs(found - seconds) <= LENGTH * seconds, f"{found:.2f} s, not {seconds:.2f}"


def eleven_speech() -> None:
    options: dict[str, Any] = {"text": TEXT, "output_format": "pcm_24000"}
    check(eleven.text_to_speech.convert("af_heart", **options))
    check(eleven.text_to_speech.stream("af_heart", **options))
    whole = eleven.text_to_speech.convert_with_timestamps("af_heart", **options)
    check(base64.b64decode(whole.audio_base_64))
    assert whole.alignment
    assert "".join(whole.alignment.characters).split() == TEXT.split()
    lines = list(eleven.text_to_speech.stream_with_timestamps("af_heart", **options))
    check(base64.b64decode(line.audio_base_64) for line in lines)


def eleven_dialogue() -> None:
    inputs = [DialogueInput(text=text, voice_id="af_heart") for text in OWN["sentences"]]
    check(eleven.text_to_dialogue.convert(inputs=inputs, output_format="pcm_24000"))
    check(eleven.text_to_dialogue.stream(inputs=inputs, output_format="pcm_24000"))


def eleven_lists() -> None:
    assert len(eleven.voices.get_all().voices) == len(eleven.voices.search().voices) == 54
    assert eleven.voices.get("af_heart").voice_id == "af_heart"
    assert eleven.voices.settings.get("af_heart").speed == 1
    assert eleven.models.list()
    assert eleven.user.get().subscription.status == eleven.user.subscription.get().status == "active"


def cartesia_speech() -> None:
    options: dict[str, Any] = {"model_id": "sonic-3", "transcript": TEXT, "voice": {"mode": "id", "id": "af_heart"}}
    check(cartesia.tts.generate(**options, output_format=RAW).read())
    float_wav: Any = {"container": "wav", "encoding": "pcm_f32le", "sample_rate": 44100}
    check(cartesia.tts.generate(**options, output_format=float_wav).read(), bytes_per_s=4 * 44_100)
    events = list(cartesia.tts.generate_sse(**options, output_format=RAW, add_timestamps=True))
    check(b"".join(event.audio or b"" for event in events if event.type == "chunk"))
    assert sum(len(event.word_timestamps.words) for event in events if event.type == "timestamps") == N_WORDS


def cartesia_socket() -> None:
    options: dict[str, Any] = {"model_id": "sonic-3", "voice": {"mode": "id", "id": "af_heart"}, "output_format": RAW}
    with cartesia.tts.websocket_connect() as connection:
        context = connection.context(**options, add_timestamps=True)
        for text in OWN["sentences"]:
            context.push(text)
        context.no_more_inputs()
        audio, n_words = b"", 0
        for event in context.receive():
            audio += event.audio or b"" if event.type == "chunk" else b""
            n_words += len(event.word_timestamps.words) if event.type == "timestamps" else 0
    check(audio)
    assert n_words == N_WORDS


def cartesia_voices() -> None:
    assert next(iter(cartesia.voices.list())).id
    assert cartesia.voices.get("af_heart").id == "af_heart"


def deepgram_speech() -> None:
    options: dict[str, Any] = {"text": TEXT, "model": "aura-2-thalia-en", "encoding": "linear16", "container": "none"}
    check(deepgram.speak.v1.audio.generate(**options))
    check(deepgram.speak.v2.audio.generate(**options))


def deepgram_socket(version: str) -> None:
    from deepgram.speak.v1.types import SpeakV1Text
    from deepgram.speak.v2.types import SpeakV2Speak

    client = getattr(deepgram.speak, version)
    with client.connect(model="aura-2-thalia-en", encoding="linear16", sample_rate="24000") as connection:
        for text in OWN["sentences"]:
            if version == "v1":
                connection.send_text(SpeakV1Text(type="Speak", text=text))
            else:
                connection.send_speak(SpeakV2Speak(type="Speak", text=text))
        connection.send_flush()
        audio = b""
        for message in connection:
            if isinstance(message, bytes):
                audio += message
            elif getattr(message, "type", "") == "Flushed":
                break
        connection.send_close()
    check(audio)


CALLS: dict[str, Callable[[], None]] = {
    "elevenlabs speech": eleven_speech,
    "elevenlabs dialogue": eleven_dialogue,
    "elevenlabs lists": eleven_lists,
    "cartesia speech": cartesia_speech,
    "cartesia socket": cartesia_socket,
    "cartesia voices": cartesia_voices,
    "deepgram speech": deepgram_speech,
    "deepgram socket": lambda: deepgram_socket("v1"),
    "deepgram flux socket": lambda: deepgram_socket("v2"),
}

failures = 0
for name, call in CALLS.items():
    try:
        call()
        print(f"ok\t{name}", flush=True)
    except Exception as error:  # noqa: BLE001 - the next call is checked, too
        failures += 1
        print(f"failed\t{name}: {error!r}"[:600], flush=True)
sys.exit(failures)
