"""Sound before the sentence is finished: how much sooner, and how far from decoding the sentence whole.

python -m benchmarks.early --precision fp32 --out benchmarks/results/early-fp32.json

Long sentences in several voices, each read once and then vocoded twice in the same run, whole and stretch by stretch:
seconds to the first sound and to the last (reading included), the log-mel distance of the two, the step in level at
each join beyond the one that the whole has there, and the words that a recogniser misses in both.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import TypeVar

import numpy as np

from benchmarks.listen import hear, recogniser
from benchmarks.score import word_errors
from tutti import settings
from tutti.model import Choice, load
from tutti.model.stretch import quiet_end, stretches
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Model, Part, Samples, Utterance
from tutti.text import vocab
from tutti.text.g2p import G2P
from tutti.text.spoken import Spoken
from tutti.verify.mel import distance_db
from tutti.voices import Voices
from tutti.weights import MODELS, Store

VOICES = ("af_heart", "bm_george", "am_michael", "bf_emma", "af_bella")
SENTENCES = (
    "The long road that climbed slowly out of the valley behind the old stone church had been closed for most of the "
    "winter by the heavy snow that fell almost every single night upon the northern slopes of the mountain range",
    "Every morning before the market opened the woman who sold oranges beside the fountain in the middle of the square "
    "carefully polished each one of them with the corner of her apron until it shone like a small lamp in the sunlight",
    "Scientists working at the research station near the southern tip of the island have recently published a detailed "
    "report about the unusual behavior of several species of migrating birds that pass through the region twice a year",
    "When the storm finally passed, the fishermen, who had waited three days in the harbor, checked their nets, filled "
    "their tanks, and left, one after another, for the deep water beyond the reef, where the big fish were said to be.",
    "Would you please tell the manager of the hotel that the guests who arrived late last night from Barcelona would "
    "like to have their breakfast served upstairs on the terrace instead of downstairs in the crowded dining room?",
)
BESIDE = SAMPLE_RATE // 20  # samples on each side of a join whose levels are compared
SILENT = 1e-5  # 50 dB below the loudest that there is: below, nobody hears a step
GROWTH = 2.0
GATES = {"first": 0.35, "total": 1.1, "mel_db": 1.5, "step_db": 1.0}

Value = TypeVar("Value")


def timed(act: Callable[[], Value]) -> tuple[Value, float]:
    started_s = time.perf_counter()
    return act(), time.perf_counter() - started_s


def step_db(samples: Samples, at: int) -> float:
    """How much louder it is behind this sample than before it."""
    before, behind = samples[at - BESIDE : at], samples[at : at + BESIDE]
    return float(10 * np.log10((np.mean(behind**2) + SILENT) / (np.mean(before**2) + SILENT)))


def vocoded_early(model: Model, frames: Frames) -> tuple[list[Samples], list[float]]:
    """Each stretch, as a worker cuts them, and what it took."""
    kept: dict[str, np.ndarray] = {}
    pieces, took, start = [], [], 0
    for _, end in stretches(frames.n_frames, GROWTH):
        end = end if end == frames.n_frames else quiet_end(frames.energy, start, end)
        part = Part.of(frames, (start, end), kept)
        (samples,), seconds = timed(lambda part=part: model.vocoder([part]))  # type: ignore[misc]
        pieces.append(samples)
        took.append(seconds)
        start = end
    return pieces, took


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--precision", choices=["fp32", "int8"], default="fp32")
    asked.add_argument("--threads", type=int, default=2)
    asked.add_argument("--sentences", type=int, default=len(SENTENCES))
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--deaf", action="store_true", help="no recogniser")
    asked.add_argument("--out", type=Path)
    given = asked.parse_args()
    home = settings.load({})[0].home
    choice = Choice("onnx", "cpu", given.precision)
    model = load(Store(home).path(MODELS[choice.weights]), choice, given.threads)
    voices, g2p = Voices(home / "voices"), G2P(home)
    ears = None if given.deaf else recogniser("moonshine", home)
    found = []
    print("voice        seconds  first  ratio  total  ratio  mel dB  first  step dB  wrong words, whole and early")
    for text, voice in list(zip(SENTENCES, VOICES, strict=True))[: given.sentences]:
        phonemes = "".join(word.symbols for word in g2p.pronounce(Spoken.of(text), "en-us").words).rstrip()
        row = Utterance(vocab.encode(phonemes), voices.get(voice).style(len(phonemes)))
        model.acoustic([row])  # awake
        (frames,), read_s = timed(lambda row=row: model.acoustic([row]))  # type: ignore[misc]
        wholes, firsts, totals = [], [], []
        for _ in range(given.rounds):
            (whole,), whole_s = timed(lambda frames=frames: model.vocoder([frames]))  # type: ignore[misc]
            pieces, took = vocoded_early(model, frames)
            wholes.append(read_s + whole_s)
            firsts.append(read_s + took[0])
            totals.append(read_s + sum(took))
        early = np.concatenate(pieces)
        joins = np.cumsum([len(piece) for piece in pieces])[:-1].tolist()
        n_first = joins[0]
        line = {
            "voice": voice,
            "audio_s": frames.n_frames * SAMPLES_PER_FRAME / SAMPLE_RATE,
            "whole_s": median(wholes),
            "first_s": median(firsts),
            "total_s": median(totals),
            "first": median(first / whole for first, whole in zip(firsts, wholes, strict=True)),
            "total": median(total / whole for total, whole in zip(totals, wholes, strict=True)),
            "stretches": [len(piece) // SAMPLES_PER_FRAME for piece in pieces],
            "mel_db": distance_db(early, whole),
            "first_mel_db": distance_db(early[:n_first], whole[:n_first]),
            "steps_db": [step_db(early, at) - step_db(whole, at) for at in joins],
        }
        if ears is not None:
            missed = [word_errors([text], hear(ears, samples, SAMPLE_RATE)) for samples in (whole, early)]
            line |= {"wrong_whole": missed[0].wrong, "wrong_early": missed[1].wrong, "words": missed[0].total}
        line["step_db"] = max(map(abs, line["steps_db"]))
        found.append(line)
        wrong = f"{line['wrong_whole']} and {line['wrong_early']} of {line['words']}" if ears else ""
        print(
            f"{voice:12} {line['audio_s']:7.1f} {line['first_s']:6.2f} {line['first']:6.2f} {line['total_s']:6.2f}"
            f" {line['total']:6.2f} {line['mel_db']:7.2f} {line['first_mel_db']:6.2f} {line['step_db']:8.2f}  {wrong}",
            flush=True,
        )
    means = {name: mean(line[name] for line in found) for name in GATES}
    worst = {name: max(line[name] for line in found) for name in GATES}
    for name, limit in GATES.items():
        verdict = "passes" if worst[name] <= limit else "passes in the mean" if means[name] <= limit else "FAILS"
        print(f"{name:8} worst {worst[name]:.2f}, mean {means[name]:.2f}, gate {limit:.2f}: {verdict}")
    if given.out:
        about = {"precision": given.precision, "threads": given.threads, "machine": platform.machine()}
        given.out.write_text(json.dumps({**about, "gates": GATES, "worst": worst, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
