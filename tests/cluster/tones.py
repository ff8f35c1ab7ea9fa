"""Replicas on the tone model, for tests and benchmarks: `build` is that of the product with another engine."""

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.fakes import silent_voices, tone_engine
from tutti.cluster.replica import Replica
from tutti.engine.engine import Engine
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import Frames, Samples
from tutti.worker.process import ProcessWorker


class SlowTones(ToneModel):
    """Takes a fixed time for each row, as a device would."""

    def __init__(self, row_s: float) -> None:
        super().__init__()
        self._row_s = row_s

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        time.sleep(self._row_s * len(rows))
        return super().vocoder(rows)


def slow_tone_engine(settings: Settings, row_s: float) -> Engine:
    """An engine whose model is in a process of its own, as in production."""
    voices = silent_voices(Path(tempfile.mkdtemp(prefix="tutti-voices-")))
    chosen = settings.model_dump(exclude_unset=True)
    return tone_engine(voices, partial(SlowTones, row_s), worker=ProcessWorker, capped=True, **chosen)


class ToneReplica(Replica):
    """A replica whose rows take TONE_ROW_S seconds; of several values each replica takes the next, then the last."""

    def open_engine(self, settings: Settings) -> Engine:
        *first, last = os.environ.get("TONE_ROW_S", "0.02").split()
        for n, row_s in enumerate(first):
            with suppress(FileExistsError):
                (Path(os.environ["TONE_CLAIMS"]) / str(n)).mkdir()
                return slow_tone_engine(settings, float(row_s))
        return slow_tone_engine(settings, float(last))


def build(args: dict[str, Any]) -> Any:
    from tutti.cluster.app import deploy
    from tutti.cluster.options import parse_options

    return deploy(ToneReplica, parse_options(args))
