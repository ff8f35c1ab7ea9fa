"""`tutti serve` with real text processing and worker process, but a model of tones that takes a given time.

python -m benchmarks.tone_server serve --port 8880     as fast as its process can

TONE_COST="0.004 0.0001": seconds of a pass of a stage, and of each second of its audio, as a device would take them.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tutti.cli import main as cli
from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.model.choice import Choice
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.model.validation import finish_samples
from tutti.server import run
from tutti.settings import Settings
from tutti.speech import SAMPLES_PER_FRAME, Frames, Samples, Utterance
from tutti.text.frontend import G2PPool
from tutti.text.g2p import G2P
from tutti.voices import NAMES, Voices
from tutti.worker.process import ProcessWorker

FRAMES_PER_TOKEN = 2.9  # as Kokoro speaks
FRAME_S = 0.025


class TimedTones(ToneModel):
    """Tones that cost no computing: all rows are parts of one, and a pass takes the given time."""

    def __init__(self, pass_s: float, per_audio_s: float) -> None:
        self._pass_s, self._per_audio_s = pass_s, per_audio_s
        self._tone = np.tile(0.3 * np.sin(np.arange(SAMPLES_PER_FRAME) * 0.1).astype(np.float32), 4000)

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        frames = [tone_frames(row) for row in rows]
        self._wait(frames)
        return frames

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        self._wait(rows)
        return [finish_samples(row, self._tone[: row.n_frames * SAMPLES_PER_FRAME]) for row in rows]

    def _wait(self, rows: Sequence[Frames]) -> None:
        if self._pass_s:
            time.sleep(self._pass_s + self._per_audio_s * FRAME_S * sum(row.n_frames for row in rows))


def tone_frames(row: Utterance) -> Frames:
    durations = np.diff(np.arange(len(row.tokens) + 1) * FRAMES_PER_TOKEN / row.speed, prepend=0)[1:].round()
    durations = np.maximum(1, durations).astype(np.int64)
    curve = np.zeros(2 * int(durations.sum()), np.float32)
    features = np.broadcast_to(np.float32(0), (1, int(durations.sum())))
    return Frames(durations, features, curve, curve, row.style, row.pcm_volume)


def make_models(pass_s: float, per_audio_s: float) -> dict[str, Model]:
    return {CHECKPOINT: TimedTones(pass_s, per_audio_s)}


def open_engine(settings: Settings, folder: Path, **_: Any) -> Engine:
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    cost = [float(value) for value in os.environ.get("TONE_COST", "0 0").split()]
    worker = ProcessWorker(partial(make_models, *cost))
    choices = {CHECKPOINT: Choice("torch", "cuda", "fp16")}  # as on a GPU: full batches, the next one sent ahead
    return assemble([worker], choices, Voices(folder), G2PPool(G2P(settings.home).pronounce), settings, capped=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tutti-tones-") as voices:
        run.open_engine = partial(open_engine, folder=Path(voices))  # type: ignore[assignment]
        sys.argv[0] = "tutti"
        cli.main()
