"""`tutti bulk` on the tone model: `bulk_with_tones.py FOLDER FLAG…`.

BULK_TONES_ROW_S: seconds that each row takes. Each batch that ran is a line of sizes in FOLDER/batches.
"""

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.fakes import silent_voices, tone_engine
from tutti.cli import main as cli
from tutti.engine import build
from tutti.engine.engine import Engine
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import Frames, Samples
from tutti.voices import Voices


class SlowTones(ToneModel):
    """Takes a fixed time for each row, and logs its batches."""

    def __init__(self, folder: Path, row_s: float) -> None:
        self._folder, self._row_s = folder, row_s

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        with (self._folder / "batches").open("a") as file:
            file.write(" ".join(str(row.n_frames) for row in rows) + "\n")
        time.sleep(self._row_s * len(rows))
        return super().vocoder(rows)


def open_engine(settings: Settings, folder: Path, **_: Any) -> Engine:
    voices = folder / "voices"
    if not voices.exists():
        voices.mkdir()
        silent_voices(voices)
    row_s = float(os.environ.get("BULK_TONES_ROW_S", "0"))
    return tone_engine(Voices(voices, settings.voices), partial(SlowTones, folder, row_s))


if __name__ == "__main__":
    # By its importable name, so that actors find it, too.
    from tests.bulk import bulk_with_tones

    build.open_engine = partial(bulk_with_tones.open_engine, folder=Path(sys.argv[1]))  # type: ignore[assignment]
    sys.argv = ["tutti", *sys.argv[2:]]
    cli.main()
