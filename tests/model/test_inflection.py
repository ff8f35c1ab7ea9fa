"""Inflection: what words ask for is done to them, nothing is done to others, and no row hears its neighbours."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import InvalidInput
from tutti.model.inflection import CYCLE_HZ, EDGE_STEPS, EMPHASES, MAX_BEND, inflect, paced
from tutti.model.prosody import VOICED_HZ
from tutti.model.protocol import run_acoustic
from tutti.model.tone import ToneModel
from tutti.model.validation import check_utterances, finish_samples
from tutti.speech import LAG_FRAMES, NO_INFLECTION, SAMPLES_PER_FRAME, Frames, Inflection, Samples, Span, Utterance

N_TOKENS = 20
INFLECTIONS = st.sampled_from(list(EMPHASES.values())) | st.builds(
    Inflection,
    st.floats(0.25, 4),
    st.floats(-12, 12),
    st.floats(-1, 1),
    st.floats(0, 4),
    st.sampled_from([0.0, 1.0]),
    pause=st.just(0.0),
)


def frames(durations: Sequence[int], seed: int = 0) -> Frames:
    draw = np.random.default_rng(seed)
    n = sum(durations)
    f0 = np.where(np.sin(np.arange(2 * n) / 5) > -0.6, draw.uniform(90, 220, 2 * n), 0).astype(np.float32)
    features = np.repeat(np.arange(len(durations), dtype=np.float32), durations)[None].repeat(512, 0)
    return Frames(np.array(durations), features, f0, draw.uniform(-5, 5, 2 * n).astype(np.float32), np.zeros(256))


def of_tokens(first: int, end: int, inflection: Inflection, n: int = N_TOKENS) -> np.ndarray:
    tokens = np.tile(np.array(NO_INFLECTION, np.float32), (n, 1))
    tokens[first:end] = inflection
    return tokens


LENGTHS = st.lists(st.integers(1, 9), min_size=N_TOKENS, max_size=N_TOKENS)


@given(LENGTHS)
def test_no_inflection_changes_nothing(durations: list[int]) -> None:
    row = frames(durations)
    same = inflect(row, of_tokens(0, 0, NO_INFLECTION))
    assert (same.durations == row.durations).all()
    assert same.features.tobytes() == row.features.tobytes()
    assert same.f0.tobytes() == row.f0.tobytes()
    assert same.energy.tobytes() == row.energy.tobytes()
    assert same.gain is None


@given(LENGTHS, INFLECTIONS, st.integers(4, 8), st.integers(9, 16))
def test_what_lies_outside_keeps_its_values(durations: list[int], inflection: Inflection, first: int, end: int) -> None:
    row = frames(durations)
    changed = inflect(row, of_tokens(first, end, inflection))
    assert (changed.durations[:first] == row.durations[:first]).all()
    assert (changed.durations[end:] == row.durations[end:]).all()
    n_before = max(0, 2 * (int(row.durations[:first].sum()) - LAG_FRAMES) - EDGE_STEPS // 2)
    n_after = 2 * int(row.durations[end:].sum())
    gain = np.ones_like(changed.f0) if changed.gain is None else changed.gain
    for curve, before in ((changed.f0, row.f0), (changed.energy, row.energy), (gain, np.ones_like(row.f0))):
        assert (curve[:n_before] == before[:n_before]).all()
        assert (curve[len(curve) - n_after :] == before[len(before) - n_after :]).all()
    assert (changed.features == np.repeat(np.arange(N_TOKENS), changed.durations)).all()


@given(LENGTHS, st.floats(0.25, 4), st.integers(0, 9), st.integers(10, N_TOKENS))
def test_rate_scales_the_time_of_consecutive_tokens(durations: list[int], rate: float, first: int, end: int) -> None:
    rates = np.ones(N_TOKENS, np.float32)
    rates[first:end] = rate
    scaled = paced(np.array(durations), rates)
    assert (scaled >= 1).all()
    wanted = sum(durations[first:end]) / rate
    if wanted >= 3 * (end - first):  # none is kept at one frame
        assert scaled[first:end].sum() == pytest.approx(wanted, abs=1)


@given(st.floats(-12, 12))
def test_pitch_is_semitones_but_for_the_bend_that_keeps_the_phase(pitch: float) -> None:
    row = frames([6] * N_TOKENS)
    changed = inflect(row, of_tokens(5, 15, Inflection(pitch=pitch)))
    inside = slice(2 * 36, 2 * 84)
    voiced = row.f0[inside] > VOICED_HZ
    ratio = changed.f0[inside][voiced] / row.f0[inside][voiced]
    assert ratio == pytest.approx(2 ** (pitch / 12), rel=MAX_BEND + 1e-4)
    assert (changed.f0[inside][~voiced] == row.f0[inside][~voiced]).all()


@given(INFLECTIONS.filter(lambda inflection: inflection.voiced == 1))
def test_the_voice_goes_on_in_phase(inflection: Inflection) -> None:
    row = frames([6] * N_TOKENS)
    changed = inflect(row, of_tokens(5, 15, inflection))
    cycles = (changed.f0.sum(dtype=np.float64) - row.f0.sum(dtype=np.float64)) / CYCLE_HZ
    assert cycles == pytest.approx(round(cycles), abs=1e-3)


def test_whispered_words_have_no_pitch_and_all_else_keeps_its_own() -> None:
    row = frames([6] * N_TOKENS)
    whispered = inflect(row, of_tokens(5, 15, EMPHASES["whispered"]))
    assert not whispered.f0[2 * 30 : 2 * 88].any()
    assert (whispered.f0[: 2 * 27] == row.f0[: 2 * 27]).all()
    assert (whispered.f0[2 * 90 :] == row.f0[2 * 90 :]).all()
    assert (whispered.energy == row.energy).all()


def test_volume_is_a_factor_of_the_samples_with_smooth_edges() -> None:
    row = inflect(frames([4] * N_TOKENS), of_tokens(5, 15, Inflection(volume=0.5)))
    samples = finish_samples(row, np.ones(row.n_frames * SAMPLES_PER_FRAME, np.float32))
    assert samples[: 17 * SAMPLES_PER_FRAME].min() == 1
    assert samples[21 * SAMPLES_PER_FRAME : 57 * SAMPLES_PER_FRAME].max() == 0.5
    assert np.abs(np.diff(samples)).max() < 1e-3


@given(LENGTHS, st.integers(4, 40), st.integers(1, N_TOKENS - 2))
def test_a_pause_is_silence_after_a_token_and_changes_nothing_else(durations: list[int], n: int, token: int) -> None:
    row = frames(durations)
    longer = inflect(row, of_tokens(token, token + 1, Inflection(pause=n)))
    assert longer.durations.tolist() == [*durations[:token], durations[token] + n, *durations[token + 1 :]]
    end = int(row.durations[: token + 1].sum())
    for curve, before in ((longer.f0, row.f0), (longer.energy, row.energy), (longer.features.T, row.features.T)):
        at = end * len(before) // row.n_frames
        assert (curve[:at] == before[:at]).all()
        assert (curve[len(curve) - len(before) + at :] == before[at:]).all()
    samples = finish_samples(longer, np.ones(longer.n_frames * SAMPLES_PER_FRAME, np.float32))
    heard = (end - LAG_FRAMES) * SAMPLES_PER_FRAME, (end + n - LAG_FRAMES) * SAMPLES_PER_FRAME
    assert not samples[heard[0] + SAMPLES_PER_FRAME : heard[1] - SAMPLES_PER_FRAME].any()
    assert (samples[: heard[0]] == 1).all()
    assert (samples[heard[1] :] == 1).all()


def test_spans_of_a_row_have_its_volume() -> None:
    row = inflect(frames([4] * N_TOKENS), of_tokens(5, 15, Inflection(volume=0.5)))
    ones = np.ones(row.n_frames * SAMPLES_PER_FRAME, np.float32)
    parts = [(0, 13), (13, 19), (19, row.n_frames)]
    pieces = [finish_samples(Span.of(row, part, {}), ones[: (part[1] - part[0]) * SAMPLES_PER_FRAME]) for part in parts]
    assert np.array_equal(np.concatenate(pieces), finish_samples(row, ones))


def rows(specs: Sequence[Inflection | None]) -> list[Utterance]:
    return [
        Utterance(
            np.array([0, *range(5, 5 + n), 0]),
            np.zeros(256, np.float32),
            inflection=inflection and of_tokens(2, 4, inflection, n + 2),
        )
        for n, inflection in enumerate(specs, start=4)
    ]


@given(st.lists(st.none() | INFLECTIONS, min_size=1, max_size=6))
def test_a_row_does_not_hear_its_neighbours(specs: list[Inflection | None]) -> None:
    batch = rows(specs)
    for row, samples in zip(batch, speak(batch), strict=True):
        assert np.array_equal(samples, speak([row])[0])


def speak(batch: list[Utterance]) -> Sequence[Samples]:
    return ToneModel().speak(batch).samples


def test_a_row_travels_with_its_inflection() -> None:
    import pickle

    (row,) = rows([Inflection(rate=0.5)])
    (there,) = run_acoustic(ToneModel().acoustic, [pickle.loads(pickle.dumps(row))])
    assert there.durations.tolist() == [2, 2, 4, 4, 2, 2]
    assert row.tokens_at_speed_1 == 8


@pytest.mark.parametrize("inflection", [np.ones((3, 6), np.float32), np.full((6, 6), np.nan, np.float32)])
def test_a_wrong_inflection_is_refused(inflection: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="six finite numbers"):
        check_utterances([Utterance(np.arange(6), np.zeros(256, np.float32), inflection=inflection)])
