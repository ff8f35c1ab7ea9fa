"""`tutti serve` on the tone model: `serve_jobs.py FOLDER FLAG...`. Records the spoken texts in FOLDER/spoken, and kills
itself (SIGKILL) when READ_TONES_DIE_AFTER passages of a job are stored.
"""

import os
import sys
from pathlib import Path
from typing import Any

from tests.cli.read_with_tones import die_after, log_texts
from tests.fakes import silent_voices, tone_engine
from tutti.cli import main as cli
from tutti.engine.engine import Engine
from tutti.server import run
from tutti.settings import Settings

if __name__ == "__main__":
    folder, *flags = sys.argv[1:]
    (Path(folder) / "voices").mkdir(exist_ok=True)

    def open_engine(settings: Settings, **_: Any) -> Engine:
        return log_texts(tone_engine(silent_voices(Path(folder) / "voices")), Path(folder) / "spoken")

    if n_passages := int(os.environ.get("READ_TONES_DIE_AFTER", "0")):
        die_after(n_passages)
    run.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", "serve", *flags]
    cli.main()
