"""`tutti read` on the tone model: `read_tones.py FOLDER FLAG...`. Every text that is spoken is noted in FOLDER/said;
with READ_TONES_DIE_AFTER=n the process dies as by `kill -9` when n passages are kept and more are on their way.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from tests.fakes import silent_voices, tone_engine
from tutti.audiobook.journal import Journal, Kept
from tutti.cli import main as cli
from tutti.engine import build as opening
from tutti.engine.engine import Engine
from tutti.settings import Settings
from tutti.speech import Speech, SpeechParams


def noted(engine: Engine, path: Path) -> Engine:
    """The engine, which writes down what it is asked to say."""
    stream = engine.stream

    def noting(text: str, params: SpeechParams, **asked: Any) -> AsyncGenerator[Speech]:
        with path.open("a") as file:
            file.write(json.dumps(text) + "\n")
        return stream(text, params, **asked)

    engine.stream = noting  # type: ignore[method-assign, assignment]
    return engine


def mortal(n_passages: int) -> None:
    """The process dies in the middle of keeping the next passage."""
    keep = Journal.keep

    def dying(journal: Journal, n: int, kept: Kept) -> None:
        if len(journal.n_samples) == n_passages:
            journal._db.execute("DELETE FROM about")  # a transaction that is never ended
            os.kill(os.getpid(), signal.SIGKILL)
        keep(journal, n, kept)

    Journal.keep = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "voices").mkdir(exist_ok=True)

    def open_engine(settings: Settings) -> Engine:
        return noted(tone_engine(silent_voices(folder / "voices")), folder / "said")

    if after := int(os.environ.get("READ_TONES_DIE_AFTER", "0")):
        mortal(after)
    opening.open_engine = open_engine  # type: ignore[assignment]
    sys.argv = ["tutti", *sys.argv[2:]]
    cli.main()
