"""`tutti serve` on the tone model: `serve_tones.py FOLDER FLAG...`. From the third chunk on it waits for SIGUSR1."""

import signal
import sys
from pathlib import Path
from typing import Any

from tests.fakes import Gate, GatedModel, silent_voices, tone_engine
from tutti.cli import main as cli
from tutti.engine.engine import Engine
from tutti.server import run
from tutti.settings import Settings
from tutti.voices import Voices

if __name__ == "__main__":
    folder, *flags = sys.argv[1:]
    gate = Gate(n_permits=2)
    signal.signal(signal.SIGUSR1, gate.open)

    def open_engine(settings: Settings, **_: Any) -> Engine:
        voices = Voices(Path(folder)) if any(Path(folder).iterdir()) else silent_voices(Path(folder))
        return tone_engine(voices, lambda: GatedModel(gate=gate))

    run.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", "serve", *flags]
    cli.main()
