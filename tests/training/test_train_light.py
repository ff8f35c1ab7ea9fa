"""`make light` for a checkpoint of others: what it prepares, and its steps on a tiny one."""

import json
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from scripts import train_light
from tests.training.fakes import HummingTeacher
from training import distil
from training.export import export
from training.rows import VoiceTables
from tutti.engine.checkpoint_folder import N_TOKENS, CheckpointFolder, read_folder
from tutti.model.light import weights
from tutti.model.torch.light import LightNetwork
from tutti.text import vocab

pytestmark = pytest.mark.slow
MOVED = {symbol: N_TOKENS - id for symbol, id in vocab.SYMBOLS.items()}  # another order of the symbols
WORDS = ["wˈʌn", "tˈu", "θɹˈi"] * 10


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    path = tmp_path / "mine"
    (path / "voices").mkdir(parents=True)
    rows = np.arange(N_TOKENS, dtype=np.float32)[:, None]
    np.savez(path / "model.npz", **dict.fromkeys(train_light.EMBEDDINGS, rows), other=rows)
    (path / "config.json").write_text(json.dumps({"vocab": MOVED}))
    for name, value in {"martin": 2.0, "df_eva": 3.0}.items():
        np.save(path / "voices" / f"{name}.npy", np.full((510, 256), value, np.float32))
    return read_folder(path, "mine")


def test_weights_are_in_the_order_of_kokoros_symbols(folder: CheckpointFolder, tmp_path: Path) -> None:
    train_light.prepare(folder, WORDS, tmp_path / "data")
    with np.load(tmp_path / "data" / distil.KOKORO) as state:
        for name in train_light.EMBEDDINGS:
            assert all(state[name][id, 0] == MOVED[symbol] for symbol, id in vocab.SYMBOLS.items())
        assert np.array_equal(state["other"][:, 0], np.arange(N_TOKENS))
    voices = VoiceTables.read(tmp_path / "data" / distil.VOICES)
    assert {name: float(table[0, 0]) for name, table in zip(voices.names, voices.tables, strict=True)} == {
        "x_df_eva": 3.0,
        "x_martin": 2.0,
    }


def test_its_steps_end_in_a_file_of_weights_beside_the_checkpoint(
    folder: CheckpointFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, run = tmp_path / "data", tmp_path / "run"
    train_light.prepare(folder, WORDS, data)
    monkeypatch.setattr(distil, "open_teacher", lambda *_: HummingTeacher())
    monkeypatch.setattr(distil, "BLOCK", 1)
    sizes = {"--first-seconds": "5", "--pool-seconds": "120", "--batch": "4", "--pace": "0", "--critic-part": "0"}
    arguments = train_light.training_arguments(data, run, 0.1, weights.PATH)
    monkeypatch.setattr(sys, "argv", ["distil", *arguments, "--tiny", *chain(*sizes.items())])
    args = distil.parse_arguments(None, distil.COMMANDS)
    args.command(args)
    train_light.check_gate(run)
    assert "limit 1.3 dB" in capsys.readouterr().out
    out = folder.weights.with_name(train_light.FILE)
    export(run / "light.npz", out)
    assert weights.read(out).keys() == weights.read(weights.PATH).keys()
    LightNetwork.of(distil.checkpoint.read(out))
    assert read_folder(out.parent, "mine").weights == folder.weights  # it is no weights of Kokoro
