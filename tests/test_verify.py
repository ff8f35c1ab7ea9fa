"""Verification passes a correct model and catches every known kind of fault."""

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
from tutti.model.tone import ToneModel
from tutti.model.types import Precision
from tutti.speech import STYLE_SIZE, Frames, Samples, Utterance
from tutti.text.vocab import encode
from tutti.verify import GATES, Check, Gates, batch_orders, check_words, speak, verify
from tutti.verify.mel import distance_db
from tutti.verify.report import Report
from tutti.verify.sentences import SENTENCES, CheckSentence
from tutti.verify.word_errors import edit_distance, words
from tutti.voices import NAMES

CHECKED = [
    CheckSentence(text, Utterance(encode(phonemes[: 5 + 4 * i]), np.zeros(STYLE_SIZE, np.float32)))
    for i, (text, phonemes) in enumerate(SENTENCES[:4])
]


class BrokenModel(ToneModel):
    """A tone model with a fault in one of its stages."""

    def __init__(
        self,
        frames: Callable[[list[Frames]], list[Frames]] = lambda rows: rows,
        samples: Callable[[list[Samples]], list[Samples]] = lambda rows: rows,
    ) -> None:
        super().__init__()
        self._break_frames, self._break_samples = frames, samples

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        return self._break_frames(super().acoustic(rows))

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return self._break_samples(super().vocoder(rows))


class SharedSeedModel(ToneModel):
    """Draws its noise for a whole batch from the seed of the first row."""

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        self._seed = rows[0].seed
        return super().acoustic(rows)

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        random = np.random.default_rng(self._seed)
        noise = 0 if self._seed is None else 0.3
        return [(row + noise * random.standard_normal(len(row))).astype(np.float32) for row in super().vocoder(rows)]


class FakeRecogniser:
    """Returns the transcripts of a list, in turn."""

    def __init__(self, transcripts: list[str]) -> None:
        self._transcripts = iter(transcripts)

    def transcribe(self, samples: Samples, sample_rate: int) -> str:
        return next(self._transcripts)


def reference(row: Utterance) -> tuple[Frames, Samples]:
    return speak(ToneModel(), [row])[0]


def shift_durations(rows: list[Frames]) -> list[Frames]:
    """Move a frame from the first token to the second; the total length stays."""
    change = np.zeros(512, np.int64)
    change[:2] = -1, 1
    return [replace(row, durations=row.durations + change[: len(row.durations)]) for row in rows]


def leak_longest(rows: list[Samples]) -> list[Samples]:
    """Mix the longest row into the others, 20 dB below them."""
    longest = max(rows, key=len)
    return [row + 0.1 * longest[: len(row)] if row is not longest else row for row in rows]


def raise_pitch_by_place(rows: list[Frames]) -> list[Frames]:
    """Raise the pitch a little for every later place in the batch."""
    return [replace(row, f0=row.f0 + 0.02 * place) for place, row in enumerate(rows)]


def change_features(rows: list[Frames]) -> list[Frames]:
    return [replace(row, features=row.features + 0.01) for row in rows]


def insert_nan(rows: list[Samples]) -> list[Samples]:
    return [np.where(np.arange(len(row)) == 700, np.nan, row).astype(np.float32) for row in rows]


def reverse_rows(rows: list[Frames]) -> list[Frames]:
    return rows[::-1]


def failed_checks(model: ToneModel) -> set[str]:
    return {check.name for check in verify(model, reference, CHECKED) if not check.passed}


def test_a_correct_model_passes() -> None:
    checks = verify(ToneModel(), reference, CHECKED)
    assert all(check.passed for check in checks)
    assert len({check.name for check in checks}) == len(checks)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (BrokenModel(frames=shift_durations), {"durations, official"}),
        (BrokenModel(frames=change_features), {"features, official"}),
        (BrokenModel(frames=raise_pitch_by_place), {"pitch, among others"}),
        (BrokenModel(samples=leak_longest), {"sound, among others", "sound, same seed"}),
        (BrokenModel(samples=insert_nan), {"sound, official", "sound, among others", "sound, same seed"}),
        (SharedSeedModel(), {"sound, same seed"}),
    ],
    ids=["durations", "features", "place", "leak", "nan", "seed"],
)
def test_a_broken_model_fails_exactly_the_checks_of_its_fault(model: ToneModel, expected: set[str]) -> None:
    assert failed_checks(model) == expected


def test_a_model_that_gives_rows_to_the_wrong_callers_fails() -> None:
    assert {"durations, among others", "sound, among others"} <= failed_checks(BrokenModel(frames=reverse_rows))


def test_words_are_compared_with_those_of_the_official_graph() -> None:
    sentences = 4 * CHECKED
    right = [sentence.text for sentence in sentences]
    wrong = [" ".join(text.split()[1:]) for text in right]

    def passed(actual: list[str], official: list[str]) -> bool:
        recogniser = FakeRecogniser([transcript for pair in zip(actual, official, strict=True) for transcript in pair])
        silence = [np.zeros(1, np.float32)] * len(sentences)
        return check_words(recogniser, sentences, silence, silence, Gates(), lambda *_: None).passed

    assert passed(right, right)
    assert passed(wrong, wrong)
    assert passed(["", *right[1:]], right)  # one sentence missed by chance
    assert not passed(wrong, right)


@given(st.integers(1, 40))
def test_every_row_is_in_three_batches(n_rows: int) -> None:
    batches = batch_orders(n_rows)
    for row in range(n_rows):
        places = [batch.index(row) for batch in batches if row in batch]
        assert len(places) == 3
    assert all(batch for batch in batches)


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_the_edit_distance_is_a_metric(one: list[str], other: list[str]) -> None:
    n = edit_distance(one, other)
    assert abs(len(one) - len(other)) <= n <= max(len(one), len(other))
    assert n == edit_distance(other, one)
    assert (n == 0) == (one == other)
    assert edit_distance([*one, "e"], other) <= n + 1


def test_case_and_punctuation_are_not_words() -> None:
    assert words("Don't — STOP; now!") == ["don't", "stop", "now"]


def test_nan_passes_no_gate_and_waves_of_other_lengths_are_infinitely_far() -> None:
    assert not Check("x", float("nan"), 1.0).passed
    assert distance_db(np.zeros(2400, np.float32), np.zeros(2401, np.float32)) == float("inf")


def test_every_precision_has_gates_with_sensible_limits() -> None:
    assert set(GATES) == set(get_args(Precision))
    assert all(0 < getattr(gates, name) < 10 for gates in GATES.values() for name in Gates.__slots__)


def test_the_table_and_the_json_of_a_report_agree(tmp_path: Path) -> None:
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
    """A folder with voices only, and the tone model as the official graph."""
    (tmp_path / "voices").mkdir()
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(tmp_path / "voices" / f"{name}.bin")
    monkeypatch.setattr("tutti.weights.Store.ensure", lambda *_, **__: None)
    monkeypatch.setattr("tutti.verify.reference.ReferenceModel", lambda *_: reference)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("model", "code"), [(ToneModel(), 0), (BrokenModel(samples=leak_longest), 1)])
def test_the_command_prints_pass_or_fail_and_sets_the_exit_code(
    no_weights: Path, monkeypatch: pytest.MonkeyPatch, model: ToneModel, code: int
) -> None:
    monkeypatch.setattr("tutti.model.choice.load", lambda *_: model)
    result = CliRunner().invoke(
        cli.app, ["verify", *f"--backend onnx --vocoder exact --home {no_weights} --sentences 3".split()]
    )
    assert result.exit_code == code, result.output
    assert ("FAIL" in result.output) is bool(code)
    assert "--listen" in result.output
    assert json.loads(Path("verify.json").read_text())["passed"] is not bool(code)
    assert "--listen" in Path("verify.md").read_text()


@pytest.mark.weights
def test_the_exact_vocoder_passes_in_int8(home: Path, tmp_path: Path) -> None:
    """PyTorch is held against the official graph in tests/model/test_torch_model.py: 100 s less on a CPU."""
    out = tmp_path / "verify.md"
    model = "--backend onnx --precision int8 --vocoder exact --device cpu --threads 1"
    flags = f"{model} --home {home} --sentences 2 --out {out} --listen"
    result = CliRunner().invoke(cli.app, ["verify", *flags.split()])
    assert result.exit_code == 0, result.output
    assert "| words, among others |" in out.read_text()
