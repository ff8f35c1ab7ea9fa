"""The contract of every backend: the tone model, ONNX Runtime in both precisions, PyTorch; exact and light."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tutti.errors import InvalidInput, ModelFailed
from tutti.model.choice import choose, load
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.model.validation import check_samples, finish_samples
from tutti.speech import FULL_SCALE, SAMPLES_PER_FRAME, Frames, Samples, Utterance, to_pcm
from tutti.verify.mel import distance_db
from tutti.voices import NAMES, Voices


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much a row may differ from itself when it is computed in another batch."""

    pitch_hz: float = 0.0
    features: float = 0.0
    samples: float = 1e-5  # one core or all cores, depending on the batch: another order of summation, a millionth
    sound_db: float = 0.01


# PyTorch chooses its kernels by shape, and the vocoder is chaotic in the last bits of the pitch: compare by ear.
TOLERANCES = dict.fromkeys(
    ("torch", "torch-light"), Tolerance(pitch_hz=1e-2, features=1e-3, samples=np.inf, sound_db=0.1)
)
CHOICES = {
    "fp32": ("onnx", "fp32", "exact"),
    "int8": ("onnx", "int8", "exact"),
    "light": ("onnx", "fp32", "light"),
    "int8-light": ("onnx", "int8", "light"),
    "torch": ("torch", "fp32", "exact"),
    "torch-light": ("torch", "fp32", "light"),
}
BACKENDS = ["tone", *(pytest.param(name, marks=pytest.mark.weights) for name in CHOICES)]

Row = Callable[..., Utterance]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tolerance(backend: str) -> Tolerance:
    return TOLERANCES.get(backend, Tolerance())


@pytest.fixture(scope="module")
def model(backend: str, request: pytest.FixtureRequest) -> Iterator[Model]:
    if backend == "tone":
        yield ToneModel()
        return
    library, precision, vocoder = CHOICES[backend]
    if library == "torch":
        pytest.importorskip("torch")
    choice = choose(library, "cpu", precision, vocoder=vocoder)  # type: ignore[arg-type]
    model = load(request.getfixturevalue("official")[choice.weights], choice, 1 if library == "torch" else 2)
    yield model
    model.close()


@pytest.fixture(scope="module")
def row(model: Model, request: pytest.FixtureRequest) -> Row:
    """Makes an utterance of n phonemes in some voice."""
    voices = None if isinstance(model, ToneModel) else Voices(request.getfixturevalue("home") / "voices")

    def make(n: int, voice: str = "af_heart", speed: float = 1.0) -> Utterance:
        # h ə l O , w ɜ ɹ l d and a blank, over and over
        ids = np.resize([50, 83, 54, 31, 3, 16, 65, 87, 123, 54, 46, 16], n)
        style = voices.get(voice).style(n) if voices else np.full(256, NAMES.index(voice), np.float32)
        return Utterance(np.array([0, *ids, 0], np.int64), style, speed)

    return make


@pytest.fixture(scope="module")
def rows(row: Row) -> list[Utterance]:
    return [row(7, speed=2.0), row(16, "am_adam", 2.6), row(1), row(9, "bf_emma", 1.6)]  # fast, so that they are short


@pytest.fixture(scope="module")
def together(model: Model, rows: list[Utterance]) -> tuple[Sequence[Frames], Sequence[Samples]]:
    """The frames and samples of all rows, computed in one batch."""
    frames = model.acoustic(rows)
    return frames, model.vocoder(frames)


def test_as_many_rows_come_out_as_go_in(model: Model) -> None:
    assert list(model.acoustic([])) == []
    assert list(model.vocoder([])) == []


def test_frames_and_samples_have_the_lengths_that_durations_say(
    rows: list[Utterance], together: tuple[Sequence[Frames], Sequence[Samples]]
) -> None:
    for utterance, row_frames, samples in zip(rows, *together, strict=True):
        n = row_frames.n_frames
        assert len(row_frames.durations) == len(utterance.tokens)
        assert row_frames.durations.min() >= 1
        assert row_frames.durations.sum() == n
        assert row_frames.f0.shape == row_frames.energy.shape == (2 * n,)
        assert samples.shape == (n * SAMPLES_PER_FRAME,)
        assert samples.dtype == np.float32
        assert np.abs(samples).max() > 0.01


def test_a_row_does_not_hear_its_neighbours(
    model: Model, rows: list[Utterance], together: tuple[Sequence[Frames], Sequence[Samples]], tolerance: Tolerance
) -> None:
    for utterance, frames, samples in zip(rows, *together, strict=True):
        (alone,) = model.acoustic([utterance])
        assert np.array_equal(alone.durations, frames.durations)
        assert np.abs(alone.features - frames.features).max() <= tolerance.features
        assert np.abs(alone.energy - frames.energy).max() <= tolerance.features
        assert np.abs(alone.f0 - frames.f0).max() <= tolerance.pitch_hz
        (sound,) = model.vocoder([alone])
        assert np.abs(sound - samples).max() < tolerance.samples
        assert distance_db(sound, samples) <= tolerance.sound_db


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize("volume", [None, 0.5])
def test_both_stages_at_once_are_one_after_the_other_in_the_format_of_the_rows(
    model: Model, rows: list[Utterance], n_rows: int, volume: float | None, tolerance: Tolerance
) -> None:
    asked = [replace(row, pcm_volume=volume) for row in rows[:n_rows]]
    spoken, frames = model.speak(asked), model.acoustic(asked)
    for n_frames, row_frames in zip(spoken.durations, frames, strict=True):
        assert np.array_equal(n_frames, row_frames.durations)
    full_scale = 1.0 if volume is None else FULL_SCALE
    for at_once, in_turn in zip(spoken.samples, model.vocoder(frames), strict=True):
        assert at_once.dtype == in_turn.dtype == (np.float32 if volume is None else np.int16)
        first, second = at_once / full_scale, in_turn / full_scale
        assert np.abs(first - second).max() <= tolerance.samples
        assert distance_db(first, second) <= tolerance.sound_db


def test_a_row_may_ask_for_integers_beside_one_that_asks_for_floats(
    model: Model, rows: list[Utterance], tolerance: Tolerance
) -> None:
    first, second = model.vocoder(model.acoustic([rows[0], replace(rows[0], pcm_volume=0.5)]))
    assert (first.dtype, second.dtype) == (np.float32, np.int16)
    expected = to_pcm(first, 0.5) / FULL_SCALE
    assert np.abs(second / FULL_SCALE - expected).max() <= max(tolerance.samples, 1 / FULL_SCALE)
    assert distance_db(second / FULL_SCALE, expected) <= tolerance.sound_db


def test_the_place_in_a_batch_changes_no_sample(
    model: Model, together: tuple[Sequence[Frames], Sequence[Samples]], tolerance: Tolerance
) -> None:
    frames, _ = together
    first = model.vocoder([frames[0], frames[2]])[0]
    second = model.vocoder([frames[3], frames[0]])[1]
    assert np.abs(second - first).max() <= tolerance.samples
    assert distance_db(second, first) <= tolerance.sound_db


def test_the_same_seed_sounds_the_same_whatever_the_seeds_of_others(
    model: Model, row: Row, tolerance: Tolerance
) -> None:
    plain, other = row(5, speed=2.0), row(3, "am_adam", 2.0)
    sounds = [
        model.vocoder(model.acoustic([replace(other, seed=other_seed), replace(plain, seed=seed)]))[1]
        for seed, other_seed in ((None, None), (1, 2), (2**63 - 1, 1))
    ]
    for sound in sounds[1:]:
        assert np.abs(sound - sounds[0]).max() <= tolerance.samples
        assert distance_db(sound, sounds[0]) <= tolerance.sound_db


def test_slower_speech_takes_longer(model: Model, row: Row) -> None:
    slow, plain, fast = model.acoustic([row(20, speed=speed) for speed in (0.5, 1, 2)])
    assert slow.n_frames > plain.n_frames > fast.n_frames


@pytest.mark.parametrize("n", [0, 511])
def test_too_few_or_too_many_phonemes_are_refused(model: Model, row: Row, n: int) -> None:
    good = row(3)
    bad = Utterance(np.zeros(n + 2, np.int64), good.style)
    with pytest.raises(InvalidInput, match=f"not {n}") as caught:
        model.acoustic([good, bad])
    assert caught.value.param == "input"


def test_the_longest_legal_row_is_read(model: Model, row: Row) -> None:
    (frames,) = model.acoustic([row(510, speed=4)])
    assert len(frames.durations) == 512


def test_a_style_that_is_not_finite_is_refused(model: Model, row: Row) -> None:
    style = row(3).style.copy()
    style[7] = np.nan
    with pytest.raises(InvalidInput, match="finite") as caught:
        model.acoustic([row(3), replace(row(3), style=style)])
    assert caught.value.param == "voice"


def test_a_broken_row_is_an_error_and_the_others_work_without_it(model: Model, row: Row) -> None:
    good, other = model.acoustic([row(3, speed=2.0), row(5, speed=2.0)])
    (before,) = model.vocoder([good])
    nan = np.full_like(other.f0, np.nan)
    broken = Frames(other.durations, other.features, nan, other.energy, other.style)
    with pytest.raises(ModelFailed, match="finite"):
        model.vocoder([good, broken])
    (after,) = model.vocoder([good])
    assert np.array_equal(after, before)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf"), 9.0])
def test_a_speed_outside_the_limits_is_refused(model: Model, row: Row, speed: float) -> None:
    with pytest.raises(InvalidInput, match="speed"):
        model.acoustic([row(3, speed=speed)])


def test_broken_samples_are_refused() -> None:
    frames = Frames(np.array([2]), np.zeros((512, 2), np.float32), *[np.zeros(4, np.float32)] * 2, np.zeros(256))  # type: ignore[arg-type]
    sound = np.zeros(2 * SAMPLES_PER_FRAME, np.float32)
    assert finish_samples(frames, sound) is sound
    for broken in (np.full_like(sound, np.nan), np.full_like(sound, np.inf)):
        with pytest.raises(ModelFailed):
            finish_samples(frames, broken)
    check_samples(frames, sound)
    for broken in (sound[:-1], sound.astype(np.int16)):
        with pytest.raises(ModelFailed):
            check_samples(frames, broken)  # type: ignore[arg-type]
