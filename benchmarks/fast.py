"""How fast may speech be, and is it understood better with shorter durations or stretched from slower speech?

    nice -n 10 python -m benchmarks.fast                     12 sentences by 8 voices in turn, four speeds
    nice -n 10 python -m benchmarks.fast --sentences 20 --recogniser whisper

`model` gives the model the speed, which it only partly follows: no phoneme is shorter than a frame. The factor is how
much shorter its speech is. `from 1.25` speaks at that speed and compresses the rest by FFmpeg's atempo (WSOLA), which
keeps the pitch. Words are those that the recogniser got wrong.
"""

from collections.abc import Sequence
from itertools import cycle
from statistics import fmean

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.heard import load_recogniser, transcribe
from benchmarks.inflection import SENTENCES, VOICES
from benchmarks.score import word_errors
from tutti import settings
from tutti.audio.tempo import Tempo
from tutti.model.choice import choose, load
from tutti.speech import SAMPLE_RATE, Samples, Utterance
from tutti.text import chunks, vocab
from tutti.text.g2p import G2P
from tutti.voices import Voices

BASES = (1.0, 1.25)


def main(
    sentences: int = 12,
    speeds: str = "1,1.25,1.5,1.75,2,2.5,3,4",
    recogniser: str = "moonshine",
    vocoder: str = "light",
) -> None:
    home = settings.load({})[0].home
    model = load(home / "model.onnx", choose("onnx", "cpu", "fp32", vocoder=vocoder), 2)  # type: ignore[arg-type]
    tables, g2p, ear = Voices(home / "voices"), G2P(home), load_recogniser(recogniser, home)
    wrong: dict[tuple[float, str], int] = {}
    factors: dict[float, list[float]] = {}
    chosen = [float(speed) for speed in speeds.split(",")]
    n_words, texts = 0, SENTENCES[:sentences]
    for text, name in zip(texts, cycle(VOICES.split(",")), strict=False):
        (chunk,) = chunks(text, "en-us", g2p.pronounce, whole_text=True)
        tokens = vocab.encode(chunk.phonemes)
        style = tables.get(name).style(len(tokens) - 2)
        n_words += len(text.split())

        def speak(speed: float, tokens=tokens, style=style) -> Samples:  # type: ignore[no-untyped-def]
            return model.vocoder(model.acoustic([Utterance(tokens, style, speed)]))[0]

        at_base = {base: speak(base) for base in BASES}
        for speed in chosen:
            spoken = {"model": at_base[speed] if speed in BASES else speak(speed)}
            spoken |= {f"from {base:g}": compressed(at_base[base], speed / base) for base in BASES if base < speed}
            factors.setdefault(speed, []).append(len(at_base[1.0]) / len(spoken["model"]))
            for way, samples in spoken.items():
                errors = word_errors([text], transcribe(ear, samples, SAMPLE_RATE)).wrong
                wrong[speed, way] = wrong.get((speed, way), 0) + errors
    _show(wrong, factors, n_words, recogniser)


def compressed(samples: Samples, factor: float) -> Samples:
    return Tempo(factor).write(samples, last=True)


def _show(
    wrong: dict[tuple[float, str], int], factors: dict[float, list[float]], n_words: int, recogniser: str
) -> None:
    ways: Sequence[str] = ("model", *(f"from {base:g}" for base in BASES))
    table = Table("speed", "factor of the model", *ways, title=f"words wrong of {n_words}, {recogniser}")
    for speed, found in factors.items():
        table.add_row(f"{speed:g}", f"{fmean(found):.2f}", *(str(wrong.get((speed, way), "")) for way in ways))
    Console(width=100).print(table)


if __name__ == "__main__":
    typer.run(main)
