"""`tutti serve` on the tone model, for clients: `python -m tests.third_party.tones FOLDER FLAG...`.

SIGUSR2: the next streams stop after their second chunk. SIGUSR1: they go on.
"""

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


class Curtain:
    """Who may speak on."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.n_said = 0
        self.rise()

    def rise(self, *_: object) -> None:
        self.open.set()

    def fall(self, *_: object) -> None:
        self.n_said = 0
        self.open.clear()


curtain = Curtain()


class Held(ToneModel):
    """Says two batches, then waits for the curtain."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        curtain.n_said += 1
        if curtain.n_said > 2:
            curtain.open.wait()
        return super().vocoder(rows)


def open_engine(settings: Settings, **_: Any) -> Engine:
    return tone_engine(silent_voices(Path(folder)), Held, max_queue=settings.max_queue)


if __name__ == "__main__":
    folder, *flags = sys.argv[1:]
    signal.signal(signal.SIGUSR1, curtain.rise)
    signal.signal(signal.SIGUSR2, curtain.fall)
    run.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", "serve", *flags]
    cli.main()
