"""compile=auto: what a server starts with, and what it changes to."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.worker.fakes import row
from tutti.engine.build import prior_costs
from tutti.engine.checkpoints import kernel_marker, upgrade_choices
from tutti.engine.device import MeasureSecond, WarmUp
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.worker.thread import ThreadWorker

CUDA, CPU = Choice("torch", "cuda", "fp16"), Choice("onnx", "cpu", "int8")


@pytest.mark.parametrize("compile", ["off", "reduced", "full"])
def test_a_chosen_amount_is_compiled_at_the_start(compile: str) -> None:
    assert upgrade_choices({"kokoro": CUDA}, compile, kernels_ready=False) == ({"kokoro": CUDA}, None)


@pytest.mark.parametrize("kernels_ready", [False, True])
def test_on_a_processor_there_is_nothing_to_compile(kernels_ready: bool) -> None:
    assert upgrade_choices({"kokoro": CPU}, "auto", kernels_ready=kernels_ready) == ({"kokoro": CPU}, None)


@pytest.mark.parametrize(("kernels_ready", "starts_with"), [(False, "plain"), (True, "off")])
def test_auto_starts_with_what_is_ready_soon_and_ends_with_everything(kernels_ready: bool, starts_with: str) -> None:
    first, second = upgrade_choices({"kokoro": CUDA, "other": CPU}, "auto", kernels_ready=kernels_ready)
    assert second is not None
    assert [choice.compile for choice in first.values()] == [starts_with, "off"]
    assert [choice.compile for choice in second.values()] == ["full", "off"]
    assert first["other"] == second["other"] == CPU


def test_the_costs_of_the_second_model_replace_what_was_learned_of_the_first(tmp_path: Path) -> None:
    choices = {"kokoro": Choice("onnx", "cpu", "fp32")}
    costs, marker = prior_costs(choices, 2), kernel_marker(tmp_path)
    for model in costs.values():
        for _ in range(100):
            model.learn((100,), 5.0)  # as slow as the first model was
    rows = (row(*range(1, 40)),)
    warm_up = WarmUp(tmp_path / "first.json", costs, rows, (1, 2))
    measure = MeasureSecond(warm_up, prior_costs(choices, 2), tmp_path / "second.json", marker)

    async def scenario() -> None:
        worker = ThreadWorker(lambda: {"kokoro": ToneModel()})
        await worker.start()
        await measure(worker)
        await worker.close()

    asyncio.run(scenario())
    assert marker.exists()
    assert (tmp_path / "second.json").exists()
    assert not (tmp_path / "first.json").exists()
    for key, model in costs.items():
        assert model.coefficients == measure.costs[key].coefficients
        before = model.predict((100,))
        assert before < 1.0
        model.learn((100,), before)
        np.testing.assert_allclose(model.predict((100,)), before, rtol=0.05)  # nothing remembers the first model
