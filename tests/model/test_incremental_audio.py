"""Stretches of a row with the real weights: they go on from each other and sound as the whole; mates change nothing."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tests.model.mel import distance_db
from tutti.model.choice import Choice, load
from tutti.model.onnx import split as cut
from tutti.model.onnx.incremental.generator import harmonics, transform
from tutti.model.onnx.incremental.spans import FIRST, quiet_end, stretches
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Model, Samples, Span, Utterance
from tutti.text.vocab import encode
from tutti.voices import Voices

pytestmark = pytest.mark.weights

PHONEMES = (
    "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs, ænd hˈænd ɪt tə ðə pˈɜɹsᵊn ˌɔn jʊɹ lˈɛft, "
    "ænd ˈɛvɹibədi sˈæt ˌWtsˈId əɡˈɛn."
)
BESIDE = SAMPLE_RATE // 50
SILENT = 1e-5  # the power of what nobody hears beside speech


@pytest.fixture(scope="module")
def model(official: dict[str, Path]) -> Model:
    return load(official["fp32"], Choice("onnx", "cpu", "fp32"), 2)


@pytest.fixture(scope="module")
def row(model: Model, home: Path) -> Frames:
    style = Voices(home / "voices").get("bf_emma").style(len(PHONEMES))
    (frames,) = model.acoustic([Utterance(encode(PHONEMES), style)])
    return frames


@pytest.fixture(scope="module")
def whole(model: Model, row: Frames) -> Samples:
    return model.vocoder([row])[0]


def in_stretches(model: Model, row: Frames, spans: list[tuple[int, int]]) -> list[Samples]:
    kept: dict[str, np.ndarray] = {}
    return [model.vocoder([Span.of(row, span, kept)])[0] for span in spans]


@pytest.fixture(scope="module")
def spans(row: Frames) -> list[tuple[int, int]]:
    """Where a worker cuts."""
    ends = [0]
    for _, end in stretches(row.n_frames, 1.5):
        ends.append(quiet_end(row.energy, ends[-1], end))
    return list(pairwise(ends))


@pytest.fixture(scope="module")
def early(model: Model, row: Frames, spans: list[tuple[int, int]]) -> list[Samples]:
    return in_stretches(model, row, spans)


def test_stretches_sound_as_the_whole_does(early: list[Samples], whole: Samples) -> None:
    assert len(early) > 2
    assert distance_db(np.concatenate(early), whole) <= 1.5


def test_no_join_is_a_step_in_level_or_a_click(early: list[Samples], whole: Samples) -> None:
    def step_db(samples: Samples, at: int) -> float:
        before, behind = samples[at - BESIDE : at], samples[at : at + BESIDE]
        return float(10 * np.log10((np.mean(behind**2) + SILENT) / (np.mean(before**2) + SILENT)))

    joined = np.concatenate(early)
    usual = np.abs(np.diff(joined)).max()
    for at in np.cumsum([len(samples) for samples in early])[:-1]:
        assert abs(step_db(joined, at) - step_db(whole, at)) <= 1.0
        assert abs(joined[at] - joined[at - 1]) <= usual


def test_harmonics_are_those_of_the_official_transform_with_its_errors(official: dict[str, Path]) -> None:
    spectrum = ort.InferenceSession(cut.graphs(official["fp32"]).spectrum, providers=["CPUExecutionProvider"])
    times = np.arange(9600) / SAMPLE_RATE
    voiced = 0.05 * sum(np.sin(2 * np.pi * 130 * harmonic * times) for harmonic in range(1, 10)) - 0.03
    wave = np.where(times < 0.2, -0.03, voiced).astype(np.float32)[None]  # a level, as where nothing sounds
    (theirs,) = spectrum.run(None, {cut.WAVE: wave})
    real, imaginary = theirs[0, ..., 0].T, theirs[0, ..., 1].T
    magnitudes, angles = np.split(harmonics(wave, transform(spectrum, plain_run))[0], 2)
    assert np.abs(magnitudes - np.hypot(real, imaginary)).max() < 1e-5
    around = np.abs(np.exp(1j * angles) - np.exp(1j * np.arctan2(imaginary, real)))
    assert (around > 0.5).mean() < 0.03
    # Which side of the circle a real bin is on is an error's sign, and heard.
    assert (np.sign(angles[0]) == np.sign(imaginary[0]))[real[0] < 0].mean() > 0.95


def plain_run(
    session: ort.InferenceSession, wanted: list[str] | None, inputs: dict[str, np.ndarray]
) -> list[np.ndarray]:
    return session.run(wanted, inputs)  # type: ignore[no-any-return]


def test_where_a_row_is_cut_is_not_heard(model: Model, row: Frames, early: list[Samples]) -> None:
    others = in_stretches(model, row, [(0, FIRST), (FIRST, row.n_frames)])
    assert np.abs(np.concatenate(others) - np.concatenate(early)).max() < 1e-3


def test_a_worker_that_was_lost_goes_on_where_it_was(
    model: Model, row: Frames, spans: list[tuple[int, int]], early: list[Samples]
) -> None:
    (again,) = in_stretches(model, row, [spans[1]])
    assert np.abs(again - early[1]).max() < 1e-5


def test_a_stretch_does_not_hear_its_mates(
    model: Model, row: Frames, spans: list[tuple[int, int]], early: list[Samples], whole: Samples
) -> None:
    kept: dict[str, np.ndarray] = {}
    beside = [model.vocoder([row, Span.of(row, span, kept)]) for span in spans[:2]]
    for (mate, stretch), alone in zip(beside, early, strict=False):
        assert distance_db(mate, whole) < 0.1
        assert distance_db(stretch, alone) < 0.1


def test_stretches_are_all_of_the_row(early: list[Samples], row: Frames) -> None:
    assert sum(map(len, early)) == row.n_frames * SAMPLES_PER_FRAME
    assert all(len(a) and len(b) for a, b in pairwise(early))
