"""`tutti serve` with the tone model: `python -m tests.third_party.tone_server FOLDER FLAG...`.

SIGUSR2: the model waits after its next two batches. SIGUSR1: it continues.
"""

import signal
import sys
from pathlib import Path
from typing import Any

from tests.fakes import Gate, GatedModel, silent_voices, tone_engine
from tutti.cli import main as cli
from tutti.engine.engine import Engine
from tutti.server import run
from tutti.settings import Settings

gate = Gate()


def open_engine(settings: Settings, **_: Any) -> Engine:
    return tone_engine(silent_voices(Path(folder)), lambda: GatedModel(gate=gate), max_queue=settings.max_queue)


if __name__ == "__main__":
    folder, *flags = sys.argv[1:]
    signal.signal(signal.SIGUSR1, gate.open)
    signal.signal(signal.SIGUSR2, lambda *_: gate.close(n_permits=2))
    run.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", "serve", *flags]
    cli.main()
