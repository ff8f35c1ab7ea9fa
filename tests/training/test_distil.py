"""A whole run, small: the student learns, its files come back, and a second run goes on from them."""

import json
import sys
from pathlib import Path

import pytest

from tests.training.fakes import WORDS, HummingTeacher, silent_voices
from training import distil
from training.students import LIGHT
from tutti.model.torch.nano import READ

pytestmark = pytest.mark.slow


def run(monkeypatch: pytest.MonkeyPatch, data: Path, *arguments: str, teacher: HummingTeacher | None = None) -> None:
    monkeypatch.setattr(distil, "open_teacher", lambda *_: teacher or HummingTeacher())
    monkeypatch.setattr(sys, "argv", ["distil", "train", "--tiny", "--data", str(data), *arguments])
    monkeypatch.setattr(distil, "BLOCK", 2)
    args = distil.parse_arguments(None, distil.COMMANDS)
    args.command(args)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / distil.WORDS).write_text(json.dumps(WORDS), encoding="utf-8")
    silent_voices().write(tmp_path / distil.VOICES)
    return tmp_path


COMMON = ("--first-seconds", "10", "--pool-seconds", "40", "--batch", "4", "--warm-up", "0.2", "--held-out", "30",
          "--critic-alone", "0.5", "--average", "0.9", "--rate", "3e-3", "--pace", "0")  # fmt: skip


def test_a_run_learns_and_another_goes_on_from_its_files(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = data / "first", data / "second"
    run(monkeypatch, data, *COMMON, "--out", str(first), "--seconds", "8", "--critic-part", "0.4")
    curve = json.loads((first / "curve.json").read_text())
    assert curve[-1]["mel_db"] < 0.8 * curve[0]["mel_db"]
    assert {"light.npz.0", "regression.npz.0", "critic.npz.0", "curve.json", "log.txt"} <= {
        file.name for file in first.iterdir()
    }
    run(monkeypatch, data, *COMMON, "--out", str(second), "--seconds", "0.1", "--critic-part", "0",
        "--start", str(first / "light.npz"))  # fmt: skip
    resumed = json.loads((second / "curve.json").read_text())
    assert resumed[0]["mel_db"] == pytest.approx(curve[-1]["mel_db"], rel=0.02)


def test_nano_imitates_then_learns_and_goes_on_from_its_files(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, nano = data / "first", data / "second", ("--student", "nano")
    run(monkeypatch, data, *COMMON, *nano, "--out", str(first), "--seconds", "8", "--imitation-part", "0.2",
        "--critic-part", "0.3", teacher=HummingTeacher(READ, LIGHT.tiny["width"]))  # fmt: skip
    curve = json.loads((first / "curve.json").read_text())
    assert curve[-1]["mel_db"] < 0.9 * curve[0]["mel_db"]
    assert {"imitation.npz.0", "regression.npz.0", "nano.npz.0", "critic.npz.0"} <= {
        file.name for file in first.iterdir()
    }
    run(monkeypatch, data, *COMMON, *nano, "--out", str(second), "--seconds", "0.1", "--critic-part", "0",
        "--start", str(first / "nano.npz"), teacher=HummingTeacher(READ))  # fmt: skip
    resumed = json.loads((second / "curve.json").read_text())
    assert resumed[0]["mel_db"] == pytest.approx(curve[-1]["mel_db"], rel=0.02)
