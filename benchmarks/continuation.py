"""Does a text sound better after another one if the model reads both? Pitch, level and pause where the two are joined.

    nice -n 10 python -m benchmarks.continuation            20 sentence joins and 20 clause joins: two minutes
    nice -n 10 python -m benchmarks.continuation --texts 5 --kinds clause

Each text is two parts. They are spoken as one row, which is how the model would say both; as two rows, as today; and as
two rows that the acoustic stage reads with the other part around them, whose frames are cut off before the vocoder, or
(wider) all but half a second of them, of which the samples are cut off after it. A step is the difference between the
last half second of voice before the join and the first after it.
"""

import time
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.heard import load_recogniser, transcribe
from benchmarks.inflection import VOICES
from benchmarks.score import word_errors
from tutti import settings
from tutti.model.choice import choose, load
from tutti.model.prosody import STEADY_HZ
from tutti.model.protocol import Model
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Samples, Utterance
from tutti.text import chunks, vocab
from tutti.text.g2p import G2P
from tutti.voices import Voice, Voices

TEXTS = """
The harbor was quiet, and the boats rocked gently. | She pulled her coat closer and waited for the ferry.
When the rain stopped, we walked down to the river. | The path was steep, but nobody complained.
He opened the letter slowly, as if it could bite. | It was from his brother, and it was short.
After the long winter, the first leaves came out. | Within a week the whole valley was green.
If you want to come along, meet us at the station. | We leave at eight, whatever the weather is like.
My grandmother kept bees, and she talked to them. | She said that they could tell when somebody lied.
The museum was nearly empty, since it was Monday. | A guard was asleep on a chair beside the door.
They had painted the kitchen yellow, and the hall blue. | Nothing else in the house had been changed.
The captain lowered the sails, because a storm was near. | An hour later the waves were higher than the mast.
Although the shop was closed, a light was burning inside. | I knocked twice, and somebody came to the window.
I never liked the old bridge, to be honest. | The new one is wider, and it does not shake.
Children under six pay nothing, but they need a ticket. | You can get one at the desk near the entrance.
As soon as the bell rang, everybody ran outside. | The snow was already as deep as my knees.
The train was late again, which surprised nobody. | We sat on our bags and shared an orange.
Bread is cheap here, but butter costs a fortune. | Most people bake at home on Saturdays.
Before you call the doctor, look at the second page. | It explains what to do in the first few minutes.
The painter had no money, so he paid with pictures. | One of them is still hanging in that cafe.
It was not the loudest song, but it was the best. | People hummed it for weeks after the concert.
Take the second street on the left, and then go straight. | The bakery is across from the post office.
The desert is hot by day, and bitterly cold at night. | Bring a warm jacket and plenty of water.
""".strip().splitlines()
LEVEL = -45.0  # dB below full scale; a frame below it is silent
MARGIN_FRAMES = 20  # that the vocoder reads beside those that are spoken
EDGE_FRAMES = 20  # voiced frames on each side of a join: half a second


Row = tuple[Utterance, int, int]  # and the tokens of it that are spoken


@dataclass(frozen=True, slots=True)
class Join:
    """How two parts sit together."""

    semitones: float  # from the end of the first to the start of the second
    level_db: float
    pause_s: float
    seconds: float  # of both
    wrong: int  # words that the recogniser got wrong


def main(
    texts: int = len(TEXTS),
    kinds: str = "sentence,clause",
    vocoder: str = "light",
    text: str = "auto",
    recogniser: str = "moonshine",
) -> None:
    home = settings.load({})[0].home
    choice = choose("onnx", "cpu", "fp32", vocoder=vocoder, text=text)  # type: ignore[arg-type]
    model, tables, g2p = load(home / "model.onnx", choice, 2), Voices(home / "voices"), G2P(home)
    ear = load_recogniser(recogniser, home)
    for kind in kinds.split(","):
        joins: dict[str, list[Join]] = {}
        seconds: dict[str, list[float]] = {}
        for line, name in zip(TEXTS[:texts], cycle(VOICES.split(",")), strict=False):
            first, second = parts(line, kind)
            phonemes = [g2p_of(g2p, part) for part in (first, second)]
            for way, rows in ways(tables.get(name), *phonemes).items():
                start_s = time.perf_counter()
                wider = [cut(model, row, MARGIN_FRAMES if way == "wider" else 0) for row in rows]
                between_s = time.perf_counter()
                sounds = [model.vocoder([row])[0] for row, _, _ in wider]
                seconds.setdefault(way, []).append(between_s - start_s)
                seconds.setdefault("vocoder", []).append(time.perf_counter() - between_s)
                frames = [part_of(*each) for each in wider]
                samples = [
                    sound[a * SAMPLES_PER_FRAME : b * SAMPLES_PER_FRAME]
                    for sound, (_, a, b) in zip(sounds, wider, strict=True)
                ]
                if len(rows) == 1:  # cut where the first part ends, only to be measured
                    at = edge(model, rows[0], len(phonemes[0]))
                    (whole,), (sound,) = frames, samples
                    frames = [part_of(whole, 0, at), part_of(whole, at, whole.n_frames)]
                    samples = np.split(sound, [at * SAMPLES_PER_FRAME])
                heard = transcribe(ear, np.concatenate(samples), SAMPLE_RATE)
                wrong = word_errors([f"{first} {second}"], heard).wrong
                joins.setdefault(way, []).append(join(frames, samples, wrong))
        show(kind, joins, seconds)


def parts(line: str, kind: str) -> tuple[str, str]:
    first, _, second = line.partition(" | ")
    if kind == "sentence":
        return first, second
    clause, _, rest = first.partition(", ")
    return f"{clause},", rest


def g2p_of(g2p: G2P, text: str) -> str:
    (chunk,) = chunks(text, "en-us", g2p.pronounce, whole_text=True)
    return chunk.phonemes


def ways(voice: Voice, first: str, second: str) -> dict[str, list[Row]]:
    """The rows of each way to speak two parts."""
    both, n = f"{first} {second}", len(first)
    with_context = [row(voice, both, n, 0, n + 1), row(voice, both, len(second), n + 1, len(both) + 2)]
    return {
        "one row": [row(voice, both, len(both), 0, len(both) + 2)],
        "two rows": [row(voice, part, len(part), 0, len(part) + 2) for part in (first, second)],
        "with context": with_context,
        "wider": with_context,
    }


def row(voice: Voice, phonemes: str, n_style: int, start: int, end: int) -> Row:
    return Utterance(vocab.encode(phonemes), voice.style(n_style)), start, end


def cut(model: Model, row: Row, margin: int) -> tuple[Frames, int, int]:
    """The frames of the tokens that are spoken, with so many more, and where those that are spoken start and end."""
    utterance, start, end = row
    (frames,) = model.acoustic([utterance])
    edges = np.cumsum(np.append(0, frames.durations))
    first, last = int(edges[start]), int(edges[end])
    begin = max(0, first - margin)
    return part_of(frames, begin, min(last + margin, frames.n_frames)), first - begin, last - begin


def edge(model: Model, row: Row, n_first: int) -> int:
    (frames,) = model.acoustic([row[0]])
    return int(frames.durations[: n_first + 1].sum())


def part_of(row: Frames, start: int, end: int) -> Frames:
    halves = slice(2 * start, 2 * end)
    features = np.ascontiguousarray(row.features[:, start:end])
    return Frames(np.array([end - start]), features, row.f0[halves], row.energy[halves], row.style)


def join(frames: list[Frames], samples: list[Samples], wrong: int) -> Join:
    pitch = [row.f0[row.f0 > STEADY_HZ] for row in frames]
    levels = [10 * np.log10((part.reshape(-1, SAMPLES_PER_FRAME) ** 2).mean(axis=1) + 1e-10) for part in samples]
    loud = [np.flatnonzero(part > LEVEL) for part in levels]
    return Join(
        float(12 * np.log2(np.median(pitch[1][: 2 * EDGE_FRAMES]) / np.median(pitch[0][-2 * EDGE_FRAMES :]))),
        float(levels[1][loud[1][:EDGE_FRAMES]].mean() - levels[0][loud[0][-EDGE_FRAMES:]].mean()),
        float(len(levels[0]) - 1 - loud[0][-1] + loud[1][0]) * SAMPLES_PER_FRAME / SAMPLE_RATE,
        sum(len(part) for part in samples) / SAMPLE_RATE,
        wrong,
    )


def show(kind: str, joins: dict[str, list[Join]], seconds: dict[str, list[float]]) -> None:
    table = Table(
        f"{kind} joins", "pitch step, st", "|off one row|", "level step, dB", "|off|", "pause, s", "|off|", "length, s",
        "words wrong", "acoustic, ms",
    )  # fmt: skip
    for way, found in joins.items():
        cells = []
        for name in ("semitones", "level_db", "pause_s"):
            values = np.array([getattr(each, name) for each in found])
            off = np.abs(values - [getattr(each, name) for each in joins["one row"]])
            cells += [f"{values.mean():+.2f}", f"{off.mean():.2f}"]
        length, wrong = fmean(each.seconds for each in found), sum(each.wrong for each in found)
        table.add_row(way, *cells, f"{length:.2f}", str(wrong), f"{1000 * fmean(seconds[way]):.0f}")
    table.caption = f"vocoder: {1000 * fmean(seconds['vocoder']):.0f} ms for both"
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
