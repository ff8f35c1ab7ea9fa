"""Run `tutti read` on the tone model: `python -m tests.cli.read_with_tones FOLDER OPTION...`.

Every text given to the engine is logged in FOLDER/spoken. With READ_TONES_DIE_AFTER=n the process kills itself while it
stores passage n + 1.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from tests.fakes import silent_voices, tone_engine
from tutti.audiobook.journal import Journal
from tutti.cli import main as cli
from tutti.engine import build
from tutti.engine.engine import Engine
from tutti.engine.request import StreamRequest
from tutti.settings import Settings
from tutti.speech import Speech


def log_texts(engine: Engine, path: Path) -> Engine:
    """Make the engine log every text that it is given."""
    stream = engine.stream

    def logged_stream(request: StreamRequest) -> AsyncGenerator[Speech]:
        with path.open("a") as file:
            file.write(json.dumps(request.text) + "\n")
        return stream(request)

    engine.stream = logged_stream  # type: ignore[method-assign, assignment]
    return engine


def die_after(n_passages: int) -> None:
    """Kill this process while it stores the passage after the first `n_passages`."""
    save = Journal.save

    def save_or_die(journal: Journal, n: int, speech: Speech) -> None:
        if len(journal.n_samples) == n_passages:
            journal._db.execute("DELETE FROM about")  # a transaction that is never committed
            os.kill(os.getpid(), signal.SIGKILL)
        save(journal, n, speech)

    Journal.save = save_or_die  # type: ignore[method-assign]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "voices").mkdir(exist_ok=True)

    def open_engine(settings: Settings, **_: Any) -> Engine:
        return log_texts(tone_engine(silent_voices(folder / "voices")), folder / "spoken")

    if n_passages := int(os.environ.get("READ_TONES_DIE_AFTER", "0")):
        die_after(n_passages)
    build.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", *sys.argv[2:]]
    cli.main()
