"""How far are our phonemes from those of misaki, with which checkpoints of other languages were trained?

    python -m benchmarks.front_end prose.txt --language de --misaki /tmp/env/bin/python

The file has a sentence of plain words a line; the interpreter is one of an environment with misaki and espeak-ng.
Both sides are cut to the symbols that we know. Word boundaries count, punctuation and stress do as well.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rapidfuzz.distance import Levenshtein

from tutti import settings
from tutti.text import chunks
from tutti.text.g2p import G2P
from tutti.text.vocab import IDS

# Runs in the other environment: JSON lines in, JSON lines out.
SCRIPT = """
import json, sys
if sys.argv[1].startswith("zh"):
    from misaki import zh
    g2p = zh.ZHG2P(version="1.1")
else:
    from misaki import espeak
    g2p = espeak.EspeakG2P(language=sys.argv[1])
for line in sys.stdin:
    print(json.dumps(g2p(json.loads(line))[0]), flush=True)
"""


def main(
    prose: Annotated[Path, typer.Argument(help="a sentence a line")],
    language: Annotated[str, typer.Option()],
    misaki: Annotated[Path, typer.Option(help="the Python of an environment with misaki")],
    show: Annotated[int, typer.Option(help="how many of the worst lines to show")] = 10,
) -> None:
    lines = prose.read_text("utf-8").splitlines()
    ours = list(map(_spoken(language), lines))
    command = [str(misaki), "-c", SCRIPT, language]
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    theirs = [_known(json.loads(line)) for line in done.stdout.splitlines() if line.startswith(chr(34))]
    rows = sorted(
        ((Levenshtein.distance(a, b), a, b) for a, b in zip(ours, theirs, strict=True)), key=lambda row: -row[0]
    )
    for n_wrong, a, b in rows[:show]:
        if n_wrong:
            print(f"{n_wrong}\n   ours   {a}\n   misaki {b}")
    n_wrong, n_symbols = sum(row[0] for row in rows), sum(map(len, theirs))
    n_same = sum(row[0] == 0 for row in rows)
    print(f"{language}: {len(rows)} lines, {n_same} the same, {100 * n_wrong / n_symbols:.2f} % of symbols differ")


def _spoken(language: str):  # type: ignore[no-untyped-def]
    g2p = G2P(settings.load({})[0].home)
    return lambda line: _known(" ".join(chunk.phonemes for chunk in chunks(line, language, g2p.pronounce)))


def _known(phonemes: str) -> str:
    phonemes = re.sub(r"\s+(?=[,.;:!?…])|([,.;:!?…])\s+(?=[,.;:!?…])", r"\1", phonemes)
    return " ".join("".join(symbol for symbol in phonemes if symbol in IDS).split())


if __name__ == "__main__":
    typer.run(main)
