"""`tutti serve` on the tone model: `serve_tones.py FOLDER FLAG...`. From the third chunk on it waits for SIGUSR1."""

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fakes import silent_voices, tone_engine
from tutti.cli import main as cli
from tutti.engine.engine import Engine
from tutti.model.tone import ToneModel
from tutti.server import run
from tutti.settings import Settings
from tutti.speech import Frames, Samples
from tutti.voices import Voices

resume = threading.Event()


class PausingModel(ToneModel):
    """Speaks two chunks, then waits for SIGUSR1."""

    n_batches = 0

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        self.n_batches += 1
        if self.n_batches > 2:
            resume.wait()
        return super().vocoder(rows)


if __name__ == "__main__":
    folder, *flags = sys.argv[1:]
    signal.signal(signal.SIGUSR1, lambda *_: resume.set())

    def open_engine(settings: Settings, **_: Any) -> Engine:
        voices = Voices(Path(folder)) if any(Path(folder).iterdir()) else silent_voices(Path(folder))
        return tone_engine(voices, PausingModel)

    run.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", "serve", *flags]
    cli.main()
