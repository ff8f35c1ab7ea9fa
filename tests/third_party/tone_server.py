"""`tutti serve` with the tone model: `python -m tests.third_party.tone_server FOLDER FLAG...`.

SIGUSR2: the model waits after its next two batches. SIGUSR1: it continues.
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


class Hold:
    """Whether the model may continue."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.n_batches = 0
        self.release()

    def release(self, *_: object) -> None:
        self.released.set()

    def engage(self, *_: object) -> None:
        self.n_batches = 0
        self.released.clear()


hold = Hold()


class HoldableModel(ToneModel):
    """Speaks two batches, then waits for `release`."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        hold.n_batches += 1
        if hold.n_batches > 2:
            hold.released.wait()
        return super().vocoder(rows)


def open_engine(settings: Settings, **_: Any) -> Engine:
    return tone_engine(silent_voices(Path(folder)), HoldableModel, max_queue=settings.max_queue)


if __name__ == "__main__":
    folder, *flags = sys.argv[1:]
    signal.signal(signal.SIGUSR1, hold.release)
    signal.signal(signal.SIGUSR2, hold.engage)
    run.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", "serve", *flags]
    cli.main()
