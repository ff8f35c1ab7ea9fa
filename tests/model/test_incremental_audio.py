"""Spans of a row with the real weights: they join without a step and sound like the whole, in any batch."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tutti.model.choice import Choice, load
from tutti.model.onnx import split
from tutti.model.onnx.incremental.generator import source_spectrum, stft_matrix
from tutti.model.spans import EXACT_SPANS, quiet_end
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Model, Samples, Span, Utterance
from tutti.text.vocab import encode
from tutti.verify.mel import distance_db
from tutti.voices import Voices

pytestmark = pytest.mark.weights

PHONEMES = (
    "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs, ænd hˈænd ɪt tə ðə pˈɜɹsᵊn ˌɔn jʊɹ lˈɛft, "
    "ænd ˈɛvɹibədi sˈæt ˌWtsˈId əɡˈɛn."
)
WINDOW = SAMPLE_RATE // 50  # samples on each side of a join whose levels are compared
SILENT = 1e-5  # power that is inaudible beside speech


@pytest.fixture(scope="module")
def model(official: dict[str, Path]) -> Model:
    return load(official["fp32"], Choice("onnx", "cpu", "fp32"), 2)


@pytest.fixture(scope="module")
def row(model: Model, home: Path) -> Frames:
    style = Voices(home / "voices").get("bf_emma").style(len(PHONEMES))
    (frames,) = model.acoustic([Utterance(encode(PHONEMES), style, 1.4)])  # three spans
    return frames


@pytest.fixture(scope="module")
def whole(model: Model, row: Frames) -> Samples:
    return model.vocoder([row])[0]


def vocode_spans(model: Model, row: Frames, spans: list[tuple[int, int]]) -> list[Samples]:
    state: dict[str, np.ndarray] = {}
    return [model.vocoder([Span.of(row, span, state)])[0] for span in spans]


@pytest.fixture(scope="module")
def spans(row: Frames) -> list[tuple[int, int]]:
    """The spans that a worker uses."""
    ends = [0]
    for _, end in EXACT_SPANS.split(row.n_frames, 1.5):
        ends.append(quiet_end(row.energy, ends[-1], end))
    return list(pairwise(ends))


@pytest.fixture(scope="module")
def parts(model: Model, row: Frames, spans: list[tuple[int, int]]) -> list[Samples]:
    return vocode_spans(model, row, spans)


def test_spans_sound_like_the_whole(parts: list[Samples], whole: Samples) -> None:
    assert len(parts) > 2
    assert distance_db(np.concatenate(parts), whole) <= 1.5


def test_no_join_is_a_step_in_level_or_a_click(parts: list[Samples], whole: Samples) -> None:
    def step_db(samples: Samples, at: int) -> float:
        before, after = samples[at - WINDOW : at], samples[at : at + WINDOW]
        return float(10 * np.log10((np.mean(after**2) + SILENT) / (np.mean(before**2) + SILENT)))

    joined = np.concatenate(parts)
    largest_step = np.abs(np.diff(joined)).max()
    for at in np.cumsum([len(samples) for samples in parts])[:-1]:
        assert abs(step_db(joined, at) - step_db(whole, at)) <= 1.0
        assert abs(joined[at] - joined[at - 1]) <= largest_step


def test_the_source_spectrum_is_that_of_the_official_stft_with_its_rounding_errors(official: dict[str, Path]) -> None:
    spectrum = ort.InferenceSession(split.split_graphs(official["fp32"]).spectrum, providers=["CPUExecutionProvider"])
    times = np.arange(9600) / SAMPLE_RATE
    voiced = 0.05 * sum(np.sin(2 * np.pi * 130 * harmonic * times) for harmonic in range(1, 10)) - 0.03
    wave = np.where(times < 0.2, -0.03, voiced).astype(np.float32)[None]  # constant, as in unvoiced parts
    (official_spectrum,) = spectrum.run(None, {split.WAVE: wave})
    real, imaginary = official_spectrum[0, ..., 0].T, official_spectrum[0, ..., 1].T
    magnitudes, angles = np.split(source_spectrum(wave, stft_matrix(spectrum, plain_run))[0], 2)
    assert np.abs(magnitudes - np.hypot(real, imaginary)).max() < 1e-5
    difference = np.abs(np.exp(1j * angles) - np.exp(1j * np.arctan2(imaginary, real)))
    assert (difference > 0.5).mean() < 0.03
    # Whether the angle of a negative real bin is +pi or -pi is the sign of a rounding error, and audible.
    assert (np.sign(angles[0]) == np.sign(imaginary[0]))[real[0] < 0].mean() > 0.95


def plain_run(
    session: ort.InferenceSession, outputs: list[str] | None, inputs: dict[str, np.ndarray]
) -> list[np.ndarray]:
    return session.run(outputs, inputs)  # type: ignore[no-any-return]


def test_where_a_row_is_cut_is_inaudible(model: Model, row: Frames, parts: list[Samples]) -> None:
    other_cut = vocode_spans(model, row, [(0, EXACT_SPANS.first), (EXACT_SPANS.first, row.n_frames)])
    assert np.abs(np.concatenate(other_cut) - np.concatenate(parts)).max() < 1e-3


def test_a_restarted_worker_continues_at_any_span(
    model: Model, row: Frames, spans: list[tuple[int, int]], parts: list[Samples]
) -> None:
    (again,) = vocode_spans(model, row, [spans[1]])
    assert np.abs(again - parts[1]).max() < 1e-5


def test_a_span_does_not_hear_its_neighbours(
    model: Model, row: Frames, home: Path, spans: list[tuple[int, int]], parts: list[Samples]
) -> None:
    (short,) = model.acoustic([Utterance(encode("hˈI."), Voices(home / "voices").get("af_heart").style(4))])
    (short_alone,) = model.vocoder([short])
    state: dict[str, np.ndarray] = {}
    batches = [model.vocoder([short, Span.of(row, span, state)]) for span in spans[:2]]
    for (neighbour, part), alone in zip(batches, parts, strict=False):
        assert distance_db(neighbour, short_alone) < 0.1
        assert distance_db(part, alone) < 0.1


def test_spans_cover_the_row(parts: list[Samples], row: Frames) -> None:
    assert sum(map(len, parts)) == row.n_frames * SAMPLES_PER_FRAME
    assert all(len(a) and len(b) for a, b in pairwise(parts))
