"""What marks of words do to the sound: to the word that they stand at, and to all others.

    nice -n 10 python -m benchmarks.inflection                      20 sentences by 8 voices in turn: two minutes
    nice -n 10 python -m benchmarks.inflection --every              each sentence by each voice
    nice -n 10 python -m benchmarks.inflection --vocoder exact --sentences 5

Each sentence is spoken without a mark and with each of them at one word, from the same frames. The pitch is measured by
YIN in the audio; what lies outside is compared by its log-mel spectrum, from one frame beyond the word on. Words are
those that a recogniser heard wrong: Moonshine tiny, or with --recogniser whisper Whisper base.
"""

import warnings
from dataclasses import dataclass
from itertools import cycle, product
from statistics import fmean
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.heard import Recogniser, load_recogniser, transcribe
from benchmarks.score import word_errors
from training.verify.pitch import pitches_hz
from tutti import settings
from tutti.engine.inflection import token_inflection
from tutti.model.choice import choose, load
from tutti.model.inflection import inflect
from tutti.speech import LAG_FRAMES, SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Samples, Utterance
from tutti.text import chunks, vocab
from tutti.text.chunk import Chunk, WordStyle
from tutti.text.g2p import G2P
from tutti.verify.mel import log_mel
from tutti.voices import Voices

VOICES = "af_heart,am_michael,bf_emma,bm_george,af_bella,am_puck,af_sarah,bm_fable"
SENTENCES = """
The harbor was quiet, and the boats rocked gently in the dark water.
She opened the window because the room was far too warm.
Would you rather walk along the river, or take the early train home?
After the long winter, the first green leaves came out almost overnight.
He told me a story about a stubborn old horse.
Please leave the key under the stone beside the door.
The bakery on the corner smells of butter and sugar every morning.
My grandmother planted these apple trees when she was a young woman.
Thunder rolled over the hills, but the rain never came.
Write your name at the top of the page and fold it twice.
Nobody in the village remembered the name of the painter.
The captain ordered his crew to lower the sails before sunset.
I never said that you should buy the red bicycle.
Our neighbors are building a wooden fence around their garden.
You can borrow my umbrella if you bring it back tomorrow.
The museum opens late on Thursday, and children pay nothing.
A small dog followed the postman through the narrow streets.
Most people forget how cold the desert becomes at night.
The doctor listened to my heart and smiled without a word.
They painted the kitchen yellow and the hall a pale blue.
""".strip().splitlines()
CONTROLS = {
    "rate 0.8": WordStyle(rate=0.8),
    "rate 1.25": WordStyle(rate=1.25),
    "pitch +3": WordStyle(pitch=3.0),
    "pitch -3": WordStyle(pitch=-3.0),
    "volume 0.5": WordStyle(volume=0.5),
    "volume 2": WordStyle(volume=2.0),
    "strong": WordStyle(emphasis="strong"),
    "moderate": WordStyle(emphasis="moderate"),
    "reduced": WordStyle(emphasis="reduced"),
    "whispered": WordStyle(emphasis="whispered"),
}


@dataclass(frozen=True, slots=True)
class Effect:
    """Of one mark at one word."""

    duration: float  # times that of the word
    semitones: float
    voiced: float  # share of the windows of the word that are periodic
    level_db: float
    outside_db: float  # mean distance of log-mel spectra
    wrong: int  # words that the recogniser got wrong more than without the mark


def main(
    vocoder: str = "light",
    voices: str = VOICES,
    sentences: int = len(SENTENCES),
    recogniser: str = "moonshine",
    every: Annotated[bool, typer.Option("--every", help="Each sentence by each voice.")] = False,
) -> None:
    home = settings.load({})[0].home
    model = load(home / "model.onnx", choose("onnx", "cpu", "fp32", vocoder=vocoder), 2)  # type: ignore[arg-type]
    tables, g2p, ear = Voices(home / "voices"), G2P(home), load_recogniser(recogniser, home)
    effects: dict[str, list[Effect]] = {name: [] for name in CONTROLS}
    n_words = 0
    texts, names = SENTENCES[:sentences], voices.split(",")
    for text, voice in product(texts, names) if every else zip(texts, cycle(names), strict=False):
        (chunk,) = chunks(text, "en-us", g2p.pronounce, whole_text=True)
        tokens = vocab.encode(chunk.phonemes)
        (frames,) = model.acoustic([Utterance(tokens, tables.get(voice).style(len(tokens) - 2))])
        (plain,) = model.vocoder([frames])
        place = max(range(1, len(chunk.words) - 1), key=lambda i: len(chunk.words[i].phonemes))
        n_words += len(text.split())
        wrong = word_errors([text], heard(ear, plain)).wrong
        for name, style in CONTROLS.items():
            words = (*chunk.words[:place], chunk.words[place]._replace(style=style), *chunk.words[place + 1 :])
            marked = chunk._replace(words=words)
            inflection = token_inflection(marked, 1.0)
            assert inflection is not None
            changed = inflect(frames, inflection)
            (samples,) = model.vocoder([changed])
            more = word_errors([text], heard(ear, samples)).wrong - wrong
            effects[name].append(_effect(chunk, place, (frames, plain), (changed, samples), more))
    _show(effects, vocoder, n_words)


def heard(recogniser: Recogniser, samples: Samples) -> str:
    """The words of a row; the recogniser hears nothing at all in some, and every word at half the level."""
    return transcribe(recogniser, samples, SAMPLE_RATE) or transcribe(recogniser, 0.5 * samples, SAMPLE_RATE)


def _effect(
    chunk: Chunk, place: int, before: tuple[Frames, Samples], after: tuple[Frames, Samples], wrong: int
) -> Effect:
    (start, end), (new_start, new_end) = (_frames_of(chunk, place, row.durations) for row, _ in (before, after))
    word, new_word = (
        samples[a * SAMPLES_PER_FRAME : b * SAMPLES_PER_FRAME]
        for samples, a, b in ((before[1], start, end), (after[1], new_start, new_end))
    )
    with warnings.catch_warnings(action="ignore"):  # of a word without a pitch
        pitches = pitches_hz(new_word)
        hz, new_hz = np.nanmedian(pitches_hz(word)), np.nanmedian(pitches)
    outside = [
        np.abs(log_mel(before[1][a]) - log_mel(after[1][b])).mean(axis=1)
        for a, b in (
            (slice(0, (start - 1) * SAMPLES_PER_FRAME), slice(0, (new_start - 1) * SAMPLES_PER_FRAME)),
            (slice((end + 1) * SAMPLES_PER_FRAME, None), slice((new_end + 1) * SAMPLES_PER_FRAME, None)),
        )
        if len(before[1][a]) > 2048
    ]
    level_db = 10 * np.log10(np.mean(new_word**2) / np.mean(word**2))
    duration = (new_end - new_start) / (end - start)
    semitones, outside_db = float(12 * np.log2(new_hz / hz)), float(np.concatenate(outside).mean())
    return Effect(duration, semitones, float(np.isfinite(pitches).mean()), float(level_db), outside_db, wrong)


def _frames_of(chunk: Chunk, place: int, durations: np.ndarray) -> tuple[int, int]:
    """Where a word is heard, with the space before it."""
    first = 1 + sum(word.n_symbols for word in chunk.words[:place])
    ends = np.cumsum(durations)
    last = first + len(chunk.words[place].before) + len(chunk.words[place].phonemes)
    return int(ends[first - 2]) - LAG_FRAMES, int(ends[last - 1]) - LAG_FRAMES


def _show(effects: dict[str, list[Effect]], vocoder: str, n_words: int) -> None:
    table = Table(
        "mark", "rows", "duration", "semitones", "voiced", "level, dB", "outside, dB (p95)", f"wrong of {n_words} words"
    )
    for name, rows in effects.items():
        outside = np.array([row.outside_db for row in rows])
        semitones = [row.semitones for row in rows if np.isfinite(row.semitones)]
        table.add_row(
            name,
            str(len(rows)),
            f"{fmean(row.duration for row in rows):.2f}",
            f"{np.median(semitones):+.1f}" if semitones else "none",
            f"{fmean(row.voiced for row in rows):.2f}",
            f"{fmean(row.level_db for row in rows):+.1f}",
            f"{outside.mean():.2f} ({np.quantile(outside, 0.95):.2f})",
            f"{sum(row.wrong for row in rows):+d}",
        )
    Console(width=120).print(f"vocoder: {vocoder}", table)


if __name__ == "__main__":
    typer.run(main)
