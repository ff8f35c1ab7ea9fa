"""Quality of the text front end: tutti against upstream, spoken by the same graph, judged by the same recogniser.

    python -m benchmarks.quality                     half an hour on two cores: word and phoneme error rate by category
    python -m benchmarks.quality --phonemes-only     the front ends alone, in seconds
    python -m benchmarks.quality --precision int8 --full

Sides: `tutti`; `rival`, upstream's way (misaki, spaCy, espeak-ng); `floor`, the rival given the right words instead of
the text: its errors are the noise of the recogniser and the scoring.
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
from benchmarks.recognisers import Recogniser, load_recogniser, transcribe
from benchmarks.report import PhonemeResult, WordResult, interval, save, show_worst, table
from benchmarks.score import phoneme_errors, word_errors
from benchmarks.sentences import Sentence, sentences, spread
from benchmarks.speaker import Speaker, SpeechCache, cache_key
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
    speaker: str  # the graph or engine that speaks it


Speak = Callable[[Line], NDArray[np.float32]]


def phonemize(side: str, items: list[tuple[Sentence, bool]], home: Path) -> list[str]:
    """The phonemes of each (sentence, british) by this side's front end."""
    match side:
        case "tutti":
            return tutti_phonemes([(sentence.text, british) for sentence, british in items], home)
        case "rival":
            return rival.phonemes([(sentence.text, british) for sentence, british in items], home)
        case "floor":
            return rival.phonemes([(sentence.readings[0], british) for sentence, british in items], home)
    raise typer.BadParameter(f"unknown side {side!r}; known: tutti, rival, floor")


def tutti_phonemes(items: list[tuple[str, bool]], home: Path) -> list[str]:
    """Our front end. The chunks of one text are joined, so that every side is spoken as one row."""
    from tutti.text import chunks
    from tutti.text.g2p import G2P

    g2p = G2P(home)
    return [
        " ".join(chunk.phonemes for chunk in chunks(text, "en-gb" if british else "en-us", g2p.pronounce))
        for text, british in items
    ]


def engine_speaker(home: Path, precision: Precision) -> Speak:
    """Speak through the whole engine instead of the bare graph."""
    from tutti.engine.build import open_engine
    from tutti.settings import load

    settings, _ = load({"home": home, "precision": precision, "threads": 2})

    async def speak(line: Line) -> Samples:
        async with open_engine(settings) as engine:
            return (await engine.speak(line.sentence.text, SpeechParams(line.voice))).samples

    return lambda line: asyncio.run(speak(line))


def assign_voices(chosen: list[Sentence], voices: list[str], each: int) -> list[tuple[Sentence, str]]:
    """Give every sentence `each` voices in turn, every voice equally often."""
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

    phoneme_results: dict[str, list[PhonemeResult]] = {}
    for side in names:
        phonemes = phonemize(side, [(sentence, False) for sentence in chosen], home)
        pairs = zip(chosen, phonemes, strict=True)
        phoneme_results[side] = [PhonemeResult(s, p, phoneme_errors(s.phonemes, p)) for s, p in pairs]
    console.print(table("phoneme error rate, %", phoneme_results))

    word_results: dict[str, list[WordResult]] = {}
    if not phonemes_only:
        graph = Speaker(store.path(MODELS[precision]), home / "voices")
        speak: dict[str, Speak] = {precision: lambda line: graph.speak(line.phonemes, line.voice)}
        if engine:
            speak[f"engine {precision}"] = engine_speaker(home, precision)
        speakers = voices.split(",")
        parts = assign_voices(chosen, speakers, len(speakers) if full else each)
        items = [(sentence, voice.startswith("b")) for sentence, voice in parts]
        cache, recogniser = SpeechCache(home / "quality", listener), load_recogniser(listener, home)
        for side in names:
            speaker = f"engine {precision}" if engine and side == "tutti" else precision
            phonemes = phonemize(side, items, home)
            lines = [Line(sentence, voice, p, speaker) for (sentence, voice), p in zip(parts, phonemes, strict=True)]
            word_results[side] = list(judge(lines, speak, cache, recogniser, side, console))
        console.print(table("word error rate, %", word_results))

    for side in names:
        show_worst(console, side, phoneme_results[side], worst)
        show_worst(console, side, word_results.get(side, []), worst)
    if {"tutti", "rival"} <= word_results.keys():
        low, high = interval(word_results["tutti"], word_results["rival"])
        console.print(f"tutti less rival, words: 95 % confidence interval {low:+.1f} to {high:+.1f} points")
    name = "phonemes" if phonemes_only else precision + ("-engine" if engine else "")
    name += f"-{category}" if category else ""
    setting = {"precision": precision, "recogniser": listener, "voices": voices, "each": each, "full": full}
    save(RESULTS / f"quality-{name}.json", setting, phoneme_results, word_results)


def judge(
    lines: list[Line], speak: dict[str, Speak], cache: SpeechCache, recogniser: Recogniser, side: str, console: Console
) -> Iterator[WordResult]:
    """Speak and transcribe each line, unless an earlier run or another side has spoken the same."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        for line in progress.track(lines, description=f"{side} speaks"):
            # The bare graph gets phonemes; the engine starts from the text.
            text = line.sentence.text if line.speaker.startswith("engine") else line.phonemes
            key = cache_key(text, line.voice, line.speaker)
            words = cache.transcript(key)
            if words is None:
                samples = cache.samples(key)
                if samples is None:
                    samples = speak[line.speaker](line)
                    cache.add_samples(key, samples)
                words = transcribe(recogniser, samples, SAMPLE_RATE)
                cache.add_transcript(key, words)
            yield WordResult(
                line.sentence, line.voice, line.phonemes, words, word_errors(line.sentence.readings, words)
            )


if __name__ == "__main__":
    typer.run(main)
