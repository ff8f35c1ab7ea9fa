"""How good tutti sounds: its front end against upstream's, spoken by the same graph, heard by the same recogniser.

    python -m benchmarks.quality                     word and phoneme error rate, by category
    python -m benchmarks.quality --phonemes-only     the front ends alone, in seconds
    python -m benchmarks.quality --precision int8 --full

Sides: `tutti`; `rival`, upstream's way (misaki, spaCy, espeak-ng); `floor`, the rival given the right words instead of
the text: what is left there is the recogniser's and the scoring's own noise.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks import rival
from benchmarks.listen import Recogniser, hear, recogniser
from benchmarks.report import Heard, Read, interval, save, show_worst, table
from benchmarks.score import phoneme_errors, word_errors
from benchmarks.sentences import Sentence, sentences, spread
from benchmarks.speak import Memory, Speaker, spoken_key
from tutti import settings
from tutti.speech import SAMPLE_RATE, Samples, SpeechParams
from tutti.weights import FP32_MODEL, INT8_MODEL, Precision, Store, required_files, show_progress, sources

VOICES = "af_heart,am_michael,bf_emma,am_puck,af_bella,bm_george,af_nicole,am_fenrir"
MODELS = {"fp32": FP32_MODEL, "int8": INT8_MODEL}
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence for one voice, after one front end."""

    sentence: Sentence
    voice: str
    phonemes: str
    by: str  # what speaks it


Speak = Callable[[Line], NDArray[np.float32]]


def front_end(side: str, asked: list[tuple[Sentence, bool]], home: Path) -> list[str]:
    """The phonemes of each (sentence, british), as this side reads them."""
    match side:
        case "tutti":
            return tutti_phonemes([(sentence.text, british) for sentence, british in asked], home)
        case "rival":
            return rival.phonemes([(sentence.text, british) for sentence, british in asked], home)
        case "floor":
            return rival.phonemes([(sentence.readings[0], british) for sentence, british in asked], home)
    raise typer.BadParameter(f"unknown side {side!r}; known: tutti, rival, floor")


def tutti_phonemes(asked: list[tuple[str, bool]], home: Path) -> list[str]:
    """Our front end. The chunks of one text are joined, so that every side is spoken in one go."""
    from tutti.text import chunks
    from tutti.text.g2p import G2P

    g2p = G2P(home)
    return [
        " ".join(chunk.phonemes for chunk in chunks(text, "en-gb" if british else "en-us", g2p.pronounce))
        for text, british in asked
    ]


def through_engine(home: Path, precision: Precision) -> Speak:
    """Our lines through the whole product instead of the bare graph."""
    from tutti.engine.build import open_engine
    from tutti.settings import load

    settings, _ = load({"home": home, "precision": precision, "threads": 2})

    async def speak(line: Line) -> Samples:
        async with open_engine(settings) as engine:
            return (await engine.speak(line.sentence.text, SpeechParams(line.voice))).samples

    return lambda line: asyncio.run(speak(line))


def cast(chosen: list[Sentence], voices: list[str], each: int) -> list[tuple[Sentence, str]]:
    """Who says what: every sentence by `each` voices in turn, every voice as often as any other."""
    turn = itertools.cycle(voices)
    return [(sentence, next(turn)) for sentence in chosen for _ in range(each)]


def main(
    precision: Annotated[Precision, typer.Option()] = "fp32",
    voices: Annotated[str, typer.Option(help="names with commas between")] = VOICES,
    listener: Annotated[str, typer.Option("--recogniser", help="whisper or moonshine")] = "whisper",
    sides: Annotated[str, typer.Option(help="of tutti, rival, floor")] = "tutti,rival",
    n_sentences: Annotated[int | None, typer.Option("--sentences", help="only so many, from all categories")] = None,
    category: Annotated[str | None, typer.Option(help="only this one")] = None,
    each: Annotated[int, typer.Option(help="voices for each sentence")] = 1,
    full: Annotated[bool, typer.Option("--full", help="every sentence by every voice")] = False,
    engine: Annotated[bool, typer.Option("--engine", help="our side through the engine, not the bare graph")] = False,
    phonemes_only: Annotated[bool, typer.Option("--phonemes-only", help="no audio")] = False,
    worst: Annotated[int, typer.Option(help="how many of the worst sentences to show")] = 10,
    home: Annotated[Path | None, typer.Option(help="where weights, recognisers and rivals lie")] = None,
) -> None:
    """Word and phoneme error rates of tutti and of upstream's way, on the same sentences in the same run."""
    console = Console()
    home = settings.load({"home": home})[0].home
    store = Store(home)
    with show_progress() as progress:
        store.ensure(required_files(precision), sources=sources(), progress=progress)
    chosen = [one for one in spread(sentences(), n_sentences) if category in (None, one.category)]
    names = sides.split(",")

    read: dict[str, list[Read]] = {}
    for side in names:
        said = front_end(side, [(sentence, False) for sentence in chosen], home)
        read[side] = [Read(s, p, phoneme_errors(s.phonemes, p)) for s, p in zip(chosen, said, strict=True)]
    console.print(table("phoneme error rate, %", read))

    heard: dict[str, list[Heard]] = {}
    if not phonemes_only:
        graph = Speaker(store.path(MODELS[precision]), home / "voices")
        speak: dict[str, Speak] = {precision: lambda line: graph.speak(line.phonemes, line.voice)}
        if engine:
            speak[f"engine {precision}"] = through_engine(home, precision)
        speakers = voices.split(",")
        parts = cast(chosen, speakers, len(speakers) if full else each)
        asked = [(sentence, voice.startswith("b")) for sentence, voice in parts]
        memory, ears = Memory(home / "quality", listener), recogniser(listener, home)
        for side in names:
            by = f"engine {precision}" if engine and side == "tutti" else precision
            said = front_end(side, asked, home)
            lines = [Line(sentence, voice, p, by) for (sentence, voice), p in zip(parts, said, strict=True)]
            heard[side] = list(listen(lines, speak, memory, ears, side, console))
        console.print(table("word error rate, %", heard))

    for side in names:
        show_worst(console, side, read[side], worst)
        show_worst(console, side, heard.get(side, []), worst)
    if {"tutti", "rival"} <= heard.keys():
        low, high = interval(heard["tutti"], heard["rival"])
        console.print(f"tutti less rival, words: 95 % of resamplings between {low:+.1f} and {high:+.1f} points")
    name = "phonemes" if phonemes_only else precision + ("-engine" if engine else "")
    name += f"-{category}" if category else ""
    setting = {"precision": precision, "recogniser": listener, "voices": voices, "each": each, "full": full}
    save(RESULTS / f"quality-{name}.json", setting, read, heard)


def listen(
    lines: list[Line], speak: dict[str, Speak], memory: Memory, ears: Recogniser, side: str, console: Console
) -> Iterator[Heard]:
    """What is heard in each line. What an earlier run or another side has spoken alike is not spoken again."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        for line in progress.track(lines, description=f"{side} speaks"):
            # The bare graph sees phonemes alone; the engine starts from the text.
            said = line.sentence.text if line.by.startswith("engine") else line.phonemes
            key = spoken_key(said, line.voice, line.by)
            if not memory.knows(key):
                samples = memory.samples(key)
                if samples is None:
                    samples = speak[line.by](line)
                    memory.keep_samples(key, samples)
                memory.keep(key, hear(ears, samples, SAMPLE_RATE))
            words = memory.heard(key)
            yield Heard(line.sentence, line.voice, line.phonemes, words, word_errors(line.sentence.readings, words))


if __name__ == "__main__":
    typer.run(main)
