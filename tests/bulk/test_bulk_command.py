"""`tutti bulk` as a process: killed twice and resumed it leaves the bytes of a run that nobody disturbed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tutti.additions import Addition, key_id
from tutti.own_voices import OwnVoices

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[2]
BAD = ["{bad", '{"id": "no-voice", "text": "hi", "voice": "nobody"}', '{"id": "empty", "text": ""}']
N_ROWS = 120


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": f"row {n}", "text": "word " * (1 + n * 7 % 31) + "end."}) for n in range(N_ROWS)]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join([*lines[:50], *BAD, *lines[50:]]) + "\n")
    return path


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def start(*flags: object, row_s: float = 0.0) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.bulk.bulk_with_tones", str(tmp_path), "bulk", *map(str, flags)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "BULK_TONES_ROW_S": str(row_s)},
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def kill_after(process: subprocess.Popen[str], out: Path, n_shards: int) -> None:
    """Kill -9 when so many shards are done."""
    deadline_s = time.monotonic() + 60
    while len(list(out.glob("index/*.parquet"))) < n_shards:
        assert process.poll() is None
        assert time.monotonic() < deadline_s, "no shard was done"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert finish(process)[0] == -signal.SIGKILL


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_killed_twice_it_leaves_the_same_bytes(tmp_path: Path, table: Path, start: Start) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    flags = ("--shard-rows", 10, "--batch-rows", 4)
    rc, errors = finish(start(table, whole, *flags))
    assert rc == 5, errors
    assert f"{len(BAD)} rows failed" in errors
    kill_after(start(table, killed, *flags, row_s=0.01), killed, 1)
    done = {
        path: path.stat().st_ino for path in killed.glob("*/*") if (killed / "index" / f"{path.stem}.parquet").exists()
    }
    kill_after(start(table, killed, *flags, row_s=0.01), killed, 6)
    rc, errors = finish(start(table, killed, *flags))
    assert rc == 5, errors
    assert "resuming" in errors
    assert files(killed) == files(whole)
    assert {path: path.stat().st_ino for path in done} == done  # no finished shard was made again
    index = pq.read_table(killed / "index.parquet").to_pylist()
    ids = [line["id"] for line in index]
    assert len(ids) == len(set(ids)) == N_ROWS + len(BAD)
    assert [line["row"] for line in index] == list(range(len(index)))
    assert sum(line["status"] == "failed" for line in index) == len(BAD)
    rc, errors = finish(start(table, killed, *flags, "--speed", 1.2))
    assert rc == 2
    assert "options.params.speed was 1.0 and is 1.2" in errors


def test_a_private_voice_speaks_for_its_key_alone(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUTTI_VOICES", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    style = np.ones((510, 256), np.float32)
    OwnVoices(tmp_path / "own").add("kira", "en-us", style, Addition(key_id("ours"), "private"))
    table = tmp_path / "texts.jsonl"
    table.write_text(json.dumps({"text": "hi", "voice": "kira"}) + "\n")
    assert finish(start(table, tmp_path / "out", "--api-key", "ours"))[0] == 0
    rc, errors = finish(start(table, tmp_path / "out", "--api-key", "theirs"))
    assert rc == 2
    assert "caller" in errors
    assert "own_voices" in errors
    assert finish(start(table, tmp_path / "without"))[0] == 5
    (row,) = pq.read_table(tmp_path / "without" / "index.parquet").to_pylist()
    assert row["error"].startswith("voice_not_found: unknown voice 'kira'")


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_with_ray_the_bytes_are_the_same(tmp_path: Path, table: Path, start: Start) -> None:
    flags = ("--shard-rows", 10, "--batch-rows", 4)
    assert finish(start(table, tmp_path / "here", *flags))[0] == 5
    rc, errors = finish(start(table, tmp_path / "ray", *flags, "--ray", "local", "--devices", 2))
    assert rc == 5, errors
    here, ray = files(tmp_path / "here"), files(tmp_path / "ray")
    assert ray == here
