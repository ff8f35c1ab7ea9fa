"""What every backend keeps, with or without weights: the tone model, and Kokoro in both precisions."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tutti.errors import InvalidInput, ModelFailed
from tutti.model import choose, load
from tutti.model.contract import check_samples
from tutti.model.tone import ToneModel
from tutti.speech import SAMPLES_PER_FRAME, Frames, Model, Utterance
from tutti.voices import NAMES, Voices

BACKENDS = ["tone", pytest.param("fp32", marks=pytest.mark.weights), pytest.param("int8", marks=pytest.mark.weights)]

Row = Callable[..., Utterance]


@pytest.fixture(scope="module", params=BACKENDS)
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    if request.param == "tone":
        yield ToneModel(lanes=2)
        return
    official = request.getfixturevalue("official")[request.param]
    model = load(official, choose("onnx", precision=request.param), 2)
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
    return [row(9), row(31, "am_adam", 1.3), row(1), row(18, "bf_emma", 0.7), row(9, "zm_yunxi")]


def test_as_many_rows_come_out_as_go_in(model: Model) -> None:
    assert list(model.acoustic([])) == []
    assert list(model.vocoder([])) == []


def test_frames_and_samples_have_the_lengths_that_durations_say(model: Model, rows: list[Utterance]) -> None:
    frames = model.acoustic(rows)
    for utterance, between, samples in zip(rows, frames, model.vocoder(frames), strict=True):
        n = between.n_frames
        assert len(between.durations) == len(utterance.tokens)
        assert between.durations.min() >= 1
        assert between.durations.sum() == n
        assert between.f0.shape == between.energy.shape == (2 * n,)
        assert samples.shape == (n * SAMPLES_PER_FRAME,)
        assert samples.dtype == np.float32
        assert np.abs(samples).max() > 0.01


def test_a_row_does_not_hear_its_neighbours(model: Model, rows: list[Utterance]) -> None:
    together = model.acoustic(rows)
    sounds = model.vocoder(together)
    for i in reversed(range(len(rows))):
        (alone,) = model.acoustic([rows[i]])
        assert np.array_equal(alone.durations, together[i].durations)
        assert np.array_equal(alone.f0, together[i].f0)
        (sound,) = model.vocoder([alone])
        # Alone, the sums of a row are split over all cores: another order of adding, a millionth at most.
        assert np.abs(sound - sounds[i]).max() < 1e-5


def test_mates_and_places_in_a_batch_do_not_change_a_sample(model: Model, rows: list[Utterance]) -> None:
    frames = model.acoustic(rows)
    first = model.vocoder([frames[0], frames[2]])[0]
    assert np.array_equal(model.vocoder([frames[3], frames[0]])[1], first)


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


def test_a_style_that_is_not_finite_is_refused(model: Model, row: Row) -> None:
    style = row(3).style.copy()
    style[7] = np.nan
    with pytest.raises(InvalidInput, match="finite"):
        model.acoustic([Utterance(row(3).tokens, style)])


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf"), 9.0])
def test_a_speed_that_nobody_speaks_at_is_refused(model: Model, row: Row, speed: float) -> None:
    with pytest.raises(InvalidInput, match="speed"):
        model.acoustic([row(3, speed=speed)])


def test_broken_sound_is_refused() -> None:
    frames = Frames(np.array([2]), np.zeros((512, 2), np.float32), *[np.zeros(4, np.float32)] * 2, np.zeros(256))  # type: ignore[arg-type]
    sound = np.zeros(2 * SAMPLES_PER_FRAME, np.float32)
    assert check_samples(frames, sound) is sound
    for broken in (sound[:-1], np.full_like(sound, np.nan), np.full_like(sound, np.inf)):
        with pytest.raises(ModelFailed):
            check_samples(frames, broken)
