"""What OpenAI's Python library must see of us, run by the interpreter that has it: URL, the server's PID.

Nothing but the library and the standard library is imported here, so that any of its versions can run it.
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


def say(client, **asked):
    return client.audio.speech.create(**{"model": "kokoro", "voice": "af_heart", "input": SHORT, **asked})


def raised(kind, act):
    try:
        act()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def every_format():
    with library() as client:
        for name, begins in MAGIC.items():
            assert say(client, response_format=name).content.startswith(begins), name
        assert say(client).content.startswith(MAGIC["mp3"])
        pcm = say(client, response_format="pcm")
        wav = say(client, response_format="wav").content
        assert len(pcm.content) % 2 == 0
        assert wav.endswith(pcm.content)
        assert pcm.response.headers["content-type"].startswith("audio/pcm")


def every_spelling_of_a_voice():
    with library() as client:
        asked = [say(client, voice=name, response_format="pcm") for name in ("alloy", "af_alloy", {"id": "af_alloy"})]
        assert {answer.response.headers["x-voice-used"] for answer in asked} == {"af_alloy"}
        assert say(client, model="gpt-4o-mini-tts", instructions="calmly", speed=1.5).content
        assert say(client, extra_body={"language": "en-gb", "seed": 7, "use_gpu": True}).content


def pieces_arrive_while_the_rest_is_made():
    os.kill(pid, signal.SIGUSR2)  # two chunks, then the model waits
    ask = {"model": "kokoro", "voice": "af_heart", "input": LONG, "response_format": "pcm"}
    try:
        with library() as client, client.audio.speech.with_streaming_response.create(**ask) as response:
            pieces = response.iter_bytes()
            first = next(pieces)
            os.kill(pid, signal.SIGUSR1)
            heard = first + b"".join(pieces)
    finally:
        os.kill(pid, signal.SIGUSR1)
    with library() as client:
        assert heard == say(client, input=LONG, response_format="pcm").content


def an_async_client_that_leaves_is_no_trouble():
    async def run():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="first", max_retries=0) as client:
            ask = {"model": "kokoro", "voice": "af_heart", "input": LONG, "response_format": "pcm"}
            async with client.audio.speech.with_streaming_response.create(**ask) as response:
                async for _ in response.iter_bytes():
                    break
            return (await client.audio.speech.create(**{**ask, "input": SHORT})).content

    assert asyncio.run(run())


def events_hold_the_same_sound():
    ask = {"model": "kokoro", "voice": "af_heart", "input": LONG, "response_format": "pcm"}
    with library() as client:
        whole = say(client, input=LONG, response_format="pcm").content
        with client.audio.speech.with_streaming_response.create(**ask, stream_format="sse") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    assert events[-1]["type"] == "speech.audio.done"
    usage = events[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == whole


def errors_have_their_types():
    with library() as client, library(key="unknown") as stranger:
        error = raised(openai.BadRequestError, lambda: say(client, voice="af_hart"))
        assert (error.code, error.param) == ("voice_not_found", "voice")
        assert "af_heart" in error.message
        error = raised(openai.BadRequestError, lambda: say(client, response_format="midi"))
        assert error.param == "response_format"
        assert raised(openai.BadRequestError, lambda: say(client, speed=9)).param == "speed"
        assert raised(openai.BadRequestError, lambda: say(client, input="")).param == "input"
        assert raised(openai.NotFoundError, lambda: say(client, model="whisper-1")).code == "model_not_found"
        assert raised(openai.AuthenticationError, lambda: say(stranger)).code == "invalid_api_key"
        assert next(model.id for model in client.models.list()) == "kokoro"


def it_waits_as_long_as_it_is_told():
    blank = " " * 99_000  # nothing to say, but more characters than this key may ask for in a minute and a half
    slept = []
    sleep, time.sleep = time.sleep, slept.append
    try:
        with library(key=f"eager{MAJOR}") as client:
            raised(openai.BadRequestError, lambda: say(client, input=blank))
            error = raised(openai.RateLimitError, lambda: say(client))
            raised(openai.RateLimitError, lambda: say(client.with_options(max_retries=2)))
    finally:
        time.sleep = sleep
    assert error.code == "rate_limited"
    told_s = int(error.response.headers["retry-after"])
    assert told_s > 8  # the library's own patience ends there
    assert len(slept) == 2
    assert all(8 < seconds <= told_s for seconds in slept), slept


CHECKS = (
    every_format,
    every_spelling_of_a_voice,
    pieces_arrive_while_the_rest_is_made,
    an_async_client_that_leaves_is_no_trouble,
    events_hold_the_same_sound,
    errors_have_their_types,
    it_waits_as_long_as_it_is_told,
)

if __name__ == "__main__":
    for check in CHECKS:
        try:
            check()
            print(f"{check.__name__}\t")
        except Exception:  # noqa: BLE001
            print(f"{check.__name__}\t{traceback.format_exc()!r}")
    print(f"version\t{openai.__version__}")
