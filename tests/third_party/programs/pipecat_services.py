"""Pipecat's released services against a server: `python pipecat_services.py URL`; OWN has our own words and length.

Every service speaks a turn that arrives word by word, is interrupted while the server makes audio, and speaks again.
TONE_PID is a server that waits after two batches on SIGUSR2 and goes on at SIGUSR1.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
from loguru import logger
from pipecat.frames.frames import (
    EndFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.cartesia.tts import CartesiaHttpTTSService, CartesiaTTSService
from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService
from pipecat.services.deepgram.tts import DeepgramHttpTTSService, DeepgramTTSService
from pipecat.services.elevenlabs.dialogue.tts import ElevenLabsDialogueTTSService
from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService, ElevenLabsTTSService
from pipecat.services.tts_service import TextAggregationMode
from pipecat.workers.runner import WorkerRunner

URL = sys.argv[1]
WS = URL.replace("http", "ws", 1)
OWN = json.loads(os.environ["OWN"])
PID = int(os.environ.get("TONE_PID", "0"))
BYTES_PER_S = 48_000
TIMES_S, LENGTH = 0.02, 0.1  # allowed differences: of a word's start, and of the length as a share
MARKS = ".,!?"  # that some front ends leave out of a word
TOKEN = TextAggregationMode.TOKEN

Service = Callable[[aiohttp.ClientSession], Any]


def eleven(**options: Any) -> Service:
    settings = ElevenLabsTTSService.Settings(voice="af_heart")
    return lambda _: ElevenLabsTTSService(api_key="any", url=WS, settings=settings, **options)


def cartesian(**options: Any) -> Service:
    settings = CartesiaTTSService.Settings(voice="af_heart")
    return lambda _: CartesiaTTSService(api_key="any", url=f"{WS}/tts/websocket", settings=settings, **options)


# Name, service, and whether it has times of words.
SERVICES: list[tuple[str, Service, bool]] = [
    ("elevenlabs", eleven(), True),
    ("elevenlabs tokens", eleven(text_aggregation_mode=TOKEN), True),
    (
        "elevenlabs dialogue",
        lambda _: ElevenLabsDialogueTTSService(
            api_key="any", url=WS, settings=ElevenLabsDialogueTTSService.Settings(voice="af_heart")
        ),
        True,
    ),
    (
        "elevenlabs http",
        lambda http: ElevenLabsHttpTTSService(
            api_key="any",
            base_url=URL,
            aiohttp_session=http,
            settings=ElevenLabsHttpTTSService.Settings(voice="af_heart"),
        ),
        False,
    ),
    ("cartesia", cartesian(), True),
    ("cartesia tokens", cartesian(text_aggregation_mode=TOKEN), True),
    (
        "cartesia http",
        lambda _: CartesiaHttpTTSService(
            api_key="any", base_url=URL, settings=CartesiaHttpTTSService.Settings(voice="af_heart")
        ),
        False,
    ),
    (
        "deepgram",
        lambda _: DeepgramTTSService(
            api_key="any", base_url=WS, settings=DeepgramTTSService.Settings(voice="af_heart")
        ),
        False,
    ),
    (
        "deepgram flux",
        lambda _: DeepgramFluxTTSService(
            api_key="any", url=f"{WS}/v2/speak", settings=DeepgramFluxTTSService.Settings(voice="af_heart")
        ),
        False,
    ),
    (
        "deepgram http",
        lambda http: DeepgramHttpTTSService(
            api_key="any",
            base_url=URL,
            aiohttp_session=http,
            settings=DeepgramHttpTTSService.Settings(voice="af_heart"),
        ),
        False,
    ),
]


class Recorder(FrameProcessor):
    """Collects audio and timed words."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self.n_bytes = 0
        self.words: list[tuple[str, float]] = []

    async def process_frame(self, frame: Any, direction: Any) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self.n_bytes += len(frame.audio)
        elif isinstance(frame, TTSTextFrame) and frame.pts:
            self.words.append((frame.text.strip(), frame.pts / 1e9))
        await self.push_frame(frame, direction)

    async def has(self, n_bytes: float) -> None:
        async with asyncio.timeout(30):
            while self.n_bytes < n_bytes:
                await asyncio.sleep(0.01)


async def turn(worker: Any) -> None:
    words = [LLMTextFrame(f"{word} ") for word in OWN["text"].split()]
    await worker.queue_frames([LLMFullResponseStartFrame(), *words, LLMFullResponseEndFrame()])


async def check_turn(worker: Any, recorder: Recorder, *, has_times: bool) -> None:
    recorder.clear()
    await turn(worker)
    await recorder.has((1 - LENGTH) * OWN["seconds"] * BYTES_PER_S)
    async with asyncio.timeout(30):
        while has_times and len(recorder.words) < len(OWN["words"]):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)  # for audio that is too much
    seconds = recorder.n_bytes / BYTES_PER_S
    assert abs(seconds - OWN["seconds"]) <= LENGTH * OWN["seconds"], f"{seconds:.2f} s, not {OWN['seconds']:.2f}"
    if has_times:
        spoken = [word.strip(MARKS) for word, _ in recorder.words]
        assert spoken == [word["word"].strip(MARKS) for word in OWN["words"]], recorder.words
        first_s, own_s = recorder.words[0][1], OWN["words"][0]["start"]
        pairs = zip(recorder.words, OWN["words"], strict=True)
        late_s = max(abs(at - first_s - (word["start"] - own_s)) for (_, at), word in pairs)
        assert late_s <= TIMES_S, f"a word is {1000 * late_s:.0f} ms off"


async def interrupt(worker: Any, recorder: Recorder) -> None:
    """Interrupt while the server waits with the rest; no byte of it may come later."""
    recorder.clear()
    os.kill(PID, signal.SIGUSR2)
    try:
        await turn(worker)
        await recorder.has(1)
        await worker.queue_frame(InterruptionFrame())
        await asyncio.sleep(0.8)
        n_bytes = recorder.n_bytes
    finally:
        os.kill(PID, signal.SIGUSR1)
    await asyncio.sleep(0.8)
    assert recorder.n_bytes == n_bytes, f"{recorder.n_bytes - n_bytes} bytes after the interruption"


async def check(service: Any, *, has_times: bool, streams: bool) -> None:
    recorder = Recorder()
    worker = PipelineWorker(Pipeline([service, recorder]), params=PipelineParams(audio_out_sample_rate=24_000))
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    try:
        await check_turn(worker, recorder, has_times=has_times)
        if PID and streams:
            await interrupt(worker, recorder)
            await check_turn(worker, recorder, has_times=has_times)
        await worker.queue_frame(EndFrame())
        await asyncio.wait_for(running, 20)
    finally:
        running.cancel()


async def main() -> None:
    logger.remove()
    failures = 0
    async with aiohttp.ClientSession() as http:
        for name, make, has_times in SERVICES:
            try:
                await asyncio.wait_for(check(make(http), has_times=has_times, streams="http" not in name), 90)
                print(f"ok\t{name}", flush=True)
            except Exception as error:  # noqa: BLE001 - the next service is checked, too
                failures += 1
                print(f"failed\t{name}: {error!r}"[:600], flush=True)
    os._exit(failures)  # some services leave tasks behind


asyncio.run(main())
