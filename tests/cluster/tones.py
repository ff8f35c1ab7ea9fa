"""Replicas on the tone model, for tests and benchmarks: `build` is that of the product with another engine."""

import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tutti_ray.replica import Replica

from tests.fakes import Spelling, silent_voices
from tutti.engine.build import CHECKPOINT, assemble, chunk_sizes
from tutti.engine.engine import Engine
from tutti.model.choice import Choice
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import Frames, Samples
from tutti.text.frontend import G2PThread
from tutti.worker.process import ProcessWorker


class SlowTones(ToneModel):
    """Takes a fixed time for each row, as a device would."""

    def __init__(self, row_s: float) -> None:
        super().__init__()
        self._row_s = row_s

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        time.sleep(self._row_s * len(rows))
        return super().vocoder(rows)


def make_models(row_s: float) -> dict[str, Model]:
    return {CHECKPOINT: SlowTones(row_s)}


def slow_tone_engine(settings: Settings, row_s: float) -> Engine:
    """An engine as in production: its model in a process of its own, and its costs measured at the start."""
    folder = Path(tempfile.mkdtemp(prefix="tutti-voices-"))
    frontend = G2PThread(Spelling().pronounce, sizes=chunk_sizes(settings))
    choices = {CHECKPOINT: Choice("onnx", "cpu", "fp32")}
    worker, costs = ProcessWorker(partial(make_models, row_s)), folder / "costs.json"
    return assemble([worker], choices, silent_voices(folder), frontend, settings, capped=True, cost_file=costs)


class ToneReplica(Replica):
    """A replica whose rows take 20 ms; or, if TONE_SPEEDS names a file, as long as it says for the next replica."""

    def open_engine(self, settings: Settings) -> Engine:
        return slow_tone_engine(settings, _row_s() if "TONE_SPEEDS" in os.environ else 0.02)


def _row_s() -> float:
    """The first speed that no other replica has claimed, else the last."""
    speeds = json.loads(Path(os.environ["TONE_SPEEDS"]).read_text())
    for n, row_s in enumerate(speeds["row_s"]):
        with suppress(FileExistsError):
            (Path(speeds["claims"]) / str(n)).mkdir()
            return float(row_s)
    return float(speeds["row_s"][-1])


def build(args: dict[str, Any]) -> Any:
    from tutti_ray.app import deploy
    from tutti_ray.options import parse_options

    return deploy(ToneReplica, parse_options(args))
