"""The gates of the light networks pass an equal model, and catch every kind of difference."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import silent_voices
from training.verify.held_out import held_out_rows
from training.verify.light import LightGates, LightVerification, RowMeasures, light_checks
from training.verify.meters import Meters
from training.verify.recordings import Recordings
from training.verify.text import TextGates, TextVerification, text_checks
from tutti.model.protocol import Model
from tutti.model.tone import ToneModel
from tutti.speech import Frames, Samples, Span, Utterance
from tutti.verify.sentences import SENTENCES
from tutti.voices import NAMES, Voices, parse_blend


class Changed(ToneModel):
    """A tone model whose samples are changed."""

    def __init__(self, change: Callable[[Frames, Samples], Samples]) -> None:
        self._change = change

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return [self._change(row, samples) for row, samples in zip(rows, super().vocoder(rows), strict=True)]


class Slower(ToneModel):
    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        return super().acoustic([Utterance(row.tokens, row.style, row.speed / 2) for row in rows])


class Judge:
    """Quality falls with the level; the words are right if it is loud."""

    def __call__(self, samples: Samples) -> tuple[float, float]:
        level = float(np.abs(samples).max())
        return 6 * level, 8 * level

    def transcribe(self, samples: Samples, _sample_rate: int) -> str:
        return "" if np.abs(samples).max() < 0.4 else "a grey cat slept on the warm roof of the bakery"


def same_speaker(one: Samples, other: Samples) -> float:
    return 1.0 if np.array_equal(one, other) else 0.9


@pytest.fixture
def voices(tmp_path: Path) -> Voices:
    return silent_voices(tmp_path)


def failed(model: Model, voices: Voices, folder: Path | None = None) -> set[str]:
    judge = Judge()
    exact = Recordings(folder, "exact", ToneModel)
    verification = LightVerification(
        model, "light", exact, voices, Meters({"judge": judge}, judge, same_speaker), folder
    )
    checks = light_checks(verification.measure_rows(held_out_rows()[:1]), LightGates())
    assert len({check.name for check in checks}) == len(checks) == 11
    return {check.name for check in checks if not check.passed}


SOUND = {"log-mel, mean", "log-mel, worst row"}
SPEAKER = {"speaker distance, mean", "speaker distance, worst row"}
JOINS = "windows against the whole"
QUIET = {"level, worst row", "DNSMOS, overall, loss", "DNSMOS, P.808, loss", "wrong words, judge"}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (ToneModel(), set()),
        (Changed(lambda _, samples: 0.5 * samples), QUIET | SPEAKER | SOUND),
        (Changed(lambda _, samples: np.append(samples[1:], samples[:1])), SPEAKER | {JOINS}),
        (Changed(lambda row, samples: samples + 1e-6 * isinstance(row, Span)), {JOINS}),
    ],
    ids=["equal", "quiet", "shifted by one sample", "windows"],
)
def test_a_difference_fails_exactly_the_checks_that_it_concerns(
    voices: Voices, model: Model, expected: set[str]
) -> None:
    assert failed(model, voices) == expected


def test_other_durations_fail(voices: Voices) -> None:
    assert {"durations", "log-mel, worst row"} <= failed(Slower(), voices)


def failed_as_text(model: Model, voices: Voices, folder: Path | None = None) -> set[str]:
    judge = Judge()
    verification = TextVerification(
        model, ToneModel(), "light text", voices, Meters({"judge": judge}, judge, same_speaker), folder
    )
    checks = text_checks(verification.measure_rows(held_out_rows()[:1]), TextGates())
    assert len({check.name for check in checks}) == len(checks) == 7
    return {check.name for check in checks if not check.passed}


LENGTH = {"length of a row, mean", "length of a row, p95"}
QUIET_TEXT = {"level, mean", "DNSMOS, overall, loss", "DNSMOS, P.808, loss", "wrong words, all recognisers"}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (ToneModel(), set()),
        (Changed(lambda _, samples: 0.5 * samples), QUIET_TEXT | {"speaker distance, mean"}),
        (Slower(), LENGTH | {"speaker distance, mean"}),
    ],
    ids=["equal", "quiet", "slow"],
)
def test_a_difference_of_the_text_encoder_fails_the_checks_that_it_concerns(
    voices: Voices, model: Model, expected: set[str], tmp_path: Path
) -> None:
    for _ in ("spoken", "kept"):
        assert failed_as_text(model, voices, tmp_path / "keep") == expected


def test_a_second_run_speaks_nothing_again(voices: Voices, tmp_path: Path) -> None:
    folder = tmp_path / "keep"
    assert failed(ToneModel(), voices, folder) == set()

    def never(_row: Frames, _samples: Samples) -> Samples:
        raise AssertionError("spoken again")

    assert failed(Changed(never), voices, folder) == set()
    for recording in folder.glob("*.npz"):
        recording.write_bytes(b"damaged")
    for measures in folder.glob("*.json"):
        measures.unlink()
    assert failed(ToneModel(), voices, folder) == set()  # spoken again, since the files are gone


def test_measures_without_their_meters_are_left_out() -> None:
    checks = light_checks([RowMeasures(0, 1.0, 0.1, None, 0.0)], LightGates())
    assert [check.name for check in checks if "DNSMOS" in check.name or "speaker" in check.name] == []
    assert len(Meters().missing) == 3


def test_held_out_rows_hold_all_voices_languages_blends_speeds_and_pitches() -> None:
    rows = held_out_rows()
    assert len(rows) >= 300
    assert {row.voice.partition("(")[0].partition("+")[0] for row in rows} == set(NAMES)
    assert sum(len(parse_blend(row.voice)) > 1 for row in rows) > 50
    assert (min(row.speed for row in rows), max(row.speed for row in rows)) == (0.7, 1.5)
    assert (min(row.pitch for row in rows), max(row.pitch for row in rows)) == (-4, 4)
    assert not {row.text for row in rows} & {text for text, _ in SENTENCES}
    assert {row.voice[0] for row in held_out_rows(54)} == {name[0] for name in NAMES}
