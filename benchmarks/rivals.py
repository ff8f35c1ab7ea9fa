"""How do other ways to read text aloud read the written lines? Words wrong, of the lines that are plain words.

    python -m benchmarks.rivals --data written --data written-es     needs: pip install num2words; extra `espeak`
    python -m benchmarks.rivals --data written --misaki               also misaki, in an environment of its own

Each side's phonemes of a line are compared with its own phonemes of the expected words, so that no side is judged by
the dictionary of another. `num2words` writes the figures out, espeak-ng speaks the result.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.passages import RESULTS, Passage, count_errors, judge, passages, phonemize
from benchmarks.quality import rival_phonemes
from benchmarks.score import Errors
from tutti import settings

VOICES = {"en-us": "gmw/en-US", "es": "roa/es", "fr": "roa/fr", "it": "roa/it", "pt-br": "roa/pt-BR", "hi": "inc/hi"}
NUM2WORDS = {"en-us": "en", "pt-br": "pt_BR"}  # other languages have the same name there
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_NOT_WORDS = re.compile(r"/[^/]+/")  # a sound that is given
_STRESS = re.compile("[ˈˌ^_-]")
Side = Callable[[str], list[str]]


def espeak_side(language: str) -> Side:
    from tutti.text.g2p.espeak import engine

    return lambda text: _STRESS.sub("", engine().ipa([text], VOICES[language])[0]).split()


def num2words_side(language: str) -> Side:
    from num2words import num2words

    speak, code = espeak_side(language), NUM2WORDS.get(language, language)

    def words(match: re.Match[str]) -> str:
        figure = match[0].replace(",", "") if language == "en-us" else match[0].replace(".", "").replace(",", ".")
        try:
            return f" {num2words(float(figure) if '.' in figure else int(figure), lang=code)} "
        except (NotImplementedError, ValueError, OverflowError):
            return match[0]

    return lambda text: speak(_FIGURE.sub(words, text))


def score(chosen: list[Passage], side: Side) -> list[Errors]:
    """Return the errors of each line, by the reading that is nearest."""
    return [
        min((count_errors(side(each), side(passage.text)) for each in passage.readings), key=lambda one: one.percent)
        for passage in chosen
    ]


def percents(chosen: list[Passage], errors: list[Errors]) -> dict[str, float]:
    held_out = [each for passage, each in zip(chosen, errors, strict=True) if passage.held_out]
    return {"all": round(sum(errors, Errors()).percent, 1), "held out": round(sum(held_out, Errors()).percent, 1)}


def misaki_side(chosen: list[Passage], home: Path) -> Side:
    texts = [text for passage in chosen for text in (passage.text, *passage.readings)]
    said = rival_phonemes([(text, False) for text in texts], home)
    return {text: words.split() for text, words in zip(texts, said, strict=True)}.__getitem__


def main(
    data: Annotated[list[str], typer.Option(help="sets: written, written-es, -fr, -it, -pt-br, -hi")],
    misaki: Annotated[bool, typer.Option("--misaki", help="also misaki; installs 450 MB once")] = False,
    environments: Annotated[
        Path | None, typer.Option(help="folder of its environment; default: the model folder")
    ] = None,
) -> None:
    home = settings.load({})[0].home
    figures: dict[str, dict[str, object]] = {}
    for name in data:
        every = [one for one in passages(name) if one.language in VOICES]
        chosen = [one for one in every if not any(map(_NOT_WORDS.search, one.readings))]
        language = chosen[0].language
        errors = {"espeak-ng": score(chosen, espeak_side(language))}
        errors["num2words"] = score(chosen, num2words_side(language))
        if misaki and language == "en-us":
            errors["misaki"] = score(chosen, misaki_side(chosen, environments or home))
        errors["tutti"] = [result.errors for result in judge(chosen, phonemize(chosen, home))]
        figures[name] = {"lines": len(chosen)} | {side: percents(chosen, each) for side, each in errors.items()}
        print(name, figures[name])
    (RESULTS / "rivals.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    typer.run(main)
