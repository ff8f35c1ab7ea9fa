"""The warm-up measures costs before the first request, once, and stores them as measured."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tutti.batching.cost import CostModel
from tutti.batching.job import Key, StageName
from tutti.batching.layout import SideBySide
from tutti.engine import device as device_module
from tutti.engine.device import WarmUp
from tutti.model.protocol import Ran
from tutti.speech import Utterance
from tutti.worker.base import Worker
from tutti.worker.messages import Run

TRUTH: dict[StageName, CostModel] = {
    "acoustic": CostModel(SideBySide(2), (0.01, 0.001, 0.0001, 0.001)),
    "vocoder": CostModel(SideBySide(2), (0.05, 0.002, 0.001, 0.015)),
}
FRAMES = 3  # per token
COLD_S = 2.0  # extra seconds of the first pass of each number of rows, which creates its session
ROWS = tuple(Utterance(np.zeros(n, np.int64), np.zeros(256, np.float32)) for n in (20, 60))


class Device:
    """A worker with its own clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.passes: list[tuple[StageName, int]] = []
        self.ids: list[int] = []
        self._tokens: list[int] = []

    async def run(self, run: Run, limit_s: float) -> Ran:
        if run.stages == "vocoder":
            assert len(run.ids) == len(self._tokens)
            self._pass("vocoder", [FRAMES * n for n in self._tokens])
            return Ran()
        self.ids += run.ids
        self._tokens = [len(row.tokens) for row in run.utterances]
        self._pass("acoustic", self._tokens)
        return Ran([np.full(n, FRAMES) for n in self._tokens])

    def _pass(self, stage: StageName, sizes: list[int]) -> None:
        cold = (stage, len(sizes)) not in self.passes
        self.passes.append((stage, len(sizes)))
        self.now_s += TRUTH[stage].predict(sizes) + COLD_S * cold


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    device = Device()
    monkeypatch.setattr(device_module, "time", SimpleNamespace(monotonic=lambda: device.now_s))
    return device


def costs() -> dict[Key, CostModel]:
    return {Key("kokoro", stage): CostModel(SideBySide(2), (0.01, 0.0, 1e-5, 1e-5)) for stage in TRUTH}


def warm_up(device: Device, path: Path) -> dict[Key, CostModel]:
    measured = costs()
    asyncio.run(WarmUp(path, measured, ROWS, (1, 2))(cast(Worker, device)))
    return measured


def test_a_cold_first_pass_does_not_count_as_a_cost_of_batching(device: Device, tmp_path: Path) -> None:
    for key, cost in warm_up(device, tmp_path / "costs.json").items():
        for sizes in ([20], [100], [100, 100], [30, 150, 80, 90]):
            assert cost.predict(sizes) == pytest.approx(TRUTH[key.stage].predict(sizes), rel=0.05)


def test_no_two_rows_of_a_sweep_have_the_same_id(device: Device, tmp_path: Path) -> None:
    """A worker whose stages overlap may forget a row after the next one has begun."""
    measured = costs() | {Key("other", stage): cost for (_, stage), cost in costs().items()}
    asyncio.run(WarmUp(tmp_path / "costs.json", measured, ROWS, (1, 2))(cast(Worker, device)))
    assert len(device.ids) == len(set(device.ids)) == 2 * 2 * len(ROWS) * (1 + 2)
    assert max(device.ids) < 0


def test_the_next_start_loads_the_costs_of_the_first_sweep(device: Device, tmp_path: Path) -> None:
    first = warm_up(device, tmp_path / "costs.json")
    swept, n_passes = {key: cost.coefficients for key, cost in first.items()}, len(device.passes)
    for cost in first.values():
        cost.learn([100] * 4, 30.0)
    again = warm_up(device, tmp_path / "costs.json")
    assert {key: cost.coefficients for key, cost in again.items()} == swept
    assert len(device.passes) == n_passes, "it measured again"


def test_a_file_of_another_version_is_measured_again(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    warm_up(device, path)
    n_passes = len(device.passes)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 1}))
    warm_up(device, path)
    assert len(device.passes) == 2 * n_passes


def test_a_file_that_cannot_be_written_is_only_logged(
    device: Device, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    measured = warm_up(device, tmp_path / "file" / "costs.json")
    assert measured[Key("kokoro", "vocoder")].predict([60]) == pytest.approx(TRUTH["vocoder"].predict([60]), rel=0.05)
    assert str(tmp_path / "file") in caplog.text


def test_only_the_named_checkpoint_is_measured_and_stored(device: Device, tmp_path: Path) -> None:
    path, light = tmp_path / "costs.json", {Key("light", key.stage): model for key, model in costs().items()}
    assumed = {key: model.coefficients for key, model in light.items()}
    first = WarmUp(path, costs() | light, ROWS, (1, 2), only="kokoro")
    asyncio.run(first(cast(Worker, device)))
    assert {key: model.coefficients for key, model in light.items()} == assumed
    n_passes = len(device.passes)
    asyncio.run(first(cast(Worker, device)))
    assert len(device.passes) == n_passes, "the costs of the named one are stored"
    asyncio.run(replace(first, only=None)(cast(Worker, device)))
    assert len(device.passes) == 2 * n_passes, "those of the other one are not"
