"""Verification passes a model that is right and catches every way of being wrong that we know."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tutti.cli import main as cli
from tutti.model.choice import Precision
from tutti.model.tone import ToneModel
from tutti.speech import STYLE_SIZE, Frames, Samples, Utterance
from tutti.text.vocab import encode
from tutti.verify import GATES, Check, Gates, batches, speak, verify, wrong_words
from tutti.verify.hearing import n_wrong, words
from tutti.verify.mel import distance_db
from tutti.verify.report import Report
from tutti.verify.sentences import SENTENCES, Sentence
from tutti.voices import NAMES

SAID = [
    Sentence(text, "none", Utterance(encode(phonemes[: 5 + 4 * i]), np.zeros(STYLE_SIZE, np.float32)))
    for i, (text, phonemes) in enumerate(SENTENCES[:4])
]


class Broken(ToneModel):
    """A tone model with a fault in one of its stages."""

    def __init__(
        self,
        frames: Callable[[list[Frames]], list[Frames]] = lambda rows: rows,
        samples: Callable[[list[Samples]], list[Samples]] = lambda rows: rows,
    ) -> None:
        super().__init__()
        self._spoil_frames, self._spoil_samples = frames, samples

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        return self._spoil_frames(super().acoustic(rows))

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return self._spoil_samples(super().vocoder(rows))


class Seeded(ToneModel):
    """Draws its noise for a whole batch from the seed of the first row."""

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        self._seed = rows[0].seed
        return super().acoustic(rows)

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        random = np.random.default_rng(self._seed)
        noise = 0 if self._seed is None else 0.3
        return [(row + noise * random.standard_normal(len(row))).astype(np.float32) for row in super().vocoder(rows)]


class Ears:
    """Hears the words of the list, in turn."""

    def __init__(self, heard: list[str]) -> None:
        self._heard = iter(heard)

    def hear(self, samples: Samples, sample_rate: int) -> str:
        return next(self._heard)


def official(row: Utterance) -> tuple[Frames, Samples]:
    return speak(ToneModel(), [row])[0]


def shifted(rows: list[Frames]) -> list[Frames]:
    """A frame goes from the first token to the second: the whole is as long as ever."""
    move = np.zeros(512, np.int64)
    move[:2] = -1, 1
    return [replace(row, durations=row.durations + move[: len(row.durations)]) for row in rows]


def leaking(rows: list[Samples]) -> list[Samples]:
    """The longest row is heard in the others, 20 dB below them."""
    longest = max(rows, key=len)
    return [row + 0.1 * longest[: len(row)] if row is not longest else row for row in rows]


def by_place(rows: list[Frames]) -> list[Frames]:
    """Every later place in the batch is sung a little higher."""
    return [replace(row, f0=row.f0 + 0.02 * place) for place, row in enumerate(rows)]


def louder_features(rows: list[Frames]) -> list[Frames]:
    return [replace(row, features=row.features + 0.01) for row in rows]


def broken_numbers(rows: list[Samples]) -> list[Samples]:
    return [np.where(np.arange(len(row)) == 700, np.nan, row).astype(np.float32) for row in rows]


def crossed(rows: list[Frames]) -> list[Frames]:
    return rows[::-1]


def failed(model: ToneModel) -> set[str]:
    return {check.name for check in verify(model, official, SAID) if not check.passed}


def test_a_right_model_passes() -> None:
    checks = verify(ToneModel(), official, SAID)
    assert all(check.passed for check in checks)
    assert len({check.name for check in checks}) == len(checks)


@pytest.mark.parametrize(
    ("model", "caught"),
    [
        (Broken(frames=shifted), {"durations, official"}),
        (Broken(frames=louder_features), {"features, official"}),
        (Broken(frames=by_place), {"pitch, among others"}),
        (Broken(samples=leaking), {"sound, among others", "sound, same seed"}),
        (Broken(samples=broken_numbers), {"sound, official", "sound, among others", "sound, same seed"}),
        (Seeded(), {"sound, same seed"}),
    ],
    ids=["durations", "features", "place", "leak", "nan", "seed"],
)
def test_a_broken_model_fails_at_its_fault_and_there_alone(model: ToneModel, caught: set[str]) -> None:
    assert failed(model) == caught


def test_a_model_that_gives_rows_to_the_wrong_callers_fails() -> None:
    assert {"durations, among others", "sound, among others"} <= failed(Broken(frames=crossed))


def test_words_are_held_against_those_of_the_official_graph() -> None:
    said = 4 * SAID
    right = [sentence.text for sentence in said]
    wrong = [" ".join(text.split()[1:]) for text in right]

    def passed(mine: list[str], theirs: list[str]) -> bool:
        ears = Ears([heard for pair in zip(mine, theirs, strict=True) for heard in pair])
        silence = [np.zeros(1, np.float32)] * len(said)
        return wrong_words(ears, said, silence, silence, Gates(), lambda *_: None).passed

    assert passed(right, right)
    assert passed(wrong, wrong)
    assert passed(["", *right[1:]], right)  # a recogniser's whim
    assert not passed(wrong, right)


@given(st.integers(1, 40))
def test_every_row_meets_others_in_several_places(n_rows: int) -> None:
    orders = batches(n_rows)
    for row in range(n_rows):
        places = [batch.index(row) for batch in orders if row in batch]
        assert len(places) == 3
    assert all(batch for batch in orders)


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_wrong_words_are_the_fewest_edits(said: list[str], heard: list[str]) -> None:
    n = n_wrong(said, heard)
    assert abs(len(said) - len(heard)) <= n <= max(len(said), len(heard))
    assert n == n_wrong(heard, said)
    assert (n == 0) == (said == heard)
    assert n_wrong([*said, "e"], heard) <= n + 1


def test_case_and_punctuation_are_not_words() -> None:
    assert words("Don't — STOP; now!") == ["don't", "stop", "now"]


def test_not_a_number_passes_no_gate_and_other_lengths_are_infinitely_far() -> None:
    assert not Check("x", float("nan"), 1.0).passed
    assert distance_db(np.zeros(2400, np.float32), np.zeros(2401, np.float32)) == float("inf")


def test_every_precision_has_gates_and_every_gate_can_close() -> None:
    assert set(GATES) == set(get_args(Precision))
    assert all(0 < getattr(gates, name) < 10 for gates in GATES.values() for name in Gates.__slots__)


def test_a_report_says_the_same_to_people_and_to_programs(tmp_path: Path) -> None:
    report = Report("a model", 5, [Check("one", 0.5, 0.7, "dB"), Check("two", 3, 0, "differ", "why")], ["A note."])
    report.save(tmp_path / "out.md")
    written = json.loads((tmp_path / "out.json").read_text())
    read = (tmp_path / "out.md").read_text()
    assert written["passed"] is report.passed is False
    assert "FAIL" in read.splitlines()[0]
    assert "A note." in read
    for check in written["checks"]:
        (line,) = (line for line in read.splitlines() if line.startswith(f"| {check['name']} |"))
        assert ("PASS" in line) is check["passed"]


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with voices only, and a whole official graph that hums."""
    (tmp_path / "voices").mkdir()
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(tmp_path / "voices" / f"{name}.bin")
    monkeypatch.setattr("tutti.weights.Store.ensure", lambda *_, **__: None)
    monkeypatch.setattr("tutti.verify.reference.Official", lambda *_: official)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("model", "code"), [(ToneModel(), 0), (Broken(samples=leaking), 1)])
def test_the_command_says_pass_or_fail_and_exits_so(
    no_weights: Path, monkeypatch: pytest.MonkeyPatch, model: ToneModel, code: int
) -> None:
    monkeypatch.setattr("tutti.model.choice.load", lambda *_: model)
    done = CliRunner().invoke(cli.app, ["verify", "--backend", "onnx", "--home", str(no_weights), "--sentences", "3"])
    assert done.exit_code == code, done.output
    assert ("FAIL" in done.output) is bool(code)
    assert "--listen" in done.output
    assert json.loads(Path("verify.json").read_text())["passed"] is not bool(code)
    assert "--listen" in Path("verify.md").read_text()


@pytest.mark.weights
@pytest.mark.parametrize("flags", [["--backend", "onnx", "--precision", "int8"], ["--backend", "torch"]], ids=str)
def test_our_backends_pass(home: Path, tmp_path: Path, flags: list[str]) -> None:
    if "torch" in flags:
        pytest.importorskip("torch")
    out = tmp_path / "verify.md"
    fixed = [
        "--home",
        str(home),
        "--device",
        "cpu",
        "--threads",
        "1",
        "--sentences",
        "2",
        "--out",
        str(out),
        "--listen",
    ]
    done = CliRunner().invoke(cli.app, ["verify", *flags, *fixed])
    assert done.exit_code == 0, done.output
    assert "| words, among others |" in out.read_text()
