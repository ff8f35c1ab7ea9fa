"""Measure a backend against the official graph, and each row against itself in other batches."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tutti.model.protocol import Model
from tutti.speech import SAMPLE_RATE, Frames, Samples, Utterance
from tutti.verify.mel import distance_db
from tutti.verify.sentences import CheckSentence
from tutti.verify.word_errors import edit_distance, words

RowOutput = tuple[Frames, Samples]  # of both stages
Reference = Callable[[Utterance], RowOutput]
OnStep = Callable[[str, int, int], None]  # name of the step, done so far, in all


class Recogniser(Protocol):
    """A speech recogniser."""

    def transcribe(self, samples: Samples, sample_rate: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Gates:
    """The largest difference that passes, for each measure."""

    features: float = 1e-3
    pitch_hz: float = 1e-2
    energy: float = 1e-3
    # The vocoder is chaotic in the pitch: a change of it by 1e-5 alone moves the sound by up to 0.34 dB.
    sound_db: float = 0.7
    words_points: float = 0.2  # percentage points of wrong words above those of the official graph


TOLERANCE_SIGMA = 2.0  # standard deviations of the word errors that are forgiven

# In fp16 the curves are rounded; the ear notices about half a hertz at the pitch of a voice.
GATES = {"fp32": Gates(), "int8": Gates(), "fp16": Gates(pitch_hz=0.1, energy=1e-2)}


@dataclass(frozen=True, slots=True)
class Check:
    """One measure and its limit."""

    name: str
    found: float
    limit: float
    unit: str = ""
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.found <= self.limit  # NaN does not pass


def verify(
    model: Model,
    reference: Reference,
    sentences: Sequence[CheckSentence],
    recogniser: Recogniser | None = None,
    gates: Gates = GATES["fp32"],
    on_step: OnStep = lambda _name, _done, _all: None,
) -> list[Check]:
    """Run every check on these sentences."""
    rows = [sentence.row for sentence in sentences]
    expected, alone = [], []
    for i, row in enumerate(rows):
        on_step("alone", i, len(rows))
        expected.append(reference(row))
        alone += speak(model, [row])
    checks = compare("official", zip(alone, expected, strict=True), gates)
    mixed: list[tuple[RowOutput, RowOutput]] = []
    batches = batch_orders(len(rows))
    for i, batch in enumerate(batches):
        on_step("among others", i, len(batches))
        mixed += zip(speak(model, [rows[i] for i in batch]), [alone[i] for i in batch], strict=True)
    checks += compare("among others", mixed, gates)
    on_step("again", 0, 1)
    checks.append(check_seed(model, rows[0], rows[-1], gates))
    if recogniser is not None:
        batched = [samples for (_, samples), _ in mixed[: len(rows)]]  # the first batch: all rows in order
        checks.append(check_words(recogniser, sentences, batched, [samples for _, samples in expected], gates, on_step))
    return checks


def speak(model: Model, rows: Sequence[Utterance]) -> list[RowOutput]:
    """Run both stages."""
    frames = model.acoustic(rows)
    return list(zip(frames, model.vocoder(frames), strict=True))


def batch_orders(n_rows: int) -> list[list[int]]:
    """Batches with each row in several places: all in order, all reversed, and shuffled groups of three."""
    shuffled = list(range(n_rows))
    Random(0).shuffle(shuffled)
    return [list(range(n_rows)), list(reversed(range(n_rows))), *(shuffled[i : i + 3] for i in range(0, n_rows, 3))]


def compare(against: str, pairs: Iterable[tuple[RowOutput, RowOutput]], gates: Gates) -> list[Check]:
    """Compare (actual, expected) rows: durations exactly, all else within its gate; the worst row counts."""
    n_equal = n_tokens = 0
    features, pitch, energy, sound = [0.0], [0.0], [0.0], [0.0]
    for (actual, actual_samples), (expected, expected_samples) in pairs:
        n_tokens += len(expected.durations)
        if actual.durations.shape == expected.durations.shape:
            n_equal += int((actual.durations == expected.durations).sum())
        features.append(_max_difference(actual.features, expected.features))
        pitch.append(_max_difference(actual.f0, expected.f0))
        energy.append(_max_difference(actual.energy, expected.energy))
        sound.append(distance_db(actual_samples, expected_samples))
    note = f"{n_equal:,} of {n_tokens:,} equal; {len(sound) - 1} rows"
    median = f"median {np.median(sound[1:]):.3f}" if len(sound) > 1 else ""
    return [
        Check(f"durations, {against}", n_tokens - n_equal, 0, "differ", note),
        Check(f"features, {against}", _worst(features), gates.features),
        Check(f"pitch, {against}", _worst(pitch), gates.pitch_hz, "Hz"),
        Check(f"energy, {against}", _worst(energy), gates.energy),
        Check(f"sound, {against}", _worst(sound), gates.sound_db, "dB", median),
    ]


def check_seed(model: Model, row: Utterance, other: Utterance, gates: Gates) -> Check:
    """Compare a seeded row alone with the same row before and after rows of other seeds."""
    seeded = replace(row, seed=1)
    (_, alone), *_ = speak(model, [seeded])
    _, (_, second) = speak(model, [replace(other, seed=7), seeded])
    (_, first), _ = speak(model, [seeded, replace(other, seed=8)])
    distances = [distance_db(first, alone), distance_db(second, alone)]
    return Check("sound, same seed", _worst(distances), gates.sound_db, "dB", "among rows of other seeds")


def check_words(
    recogniser: Recogniser,
    sentences: Sequence[CheckSentence],
    actual: Sequence[Samples],
    expected: Sequence[Samples],
    gates: Gates,
    on_step: OnStep,
) -> Check:
    """Wrongly recognised words, against those in the official graph's speech, with a tolerance for chance.

    A recogniser is unstable: a tiny change makes it miss a whole short sentence, in either speech. The standard
    deviation of the difference is estimated by the root of the summed squared differences.
    """
    n_words = n_wrong = n_wrong_official = 0
    squares = 0
    for i, (sentence, *pair) in enumerate(zip(sentences, actual, expected, strict=True)):
        on_step("listening", i, len(sentences))
        right = words(sentence.text)
        n_words += len(right)
        transcripts = [words(recogniser.transcribe(samples, SAMPLE_RATE)) for samples in pair]
        wrong, wrong_official = (edit_distance(right, transcript) for transcript in transcripts)
        n_wrong, n_wrong_official = n_wrong + wrong, n_wrong_official + wrong_official
        squares += (wrong - wrong_official) ** 2
    limit = 100 * (n_wrong_official + TOLERANCE_SIGMA * squares**0.5) / n_words + gates.words_points
    note = f"{n_wrong} of {n_words} wrong; official {n_wrong_official}"
    return Check("words, among others", 100 * n_wrong / n_words, limit, "%", note)


def _max_difference(actual: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    return float(np.abs(actual - expected).max()) if actual.shape == expected.shape else float("inf")


def _worst(values: Sequence[float]) -> float:
    return float(np.max(values))  # unlike max(), never hides a NaN
