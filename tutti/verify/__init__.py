"""Whether a backend speaks as the official graph does, and whether a row hears its neighbours: numbers and gates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tutti.speech import SAMPLE_RATE, Frames, Model, Samples, Utterance
from tutti.verify.hearing import n_wrong, words
from tutti.verify.mel import distance_db
from tutti.verify.sentences import Sentence

Spoken = tuple[Frames, Samples]  # one row after both stages
Official = Callable[[Utterance], Spoken]
Show = Callable[[str, int, int], None]  # what is done, how much of it, of how much


class Ears(Protocol):
    """A speech recogniser."""

    def hear(self, samples: Samples, sample_rate: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Gates:
    """The most that may be found."""

    features: float = 1e-3
    pitch_hz: float = 1e-2
    energy: float = 1e-3
    # The vocoder is chaotic in the pitch: a hundred-thousandth more of it alone moves the sound by up to 0.34 dB.
    sound_db: float = 0.7
    words_points: float = 0.2  # of a hundred words, more than are wrong in the official graph's speech


CHANCE = 2.0  # standard deviations

# In fp16 the curves are rounded; an ear tells about half a hertz at the pitch of a voice.
GATES = {"fp32": Gates(), "int8": Gates(), "fp16": Gates(pitch_hz=0.1, energy=1e-2)}


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, measured."""

    name: str
    found: float
    limit: float
    unit: str = ""
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.found <= self.limit  # not a number is not within a limit


def verify(
    model: Model,
    official: Official,
    said: Sequence[Sentence],
    ears: Ears | None = None,
    gates: Gates = Gates(),  # noqa: B008  frozen
    show: Show = lambda _what, _done, _all: None,
) -> list[Check]:
    """Every promise, measured on these sentences."""
    rows = [sentence.row for sentence in said]
    theirs, alone = [], []
    for i, row in enumerate(rows):
        show("alone", i, len(rows))
        theirs.append(official(row))
        alone += speak(model, [row])
    checks = compare("official", zip(alone, theirs, strict=True), gates)
    mixed: list[tuple[Spoken, Spoken]] = []
    orders = batches(len(rows))
    for i, batch in enumerate(orders):
        show("among others", i, len(orders))
        mixed += zip(speak(model, [rows[i] for i in batch]), [alone[i] for i in batch], strict=True)
    checks += compare("among others", mixed, gates)
    show("again", 0, 1)
    checks.append(same_seed(model, rows[0], rows[-1], gates))
    if ears is not None:
        together = [samples for (_, samples), _ in mixed[: len(rows)]]  # the first order: all rows as they come
        checks.append(wrong_words(ears, said, together, [samples for _, samples in theirs], gates, show))
    return checks


def speak(model: Model, rows: Sequence[Utterance]) -> list[Spoken]:
    frames = model.acoustic(rows)
    return list(zip(frames, model.vocoder(frames), strict=True))


def batches(n_rows: int) -> list[list[int]]:
    """Orders in which each row meets others in other places: all as they come, all reversed, and mixed groups."""
    mixed = list(range(n_rows))
    Random(0).shuffle(mixed)
    return [list(range(n_rows)), list(reversed(range(n_rows))), *(mixed[i : i + 3] for i in range(0, n_rows, 3))]


def compare(against: str, pairs: Iterable[tuple[Spoken, Spoken]], gates: Gates) -> list[Check]:
    """Rows and what they should be: durations exactly, all else within its gate, the worst row counts."""
    n_equal = n_tokens = 0
    features, pitch, energy, sound = [0.0], [0.0], [0.0], [0.0]
    for (mine, heard), (right, expected) in pairs:
        n_tokens += len(right.durations)
        if mine.durations.shape == right.durations.shape:
            n_equal += int((mine.durations == right.durations).sum())
        features.append(_apart(mine.features, right.features))
        pitch.append(_apart(mine.f0, right.f0))
        energy.append(_apart(mine.energy, right.energy))
        sound.append(distance_db(heard, expected))
    note = f"{n_equal:,} of {n_tokens:,} equal; {len(sound) - 1} rows"
    middle = f"median {np.median(sound[1:]):.3f}" if len(sound) > 1 else ""
    return [
        Check(f"durations, {against}", n_tokens - n_equal, 0, "differ", note),
        Check(f"features, {against}", _worst(features), gates.features),
        Check(f"pitch, {against}", _worst(pitch), gates.pitch_hz, "Hz"),
        Check(f"energy, {against}", _worst(energy), gates.energy),
        Check(f"sound, {against}", _worst(sound), gates.sound_db, "dB", middle),
    ]


def same_seed(model: Model, row: Utterance, mate: Utterance, gates: Gates) -> Check:
    """A seeded row sounds the same alone and with mates of other seeds, before it or behind it."""
    seeded = replace(row, seed=1)
    (_, alone), *_ = speak(model, [seeded])
    _, (_, second) = speak(model, [replace(mate, seed=7), seeded])
    (_, first), _ = speak(model, [seeded, replace(mate, seed=8)])
    apart = [distance_db(first, alone), distance_db(second, alone)]
    return Check("sound, same seed", _worst(apart), gates.sound_db, "dB", "mates of other seeds")


def wrong_words(
    ears: Ears, said: Sequence[Sentence], mine: Sequence[Samples], theirs: Sequence[Samples], gates: Gates, show: Show
) -> Check:
    """Words heard wrongly, against those heard wrongly in the official graph's speech, and what chance may add.

    A recogniser is moody: a hair's breadth makes it miss a short sentence whole, in either speech. What both get wrong
    by chance differs by the root of the summed squares of the differences; twice that is forgiven.
    """
    n_words = ours = official = 0
    squares = 0
    for i, (sentence, here, there) in enumerate(zip(said, mine, theirs, strict=True)):
        show("listening", i, len(said))
        right = words(sentence.text)
        n_words += len(right)
        here_wrong, there_wrong = (n_wrong(right, words(ears.hear(one, SAMPLE_RATE))) for one in (here, there))
        ours, official = ours + here_wrong, official + there_wrong
        squares += (here_wrong - there_wrong) ** 2
    limit = 100 * (official + CHANCE * squares**0.5) / n_words + gates.words_points
    note = f"{ours} of {n_words} wrong; official {official}"
    return Check("words, among others", 100 * ours / n_words, limit, "%", note)


def _apart(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")


def _worst(values: Sequence[float]) -> float:
    return float(np.max(values))  # unlike max(), never hides a NaN
