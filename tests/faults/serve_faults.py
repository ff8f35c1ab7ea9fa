"""`tutti serve` on the tone model with a real worker and a real G2P process: `serve_faults.py FOLDER FLAG...`.

The limits after which a process counts as hung are short, so that tests need not wait for them. In the environment:
TONE_ADMISSION (with admission control, as a real server has it), TONE_G2P (real G2P instead of words as they are
written), TONE_MISBEHAVES (the model fails on some rows), TONE_PACED (it takes time), TONE_CLOCK (a file with the
seconds by which the wall clock is wrong), TONE_BEAT_S (how often HTTP processes are asked whether they answer),
TONE_OPENS and TONE_LOOP (files in which to note which files are opened, and how long the loop is held), TONE_BUSY (HTTP
processes answer all requests for speech), TONE_FULL (the same, and every stream is refused), TONE_HUNG_BEATS (for how
long an HTTP process may hang), TONE_HTTP_DIES (HTTP processes die at their start).
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.fakes import Spelling, silent_voices
from tests.faults.loop_watch import LoopWatch
from tests.faults.misbehaving import MisbehavingModel
from tutti.admission import refusals
from tutti.cli import main as cli
from tutti.engine import device
from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.engine.playback import FRAME_S
from tutti.errors import QueueFull
from tutti.model.choice import Choice
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.server import run
from tutti.server.front import child_main, pool
from tutti.server.front.placement import EngineLoad
from tutti.settings import Settings
from tutti.speech import Frames, Samples, Span, Speech
from tutti.text import g2p_process
from tutti.text.frontend import G2PPool
from tutti.text.g2p import G2P
from tutti.voices import Voices
from tutti.worker.process import ProcessWorker

HANG_S = 3.0


def die(*_: Any) -> None:
    os._exit(3)


if "TONE_FULL" in os.environ or "TONE_BUSY" in os.environ:  # here, since HTTP processes import this, too
    EngineLoad.is_busy = property(lambda _: True)  # type: ignore[assignment, method-assign]
if "TONE_HTTP_DIES" in os.environ:
    child_main.main = die
if "TONE_FULL" in os.environ:
    refusals.REFUSAL_S = 3600.0


def tone_models() -> dict[str, Model]:
    return {CHECKPOINT: ToneModel()}


class PacedToneModel(ToneModel):
    """Tones that take as long as on a device that speaks ten seconds in one."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        n_frames = [row.end - row.start if isinstance(row, Span) else row.n_frames for row in rows]
        time.sleep(0.1 * FRAME_S * sum(n_frames))
        return super().vocoder(rows)


def paced_models() -> dict[str, Model]:
    return {CHECKPOINT: PacedToneModel()}


def misbehaving_models() -> dict[str, Model]:
    return {CHECKPOINT: MisbehavingModel()}


class FullEngine(Engine):
    """Refuses every stream."""

    async def stream(self, *_: Any, **__: Any) -> AsyncGenerator[Speech]:
        self.count_refusal()
        full = QueueFull("full", retry_after_s=3)
        self.refusals.keep(full, refusals.Asking(CHECKPOINT, None), time.monotonic())
        raise full
        yield


def open_engine(folder: Path, settings: Settings, **_: Any) -> Engine:
    voices = Voices(folder) if any(folder.iterdir()) else silent_voices(folder)
    choices = {CHECKPOINT: Choice("onnx", "cpu", "fp32", vocoder="light")}
    models = misbehaving_models if "TONE_MISBEHAVES" in os.environ else tone_models
    models = paced_models if "TONE_PACED" in os.environ else models
    worker = ProcessWorker(models, backoff_s=lambda _: 0.0)
    capped = "TONE_ADMISSION" in os.environ  # with admission control, as a real server has it
    pronounce = G2P(settings.home).pronounce if "TONE_G2P" in os.environ else Spelling().pronounce
    engine = assemble([worker], choices, voices, G2PPool(pronounce), settings, capped=capped)
    if "TONE_FULL" in os.environ:
        engine.__class__ = FullEngine
    return engine


serve = run._serve


async def serve_watched(*args: Any) -> None:
    watching = asyncio.create_task(LoopWatch(Path(os.environ["TONE_LOOP"])).watch())
    try:
        await serve(*args)
    finally:
        watching.cancel()


if __name__ == "__main__":
    folder, *flags = sys.argv[1:]
    if path := os.environ.get("TONE_OPENS"):  # where to list every file that the server opens
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def record(event: str, args: tuple[Any, ...]) -> None:
            if event == "open":
                os.write(descriptor, f"{args[0]}\n".encode("utf-8", "replace"))

        sys.addaudithook(record)
    if path := os.environ.get("TONE_CLOCK"):
        true_time, clock = time.time, Path(path)
        time.time = lambda: true_time() + float(clock.read_text())
    if "TONE_LOOP" in os.environ:  # where to note how long the event loop is held
        run._serve = serve_watched
    device.MIN_HANG_S = HANG_S  # type: ignore[misc]
    g2p_process.HANG_S = HANG_S  # type: ignore[misc]
    g2p_process.STALLED_S = 0.3  # type: ignore[misc]
    pool.HUNG_BEATS = int(os.environ.get("TONE_HUNG_BEATS", pool.HUNG_BEATS))
    pool.BEAT_S = float(os.environ.get("TONE_BEAT_S", pool.BEAT_S))
    run.open_engine = partial(open_engine, Path(folder))  # type: ignore[assignment]
    sys.argv = ["tutti", "serve", *flags]
    cli.main()
