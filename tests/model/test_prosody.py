"""Prosody: neutral changes nothing, each control changes what it names, and no row hears its neighbours."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.fakes import running, silent_voices, tone_engine
from tests.recogniser_helper import recognise, word_error_rate
from training.verify.pitch import semitones, shift_semitones
from tutti.engine.build import open_engine
from tutti.errors import InvalidInput
from tutti.model.prosody import EMOTIONS, LIMITS, VOICED_HZ, apply_prosody, check_prosody, combine, find_emotion
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Frames, Prosody, Samples, Utterance

curves = arrays(np.float32, st.integers(1, 40), elements=st.floats(-5, 400, width=32))
prosodies = st.builds(Prosody, *(st.floats(low, high) for low, high in LIMITS.values()))


def frames(f0: np.ndarray) -> Frames:
    n = len(f0)
    return Frames(
        np.ones(n, np.int64), np.zeros((512, n), np.float32), f0.copy(), np.ones(n, np.float32), np.zeros(256)
    )


@given(curves)
def test_neutral_prosody_changes_nothing(f0: np.ndarray) -> None:
    row = frames(f0)
    apply_prosody(row, Prosody())
    assert row.f0.tobytes() == f0.tobytes()
    assert (row.energy == 1).all()


@given(curves, prosodies)
def test_unvoiced_stays_unvoiced_and_voiced_stays_voiced(f0: np.ndarray, prosody: Prosody) -> None:
    row = frames(f0)
    apply_prosody(row, prosody)
    assert ((row.f0 > VOICED_HZ) == (f0 > VOICED_HZ)).all()
    assert (row.f0[f0 <= VOICED_HZ] == f0[f0 <= VOICED_HZ]).all()
    assert np.isfinite(row.f0).all()


@given(st.floats(-12, 12))
def test_pitch_is_semitones(pitch: float) -> None:
    f0 = np.array([0, 110, 150, 220, 3], np.float32)
    row = frames(f0)
    apply_prosody(row, Prosody(pitch))
    assert row.f0 == pytest.approx(f0 * np.where(f0 > VOICED_HZ, 2 ** (pitch / 12), 1), rel=1e-5)


@given(st.floats(0, 2))
def test_range_widens_intervals_around_the_median(pitch_range: float) -> None:
    row = frames(np.array([0, 100, 150, 225], np.float32))
    apply_prosody(row, Prosody(pitch_range=pitch_range))
    assert row.f0[2] == pytest.approx(150, rel=1e-5)
    for before, after in ((100, row.f0[1]), (225, row.f0[3])):
        assert semitones(150, after) == pytest.approx(pitch_range * semitones(150, before), abs=1e-3)


def test_energy_moves_energy_alone() -> None:
    row = frames(np.array([0, 100], np.float32))
    apply_prosody(row, Prosody(energy=2))
    assert (row.f0 == [0, 100]).all()
    assert np.ptp(row.energy) == 0
    assert row.energy[0] > 1


def test_a_row_without_any_pitch_is_left_alone() -> None:
    row = frames(np.zeros(3, np.float32))
    apply_prosody(row, Prosody(5, 2, 0))
    assert not row.f0.any()


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [-13, 13, float("nan"), float("inf")])
def test_limits_name_the_field(name: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be a number from") as error:
        check_prosody(Prosody()._replace(**{name: value}))
    assert error.value.param == name


def test_emotions_keep_the_limits_and_have_names() -> None:
    for name, preset in EMOTIONS.items():
        check_prosody(preset.prosody)
        assert find_emotion(f" {name.upper()} ") is preset
    with pytest.raises(InvalidInput, match="did you mean excited") as error:
        find_emotion("exited")
    assert error.value.param == "emotion"


@given(prosodies, prosodies)
def test_combined_prosody_keeps_the_limits(first: Prosody, second: Prosody) -> None:
    check_prosody(combine(first, second))
    assert combine(first, Prosody()) == first


@given(st.lists(st.tuples(st.integers(1, 9), prosodies), min_size=1, max_size=6))
def test_a_row_does_not_hear_its_neighbours(specs: list[tuple[int, Prosody]]) -> None:
    rows = [
        Utterance(np.array([0, *range(5, 5 + n), 0]), np.zeros(256, np.float32), prosody=prosody)
        for n, prosody in specs
    ]
    for row, samples in zip(rows, speak(rows), strict=True):
        (alone,) = speak([row])
        assert np.array_equal(samples, alone)


def speak(rows: list[Utterance]) -> list[Samples]:
    return list(ToneModel().speak(rows).samples)


def test_an_engine_applies_parameters_and_marks(tmp_path: Path) -> None:
    def cycles(samples: Samples) -> int:
        return int(np.count_nonzero(np.diff(np.signbit(samples))))

    with running(tone_engine(silent_voices(tmp_path))) as engine:
        plain = engine.speak("deep water runs")
        assert engine.speak("deep water runs", pitch=0, emotion="neutral").samples.tobytes() == plain.samples.tobytes()
        low = engine.speak("deep water runs", pitch=-12)
        assert len(low.samples) == len(plain.samples)
        assert cycles(low.samples) == pytest.approx(cycles(plain.samples) / 2, rel=0.02)
        marked = engine.stream("deep. [pitch:-12][rate:2]water.[/pitch][/rate] runs")
        slow, quick = engine.speak("water."), marked[1]
        assert [text_of(speech.words) for speech in marked] == ["deep.", "water.", "runs"]
        assert 0.45 < len(quick.samples) / len(slow.samples) < 0.65  # the frames of a tone at 1.25 are coarse
        lower = cycles(slow.samples) / 2 * len(quick.samples) / len(slow.samples)
        assert cycles(quick.samples) == pytest.approx(lower, rel=0.2)
        for wrong, param in (({"pitch": 13}, "pitch"), ({"energy": -9}, "energy"), ({"emotion": "odd"}, "emotion")):
            with pytest.raises(InvalidInput) as error:
                engine.speak("x", **wrong)
            assert error.value.param == param
        with pytest.raises(InvalidInput, match="af_hart"):
            engine.stream("one [voice:af_hart]two")
        assert engine.speak("one [voice:ann]two", voice_names={"ann": "af_sky"}).samples.any()


def test_features_on_a_device_stay_there() -> None:
    torch = pytest.importorskip("torch")
    from tutti.model.torch.kokoro.padding import DeviceFrames

    features, curves = torch.zeros(4, 512), torch.tensor([[100.0, 0.0]]).repeat(8, 1)
    row = DeviceFrames(np.ones(4, np.int64), features, curves, np.zeros(256, np.float32))
    apply_prosody(row, Prosody(12, 1, 1))
    assert row.device_features is features
    assert row.f0 == pytest.approx(200)
    assert (row.energy > 0).all()


def text_of(words: tuple[object, ...]) -> str:
    return " ".join(word.word for word in words)  # type: ignore[attr-defined]


TEXT = "The old bridge stands over the river."


@pytest.mark.weights
def test_pitch_and_energy_are_measurable_in_the_audio(home: Path) -> None:
    """Three semitones are three semitones in the audio; length and words stay."""
    with running(open_engine(Settings(home=home, precision="fp32", offline=True))) as engine:
        plain = engine.speak(TEXT)
        for pitch, energy in ((3.0, -3.0), (-3.0, 0.0), (0.0, 3.0)):
            changed = engine.speak(TEXT, pitch=pitch, energy=energy)
            assert len(changed.samples) == len(plain.samples)
            assert shift_semitones(plain.samples, changed.samples) == pytest.approx(pitch, abs=0.2)
            louder_db = 10 * np.log10(np.mean(changed.samples**2) / np.mean(plain.samples**2))
            assert louder_db == pytest.approx(energy, abs=1.0)
            assert word_error_rate(TEXT, recognise(changed.samples, SAMPLE_RATE)) == 0
