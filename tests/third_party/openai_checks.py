"""Checks with OpenAI's Python library, run by the interpreter that has it. Arguments: URL and PID of the server.

Only the library and the standard library are imported, so that any version of the library can run this.
"""

import asyncio
import base64
import json
import os
import signal
import sys
import time
import traceback

import openai

LONG = "The old bridge stands still under the water tonight and runs deep. " * 20
SHORT = "deep water"
MAGIC = {
    "mp3": (b"\xff\xf3", b"\xff\xfb", b"\xff\xf2", b"ID3"),
    "opus": (b"OggS",),
    "aac": (b"\xff\xf1", b"\xff\xf9"),
    "flac": (b"fLaC",),
    "wav": (b"RIFF",),
}
MAJOR = openai.__version__.partition(".")[0]
url, pid = sys.argv[1], int(sys.argv[2])


def library(key="first", **options):
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, **{"max_retries": 0, **options})


def speak(client, **options):
    return client.audio.speech.create(**{"model": "kokoro", "voice": "af_heart", "input": SHORT, **options})


def catch(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def every_format():
    with library() as client:
        for name, starts in MAGIC.items():
            assert speak(client, response_format=name).content.startswith(starts), name
        assert speak(client).content.startswith(MAGIC["mp3"])
        pcm = speak(client, response_format="pcm")
        wav = speak(client, response_format="wav").content
        assert len(pcm.content) % 2 == 0
        assert wav.endswith(pcm.content)
        assert pcm.response.headers["content-type"].startswith("audio/pcm")


def every_form_of_a_voice():
    with library() as client:
        responses = [
            speak(client, voice=name, response_format="pcm") for name in ("alloy", "af_alloy", {"id": "af_alloy"})
        ]
        assert {response.response.headers["x-voice-used"] for response in responses} == {"af_alloy"}
        assert speak(client, model="gpt-4o-mini-tts", instructions="calmly", speed=1.5).content
        assert speak(client, extra_body={"language": "en-gb", "seed": 7, "use_gpu": True}).content


def pieces_arrive_while_the_rest_is_synthesised():
    os.kill(pid, signal.SIGUSR2)  # the model speaks two chunks, then waits
    request = {"model": "kokoro", "voice": "af_heart", "input": LONG, "response_format": "pcm"}
    try:
        with library() as client, client.audio.speech.with_streaming_response.create(**request) as response:
            pieces = response.iter_bytes()
            first = next(pieces)
            os.kill(pid, signal.SIGUSR1)
            received = first + b"".join(pieces)
    finally:
        os.kill(pid, signal.SIGUSR1)
    with library() as client:
        assert received == speak(client, input=LONG, response_format="pcm").content


def an_async_client_may_leave_early():
    async def run():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="first", max_retries=0) as client:
            request = {"model": "kokoro", "voice": "af_heart", "input": LONG, "response_format": "pcm"}
            async with client.audio.speech.with_streaming_response.create(**request) as response:
                async for _ in response.iter_bytes():
                    break
            return (await client.audio.speech.create(**{**request, "input": SHORT})).content

    assert asyncio.run(run())


def events_hold_the_same_audio():
    request = {"model": "kokoro", "voice": "af_heart", "input": LONG, "response_format": "pcm"}
    with library() as client:
        whole = speak(client, input=LONG, response_format="pcm").content
        with client.audio.speech.with_streaming_response.create(**request, stream_format="sse") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    assert events[-1]["type"] == "speech.audio.done"
    usage = events[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == whole


def errors_have_their_types():
    with library() as client, library(key="unknown") as unknown:
        error = catch(openai.BadRequestError, lambda: speak(client, voice="af_hart"))
        assert (error.code, error.param) == ("voice_not_found", "voice")
        assert "af_heart" in error.message
        error = catch(openai.BadRequestError, lambda: speak(client, response_format="midi"))
        assert error.param == "response_format"
        assert catch(openai.BadRequestError, lambda: speak(client, speed=9)).param == "speed"
        assert catch(openai.BadRequestError, lambda: speak(client, input="")).param == "input"
        assert catch(openai.NotFoundError, lambda: speak(client, model="whisper-1")).code == "model_not_found"
        assert catch(openai.AuthenticationError, lambda: speak(unknown)).code == "invalid_api_key"
        assert next(model.id for model in client.models.list()) == "kokoro"


def it_waits_for_retry_after():
    blank = " " * 99_000  # nothing to speak, but uses up the characters of this key for more than a minute
    waits = []
    sleep, time.sleep = time.sleep, waits.append
    try:
        with library(key=f"eager{MAJOR}") as client:
            catch(openai.BadRequestError, lambda: speak(client, input=blank))
            error = catch(openai.RateLimitError, lambda: speak(client))
            catch(openai.RateLimitError, lambda: speak(client.with_options(max_retries=2)))
    finally:
        time.sleep = sleep
    assert error.code == "rate_limited"
    retry_after_s = int(error.response.headers["retry-after"])
    assert retry_after_s > 8  # the longest wait the library would choose itself
    assert len(waits) == 2
    assert all(8 < seconds <= 60 for seconds in waits), waits  # each answer names another time


CHECKS = (
    every_format,
    every_form_of_a_voice,
    pieces_arrive_while_the_rest_is_synthesised,
    an_async_client_may_leave_early,
    events_hold_the_same_audio,
    errors_have_their_types,
    it_waits_for_retry_after,
)

if __name__ == "__main__":
    for check in CHECKS:
        try:
            check()
            print(f"{check.__name__}\t")
        except Exception:  # noqa: BLE001
            print(f"{check.__name__}\t{traceback.format_exc()!r}")
    print(f"version\t{openai.__version__}")
