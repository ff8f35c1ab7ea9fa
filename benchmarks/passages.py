"""Text as language models write it: how many words does the front end say wrong?

    python -m benchmarks.passages                    the passages that the front end was developed with
    python -m benchmarks.passages --part all         these and those that were held out
    python -m benchmarks.passages --against ed396e2  the same for another commit, in a worktree of its own
    python -m benchmarks.passages --data written     300 lines of numbers, money, dates, chat, law and others
    python -m benchmarks.passages --data written-fr  100 lines of French; also es, it, pt-br, hi, ja, zh, de, sv …

A passage and its expected words (data/*.toml) become phonemes by the same G2P; an expected word is wrong if any
of its phonemes differs, and so is every word that should not be there. Word boundaries, stress and pauses do not count.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rapidfuzz.distance import Levenshtein
from rich.console import Console
from rich.table import Table

from benchmarks.score import Errors, broad, expand
from tutti import settings

DATA = Path(__file__).parent / "data"
RESULTS = Path(__file__).parent / "results"
HOLD_OUT = 3  # every third passage of a category
WEAK = {
    "ði": "ðə",
    "tu": "tə",
    "tʊ": "tə",
    "ænd": "ənd",
    "ðæt": "ðət",
    "ɪn": "ɪn",
}  # forms that depend on the next word
_LETTERS = re.compile(r"\b[A-Z](?: [A-Z])+(?P<plural>s)?\b")
_SOUND = re.compile(r"/(?P<sound>[^/]+)/")
_IPA = re.compile(rf"\b[Aa]y\b|{_SOUND.pattern}")  # the letter A, or a sound as it is
_KANA = re.compile(rf"(?P<sound>[\u30a1-\u30fc]+)|{_SOUND.pattern.replace('sound', 'ipa')}")
_FINAL_NASAL = re.compile("[ŋɴ]|[mɲ](?![aiɯeoɨjʲ])")
_PLACEHOLDER = "\ufffc"


@dataclass(frozen=True, slots=True)
class Passage:
    category: str
    text: str
    readings: tuple[str, ...]
    mode: str  # how code blocks are read
    held_out: bool
    language: str = "en-us"


@dataclass(frozen=True, slots=True)
class Result:
    passage: Passage
    errors: Errors
    spoken: str  # in phonemes
    expected: str


def passages(data: str = "passages") -> list[Passage]:
    rows: dict[str, list[dict[str, str]]] = tomllib.loads((DATA / f"{data}.toml").read_text("utf-8"))
    language = data.partition("-")[2] or "en-us"
    return [
        Passage(
            category,
            row["text"].strip(),
            expand(row["spoken"]),
            row.get("mode", "announce"),
            n % HOLD_OUT == 2,
            row.get("language", language),
        )
        for category, items in rows.items()
        for n, row in enumerate(items)
    ]


def phonemize(chosen: list[Passage], home: Path) -> list[dict[str, Any]]:
    """The phoneme words of each passage and of its readings; works with every version of the front end."""
    from tutti.text import chunks
    from tutti.text.aligned_text import AlignedText
    from tutti.text.g2p import G2P

    g2p = G2P(home)

    def spoken(passage: Passage) -> list[str]:
        try:
            from tutti.text.options import TextOptions
        except ImportError:  # before blocks of code had an option
            options: dict[str, Any] = {}
        else:
            options = {"options": TextOptions(code_blocks=passage.mode)}  # type: ignore[arg-type]
        parts = chunks(passage.text, _known(passage.language), g2p.pronounce, **options)
        return [word.phonemes for chunk in parts for word in chunk.words]

    def read(reading: str, code: str) -> list[str]:
        plain, sounds = _with_sounds(reading, code)
        places = [match.start() for match in re.finditer(_PLACEHOLDER, plain)]
        given = dict(zip(places, sounds, strict=True))
        return [word.phonemes for word in g2p.pronounce(AlignedText.of(plain), code, given).words]

    return [
        {"spoken": spoken(passage), "readings": [read(reading, _accent(passage)) for reading in passage.readings]}
        for passage in chosen
    ]


def _accent(passage: Passage) -> str:
    return "en-gb" if passage.language.startswith("en-") and passage.language != "en-us" else passage.language


def _with_sounds(reading: str, code: str) -> tuple[str, list[str]]:
    """Return a reading with a placeholder for each sound that it gives, and these sounds in Kokoro's symbols."""
    if code == "zh":
        sounds = ["".join(map(chinese_sound, match["sound"].split())) for match in _SOUND.finditer(reading)]
        return _SOUND.sub(_PLACEHOLDER, reading), sounds
    if code == "ja":
        sounds = [match["ipa"] or japanese_sound(match["sound"]) for match in _KANA.finditer(reading)]
        return _KANA.sub(_PLACEHOLDER, reading), sounds
    if code.startswith("en-"):
        reading = _LETTERS.sub(_dotted, reading)
        return _IPA.sub(_PLACEHOLDER, reading), [match["sound"] or "ˈA" for match in _IPA.finditer(reading)]
    return _SOUND.sub(_PLACEHOLDER, reading), [match["sound"] for match in _SOUND.finditer(reading)]


def chinese_sound(pinyin: str) -> str:
    from tutti.text.g2p.chinese import symbols

    return symbols(pinyin)


def japanese_sound(katakana: str) -> str:
    from tutti.text.g2p.kana import symbols, to_hiragana

    return symbols(to_hiragana(katakana))[0]


def _known(language: str) -> str:
    """Return the language, or British English where a version of the front end does not know it."""
    from tutti.errors import UnknownLanguage
    from tutti.text.language import find_language

    try:
        return find_language(language).code
    except UnknownLanguage:
        return "en-gb"


def _dotted(match: re.Match[str]) -> str:
    """Write letters one by one so that every version spells them: A P I as A.P.I., L L Ms as LLMs."""
    return match[0].replace(" ", "") if match["plural"] else match[0].replace(" ", ".") + "."


def count_errors(expected: list[str], spoken: list[str]) -> Errors:
    """Expected words that are not said exactly, and words said that nobody expects."""
    right, said = [_fold(word) for word in expected], [_fold(word) for word in spoken]
    word_of = [n for n, word in enumerate(right) for _ in word]
    said_of = [n for n, word in enumerate(said) for _ in word]
    wrong: set[int] = set()
    inserted: dict[int, int] = {}
    for tag, a, b, c, d in Levenshtein.opcodes("".join(right), "".join(said)):
        if tag in ("replace", "delete"):
            wrong.update(word_of[a:b])
        if tag == "insert":
            if 0 < a < len(word_of) and word_of[a - 1] == word_of[a]:
                wrong.add(word_of[a])
            for n in said_of[c:d]:
                inserted[n] = inserted.get(n, 0) + 1
    extra = sum(2 * n_phonemes > len(said[n]) for n, n_phonemes in inserted.items())
    return Errors(len(wrong) + extra, len(right))


def _fold(word: str) -> str:
    plain = broad(word)
    return WEAK.get(plain, plain)


def judge(chosen: list[Passage], phonemes: list[dict[str, Any]]) -> list[Result]:
    results = []
    for passage, said in zip(chosen, phonemes, strict=True):
        fold = _fold_nasals if passage.language == "ja" else list
        spoken, readings = fold(said["spoken"]), map(fold, said["readings"])
        scored = [(count_errors(reading, spoken), reading) for reading in readings]
        errors, reading = min(scored, key=lambda pair: pair[0].percent)
        results.append(Result(passage, errors, " ".join(spoken), " ".join(reading)))
    return results


def _fold_nasals(words: list[str]) -> list[str]:
    """Write one nasal at the end of a syllable, where its sound depends on the next word: of Japanese."""
    return [_FINAL_NASAL.sub("n", word) for word in words]


def phonemize_at(commit: str, chosen: list[Passage], home: Path) -> list[dict[str, Any]]:
    """The same by the front end of another commit."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--detach", folder, commit], check=True, capture_output=True)
        try:
            script = Path(folder) / "benchmarks" / "passages.py"
            script.write_text(Path(__file__).read_text("utf-8"), "utf-8")
            command = [sys.executable, "-m", "benchmarks.passages", "--raw", "--home", str(home)]
            done = subprocess.run(
                command, cwd=folder, env={"PYTHONPATH": folder}, input=json.dumps([asdict(one) for one in chosen]),
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], check=True, capture_output=True)
    phonemes: list[dict[str, Any]] = json.loads(done.stdout)
    return phonemes


def show(console: Console, title: str, results: list[Result]) -> dict[str, float]:
    table = Table("category", "passages", "words", "wrong", "%", title=title, box=None)
    names = [*dict.fromkeys(result.passage.category for result in results), "all", "held out", "all but code"]
    percents: dict[str, float] = {}
    for name in names:
        members = [
            result.errors
            for result in results
            if name in ("all", result.passage.category)
            or (name == "held out" and result.passage.held_out)
            or (name == "all but code" and result.passage.category != "code")
        ]
        total = sum(members, Errors())
        percents[name] = round(total.percent, 2)
        table.add_row(name, str(len(members)), str(total.total), str(total.wrong), f"{total.percent:.1f}")
    console.print(table)
    return percents


def main(
    data: Annotated[str, typer.Option(help="the set: passages, written or written-es, -fr …")] = "passages",
    part: Annotated[str, typer.Option(help="developed, held-out or all")] = "developed",
    against: Annotated[str | None, typer.Option(help="also measure this commit")] = None,
    worst: Annotated[int, typer.Option(help="how many wrong passages to show")] = 40,
    home: Annotated[Path | None, typer.Option(help="where the lexicons lie")] = None,
    raw: Annotated[bool, typer.Option("--raw", hidden=True)] = False,
) -> None:
    home = settings.load({"home": home})[0].home
    if raw:
        given = [Passage(**row) for row in json.load(sys.stdin)]
        print(json.dumps(phonemize(given, home)))
        return
    console = Console()
    chosen = [one for one in passages(data) if part == "all" or one.held_out == (part == "held-out")]
    results = judge(chosen, phonemize(chosen, home))
    for result in sorted(results, key=lambda result: result.errors.wrong, reverse=True)[:worst]:
        if result.errors.wrong:
            console.print(f"{result.errors.wrong} {result.passage.text!r}", markup=False)
            console.print(f"   expected {result.expected}\n   spoken   {result.spoken}", markup=False)
    figures = {"now": show(console, "wrong words, this version", results)}
    if against:
        before = judge(chosen, phonemize_at(against, chosen, home))
        figures[against] = show(console, f"wrong words, {against}", before)
    if part == "all":
        (RESULTS / f"{data}.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
