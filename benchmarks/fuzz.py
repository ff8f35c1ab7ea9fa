"""Read generated texts: none may crash the front end, lose a word, or take more than linear time.

python -m benchmarks.fuzz --inputs 100000                  10 minutes, without model files

Half of the texts are random, half are made of pieces that mean something to the front end: marks, tags, numbers, links,
Markdown, several scripts. Each is read with a G2P in which a word sounds as it is written, and once more between two
known words, which must be heard. Every fiftieth is also read 8 and 64 times in a row: the latter may take at most
twelve times as long.
"""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from tests.fakes import Spelling
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text.user_lexicon import UserLexicon

RESULTS = Path(__file__).parent / "results" / "fuzz.json"
PIECES = (
    *(
        "the ",
        "water ",
        "deep. ",
        "Mr. ",
        "U.S. ",
        "e.g. ",
        "3.5 ",
        "$5.20 ",
        "10:30pm ",
        "1990s ",
        "1/2 ",
        "50% ",
        "#1 ",
    ),
    *(
        "[pause:1s]",
        "[rate:1.2]",
        "[/rate]",
        "[voice:af_sky]",
        "[lang:fr]",
        "[deep](/dip/)",
        "[",
        "]",
        "](",
        "<",
        ">",
        "&",
    ),
    *(
        "<speak>",
        "</speak>",
        "<break time='1s'/>",
        "<p>",
        "&amp;",
        "&#0;",
        "`",
        "```\n",
        "* ",
        "# ",
        "| a | b |\n",
        "> ",
    ),
    *("\n", "\n\n", "\r\n", "\t", "\u200b", "\u202e", "\0", "\ufeff", "\ud800", "😀", "👩\u200d👩", "é", "e\u0301" * 9),
    *("日本語。", "你好，", "привет ", "مرحبا ", "हिन्दी ", "http://a.b/c?d=e ", "a@b.co ", "x^2 ", "--", "…", "“", "”"),
)
LEXICONS = ({}, {"water": "/wˈɔtɚ/"}, {"/d\\w+/": "deep deep"}, {"the water": "sea"})
MAX_RATIO = 12.0  # of the time for eight times the text to that for the text; linear is 8


def make_text(pick: random.Random) -> str:
    if pick.random() < 0.5:
        return "".join(chr(pick.choice((pick.randrange(128), pick.randrange(0x3100), pick.randrange(0x11000))))
                       for _ in range(pick.randrange(1, 200)))  # fmt: skip
    return "".join(pick.choices(PIECES, k=pick.randrange(1, 40)))


def read(text: str, lexicon: UserLexicon | None) -> list[str] | None:
    """The words of a text; None if it is refused."""
    try:
        return [word.phonemes for chunk in chunks(text, "en-us", Spelling().pronounce, lexicon) for word in chunk.words]
    except InvalidInput:
        return None


def cpu_s(text: str) -> float:
    started_s = time.process_time()
    read(text, None)
    return time.process_time() - started_s


def main(
    inputs: Annotated[int, typer.Option(help="How many texts.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Of the texts.")] = 1,
    out: Annotated[Path, typer.Option(help="Result file.")] = RESULTS,
) -> None:
    """Read the texts and write the result to a file."""
    pick, counts, slowest = random.Random(seed), Counter[str](), (0.0, "")
    for n in range(inputs):
        text, entries = make_text(pick), pick.choice(LEXICONS)
        started_s = time.process_time()
        try:
            words = read(text, UserLexicon.of(entries) if entries else None)
        except Exception as exc:  # noqa: BLE001 - the finding
            counts["crashed"] += 1
            print(f"crashed on {text!r}: {exc!r}")
            continue
        slowest = max(slowest, (time.process_time() - started_s, text))
        counts["refused" if words is None else "read"] += 1
        marked = f"zebra {text} zebra"
        more = read(marked, None) if words is not None and not entries and "<" not in text else None
        if more is not None and "zebra" not in "".join(more):
            counts["lost a word"] += 1
            print(f"lost a word of {marked!r}")
        if n % 50 == 0 and words:
            base = max(cpu_s(text * 8), 1e-3)
            counts["not linear"] += cpu_s(text * 64) / base > MAX_RATIO
            counts["measured"] += 1
    result = {"inputs": inputs, "seed": seed, **counts, "slowest_ms": round(1000 * slowest[0], 1)}
    print(result)
    print(f"slowest: {slowest[1]!r}")
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
