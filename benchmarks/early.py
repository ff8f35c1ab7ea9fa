"""Incremental vocoding: how much earlier the first audio is, and how far from vocoding the sentence as a whole.

python -m benchmarks.early --precision fp32 --out benchmarks/results/early-fp32.json      10 minutes on two cores

Sentences of about 15 seconds in several voices, each vocoded as a whole and span by span in turns: seconds to the first
audio and to the last (acoustic stage included), the log-mel distance of the two, the words that a recogniser misses in
both, and steps in level at the joins beyond those of the whole, over 50 ms and 200 ms on both sides. `own_step_db` is
the part of such a step that disappears when the same frames are vocoded across the join; the rest occurs everywhere.
For scale, the same between two whole rows, one of them with its pitch changed by 1e-5.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import TypeVar

import numpy as np

from benchmarks.recognisers import load_recogniser, transcribe
from benchmarks.score import word_errors
from tutti import settings
from tutti.model.choice import Choice, load
from tutti.model.spans import EXACT_SPANS, quiet_end
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Model, Samples, Span, Utterance
from tutti.text import vocab
from tutti.text.aligned_text import AlignedText
from tutti.text.g2p import G2P
from tutti.verify.mel import distance_db
from tutti.voices import Voices
from tutti.weights import MODELS, Store

VOICES = ("af_heart", "bm_george", "am_michael", "bf_emma", "af_bella")
SENTENCES = (
    "The long road that climbed slowly out of the valley behind the old stone church had been closed for most of the "
    "winter by the heavy snow that fell almost every single night upon the northern slopes of the mountain range "
    "and had not been cleared",
    "Every morning before the market opened the woman who sold oranges beside the fountain in the middle of the square "
    "carefully polished each one of them with the corner of her apron until it shone like a small lamp in the sunlight",
    "Scientists working at the research station near the southern tip of the island have recently published a detailed "
    "report about the unusual behavior of several species of migrating birds that pass through the region twice a year",
    "When the storm finally passed, the fishermen, who had waited three days in the harbor, checked their nets, filled "
    "their tanks, and left, one after another, for the deep water beyond the reef, where the big fish were said to be, "
    "though nobody had caught any of them since the spring.",
    "Would you please tell the manager of the hotel that the guests who arrived late last night from Barcelona would "
    "like to have their breakfast served upstairs on the terrace instead of downstairs in the crowded dining room "
    "beside the kitchen?",
)
WINDOWS = {"50ms": SAMPLE_RATE // 20, "200ms": SAMPLE_RATE // 5}  # samples on each side whose levels are compared
CONTEXT = 20  # frames on each side of a join that are vocoded again, across it
PITCH_CHANGE = np.float32(1 + 1e-5)
SILENT = 1e-5  # power, 50 dB below full scale: steps below it are inaudible
GROWTH = 2.0
GATES = {"first": 0.35, "total": 1.1, "mel_db": 1.5, "step_db_50ms": 1.0, "step_db_200ms": 1.0, "own_step_db": 1.0}

Value = TypeVar("Value")


def timed(call: Callable[[], Value]) -> tuple[Value, float]:
    started_s = time.perf_counter()
    return call(), time.perf_counter() - started_s


def level_db(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(samples**2) + SILENT))


def step_db(samples: Samples, at: int, window: int) -> float:
    """How much louder it is after this sample than before it."""
    return level_db(samples[at : at + window]) - level_db(samples[max(0, at - window) : at])


def max_step_difference_db(one: Samples, other: Samples, places: Sequence[int], window: int) -> float:
    """The most that a step in level at one of these places differs from that of the other."""
    return max(abs(step_db(one, at, window) - step_db(other, at, window)) for at in places)


def usual_db(one: Samples, other: Samples, window: int) -> float:
    """The 90th percentile over all places."""
    places = range(window, len(one) - window, SAMPLES_PER_FRAME)
    return float(np.percentile([max_step_difference_db(one, other, [at], window) for at in places], 90))


def own_step_db(model: Model, frames: Frames, state: dict[str, np.ndarray], early: Samples, at: int) -> float:
    """The step that disappears when the same frames are vocoded across the join."""
    join = at // SAMPLES_PER_FRAME
    start, end = max(0, join - CONTEXT), min(frames.n_frames, join + CONTEXT)
    (across,) = model.vocoder([Span.of(frames, (start, end), state)])
    joined = early[start * SAMPLES_PER_FRAME : end * SAMPLES_PER_FRAME]
    return max_step_difference_db(joined, across, [at - start * SAMPLES_PER_FRAME], WINDOWS["50ms"])


def vocode_spans(model: Model, frames: Frames, state: dict[str, np.ndarray]) -> tuple[list[Samples], list[float]]:
    """Each span, as a worker cuts them, and the seconds it took."""
    pieces, took, start = [], [], 0
    for _, end in EXACT_SPANS.split(frames.n_frames, GROWTH):
        end = quiet_end(frames.energy, start, end)
        span = Span.of(frames, (start, end), state)
        (samples,), seconds = timed(lambda span=span: model.vocoder([span]))  # type: ignore[misc]
        pieces.append(samples)
        took.append(seconds)
        start = end
    return pieces, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", choices=["fp32", "int8"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-recogniser", action="store_true", help="skip the words that a recogniser misses")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    home = settings.load({})[0].home
    choice = Choice("onnx", "cpu", args.precision)
    model = load(Store(home).path(MODELS[choice.weights]), choice, args.threads)
    voices, g2p = Voices(home / "voices"), G2P(home)
    recogniser = None if args.no_recogniser else load_recogniser("moonshine", home)
    results = []
    print("voice       seconds  first  ratio  total  ratio  mel dB  first  step dB 50 ms  200 ms   own  wrong words")
    for text, voice in list(zip(SENTENCES, VOICES, strict=True))[: args.sentences]:
        phonemes = "".join(word.symbols for word in g2p.pronounce(AlignedText.of(text), "en-us").words).rstrip()
        row = Utterance(vocab.encode(phonemes), voices.get(voice).style(len(phonemes)))
        (frames,) = model.acoustic([row])
        changed = model.vocoder([replace(frames, f0=frames.f0 * PITCH_CHANGE)])[0]  # also warms up
        wholes, firsts, totals = [], [], []
        for _ in range(args.rounds):
            state: dict[str, np.ndarray] = {}
            _, acoustic_s = timed(lambda row=row: model.acoustic([row]))  # type: ignore[misc]
            (whole,), whole_s = timed(lambda frames=frames: model.vocoder([frames]))  # type: ignore[misc]
            pieces, took = vocode_spans(model, frames, state)
            wholes.append(acoustic_s + whole_s)
            firsts.append(acoustic_s + took[0])
            totals.append(acoustic_s + sum(took))
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
            "moved_mel_db": distance_db(changed, whole),
            "own_step_db": max(own_step_db(model, frames, state, early, at) for at in joins),
        }
        for name, window in WINDOWS.items():
            line[f"step_db_{name}"] = max_step_difference_db(early, whole, joins, window)
            line[f"usual_db_{name}"] = usual_db(early, whole, window)
            line[f"moved_usual_db_{name}"] = usual_db(changed, whole, window)
        if recogniser is not None:
            errors = [word_errors([text], transcribe(recogniser, samples, SAMPLE_RATE)) for samples in (whole, early)]
            line |= {"wrong_whole": errors[0].wrong, "wrong_early": errors[1].wrong, "words": errors[0].total}
        results.append(line)
        wrong = f"{line['wrong_whole']} and {line['wrong_early']} of {line['words']}" if recogniser else ""
        print(
            f"{voice:11} {line['audio_s']:7.1f} {line['first_s']:6.2f} {line['first']:6.2f} {line['total_s']:6.2f}"
            f" {line['total']:6.2f} {line['mel_db']:7.2f} {line['first_mel_db']:6.2f} {line['step_db_50ms']:14.2f}"
            f" {line['step_db_200ms']:7.2f} {line['own_step_db']:5.2f}  {wrong}",
            flush=True,
        )
    for name in (*(f"usual_db_{name}" for name in WINDOWS), "mel_db"):
        ours, theirs = (mean(line[of + name] for line in results) for of in ("", "moved_"))
        print(f"{name:14} {ours:.2f}, by a change of the pitch by 1e-5 {theirs:.2f}")
    means = {name: mean(line[name] for line in results) for name in GATES}
    worst = {name: max(line[name] for line in results) for name in GATES}
    for name, limit in GATES.items():
        verdict = "passes" if worst[name] <= limit else "passes in the mean" if means[name] <= limit else "FAILS"
        print(f"{name:14} worst {worst[name]:.2f}, mean {means[name]:.2f}, gate {limit:.2f}: {verdict}")
    if args.out:
        setting = {"precision": args.precision, "threads": args.threads, "machine": platform.machine()}
        args.out.write_text(json.dumps({**setting, "gates": GATES, "worst": worst, "rows": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
