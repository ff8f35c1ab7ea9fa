"""What every backend of the model offers: two stages, and both of them at once."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutti.model.inflection import inflect
from tutti.model.prosody import apply_prosody
from tutti.model.validation import check_count, check_samples
from tutti.speech import Frames, Samples, Utterance

Acoustic = Callable[[Sequence[Utterance]], Sequence[Frames]]
Vocoder = Callable[[Sequence[Frames]], Sequence[Samples]]
OnStep = Callable[[int, int], None]  # steps done, steps in all


class Traits(NamedTuple):
    """What a caller has to know of a model."""

    stages_overlap: bool = False  # an acoustic batch may run in one thread while the vocoder runs in another


class Ran(NamedTuple):
    """What became of rows, in their order: durations after the acoustic stage, samples after the vocoder."""

    durations: Sequence[NDArray[np.int64]] = ()  # frames for each token of each row
    samples: Sequence[Samples] = ()
    acoustic_s: float = 0.0  # seconds of each stage, where both ran
    vocoder_s: float = 0.0


class Model(ABC):
    """A checkpoint ready to run: rows in, as many rows out, in the same order.

    Another family of models needs to implement only the two stages.
    """

    traits = Traits()

    @abstractmethod
    def acoustic(self, rows: Sequence[Utterance]) -> Sequence[Frames]:
        """Tokens to frames, with the intonation that the model gives them."""

    @abstractmethod
    def vocoder(self, rows: Sequence[Frames]) -> Sequence[Samples]:
        """Frames to samples in the format that each row asks for; of a span, those of its frames."""

    def speak(self, rows: Sequence[Utterance]) -> Ran:
        """Both stages. A model that knows a faster way than one after the other overrides it."""
        return speak_in_stages(rows, self.acoustic, self.vocoder)

    def warm_up(self, progress: OnStep = lambda _n_done, _n_steps: None) -> None:
        """Prepare what the first rows would have to wait for."""
        return

    def enter_thread(self) -> None:
        """Prepare a thread to run a stage, if it is not the one that loaded the model."""
        return

    def close(self) -> None:
        """Release what garbage collection would not."""
        return


def run_acoustic(acoustic: Acoustic, rows: Sequence[Utterance]) -> Sequence[Frames]:
    """The frames of rows, with the prosody and the inflection that each asks for."""
    batch = acoustic(rows)
    check_count(len(rows), len(batch))
    for row, frames in zip(rows, batch, strict=True):
        apply_prosody(frames, row.prosody)
    return [
        frames if row.inflection is None else inflect(frames, row.inflection)
        for row, frames in zip(rows, batch, strict=True)
    ]


def run_vocoder(vocoder: Vocoder, rows: Sequence[Frames]) -> Sequence[Samples]:
    """The samples of rows, each as long and in the format as it asks for."""
    batch = vocoder(rows)
    check_count(len(rows), len(batch))
    for frames, samples in zip(rows, batch, strict=True):
        check_samples(frames, samples)
    return batch


def speak_in_stages(rows: Sequence[Utterance], acoustic: Acoustic, vocoder: Vocoder) -> Ran:
    """One stage after the other."""
    start_s = time.perf_counter()
    frames = run_acoustic(acoustic, rows)
    between_s = time.perf_counter()
    samples = run_vocoder(vocoder, frames)
    end_s = time.perf_counter()
    return Ran([row.durations for row in frames], samples, between_s - start_s, end_s - between_s)
