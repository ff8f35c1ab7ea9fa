"""The warm-up: costs are right before the first request, found once, and kept as they were found."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tutti.batching.cost import CostModel
from tutti.batching.job import Key, StageName
from tutti.batching.layout import SideBySide
from tutti.engine import warmup
from tutti.engine.warmup import WarmUp
from tutti.speech import Utterance
from tutti.worker.base import Worker

TRUTH: dict[StageName, CostModel] = {
    "acoustic": CostModel(SideBySide(2), (0.01, 0.001, 0.0001, 0.001)),
    "vocoder": CostModel(SideBySide(2), (0.05, 0.002, 0.001, 0.015)),
}
FRAMES = 3  # a token
COLD_S = 2.0  # what the first pass of a number of rows takes on top: its session is made
ROWS = tuple(Utterance(np.zeros(n, np.int64), np.zeros(256, np.float32)) for n in (20, 60))


class Device:
    """A worker whose seconds pass on a clock of its own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.passes: list[tuple[StageName, int]] = []
        self._tokens: list[int] = []

    async def acoustic(
        self, checkpoint: str, rows: Sequence[tuple[int, Utterance]], limit_s: float
    ) -> list[np.ndarray]:
        self._tokens = [len(row.tokens) for _, row in rows]
        self._passed("acoustic", self._tokens)
        return [np.full(n, FRAMES) for n in self._tokens]

    async def vocoder(self, checkpoint: str, ids: Sequence[int], limit_s: float) -> None:
        assert len(ids) == len(self._tokens)
        self._passed("vocoder", [FRAMES * n for n in self._tokens])

    def _passed(self, stage: StageName, sizes: list[int]) -> None:
        cold = (stage, len(sizes)) not in self.passes
        self.passes.append((stage, len(sizes)))
        self.now_s += TRUTH[stage].predict(sizes) + COLD_S * cold


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    device = Device()
    monkeypatch.setattr(warmup, "time", SimpleNamespace(monotonic=lambda: device.now_s))
    return device


def costs() -> dict[Key, CostModel]:
    return {Key("kokoro", stage): CostModel(SideBySide(2), (0.01, 0.0, 1e-5, 1e-5)) for stage in TRUTH}


def started(device: Device, path: Path) -> dict[Key, CostModel]:
    found = costs()
    asyncio.run(WarmUp(path, found, ROWS, (1, 2))(cast(Worker, device)))
    return found


def test_a_cold_device_does_not_make_company_look_dear(device: Device, tmp_path: Path) -> None:
    for key, found in started(device, tmp_path / "costs.json").items():
        for sizes in ([20], [100], [100, 100], [30, 150, 80, 90]):
            assert found.predict(sizes) == pytest.approx(TRUTH[key.stage].predict(sizes), rel=0.05)


def test_the_next_start_begins_where_the_first_sweep_ended_whatever_was_learned_since(
    device: Device, tmp_path: Path
) -> None:
    first = started(device, tmp_path / "costs.json")
    swept, n_passes = {key: cost.coefficients for key, cost in first.items()}, len(device.passes)
    for cost in first.values():
        cost.learn([100] * 4, 30.0)
    again = started(device, tmp_path / "costs.json")
    assert {key: cost.coefficients for key, cost in again.items()} == swept
    assert len(device.passes) == n_passes, "it swept again"


def test_a_file_of_another_version_is_swept_over(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    started(device, path)
    n_passes = len(device.passes)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 1}))
    started(device, path)
    assert len(device.passes) == 2 * n_passes


def test_a_disk_that_cannot_be_written_to_is_named_and_nothing_more(
    device: Device, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    found = started(device, tmp_path / "file" / "costs.json")
    assert found[Key("kokoro", "vocoder")].predict([60]) == pytest.approx(TRUTH["vocoder"].predict([60]), rel=0.05)
    assert str(tmp_path / "file") in caplog.text
