"""What batches cost on a device: known devices, the costs that a server stored or reports, and what they leave out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.batching.cost import Coefficients, CostModel
from tutti.batching.cost import load as load_costs
from tutti.batching.job import STAGES, Key, StageName
from tutti.batching.layout import Layout, Regrouped, SideBySide
from tutti.engine.build import CUDA_ROWS, PRIORS, ROWS_PER_CORE, TARGET_S, cost_file, prior_costs
from tutti.engine.checkpoints import choose_checkpoints, upgrade_choices
from tutti.errors import InvalidInput, did_you_mean

if TYPE_CHECKING:
    from tutti.settings import Settings

GPU_OVERHEAD_S = 0.008  # of a request beside its batches: HTTP, text, encoding; measured per server by --measure
CPU_OVERHEAD_S = 0.030


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """One device: the coefficients of each stage (see batching.cost), and how its rows lie in a pass."""

    name: str
    coefficients: Mapping[StageName, Coefficients]
    cores: int | None = None  # rows side by side on so many cores; none: padded passes, as on a GPU
    max_rows: int = CUDA_ROWS
    overhead_s: float = GPU_OVERHEAD_S
    target_s: float = 0.2  # to the first audio
    _models: dict[StageName, CostModel] = field(default_factory=dict, compare=False, repr=False)

    def seconds(self, stage: StageName, sizes: Sequence[int]) -> float:
        """What these rows take in one pass."""
        if stage not in self._models:
            self._models[stage] = self.cost(Key("", stage))
        return self._models[stage].predict(sizes)

    def cost(self, key: Key) -> CostModel:
        """A cost model that knows this device, for a scheduler of its own."""
        return CostModel(self._layout(key.stage), self.coefficients[key.stage])

    def _layout(self, stage: StageName) -> Layout:
        if self.cores is None:
            return Regrouped(lambda sizes: ())
        return SideBySide(self.cores if stage == "vocoder" else 1)


# h200: the server's prior, measured on one. n1x2: two Neoverse N1 cores, int8, from the CPU seconds of one thread.
DEVICES = {
    device.name: device
    for device in (
        DeviceCosts("h200", {stage: PRIORS["torch", "cuda", stage] for stage in STAGES}),
        DeviceCosts(
            "n1x2",
            {"acoustic": (0.005, 0.011, 0.0, 0.0023), "vocoder": (0.01, 0.002, 0.001, 0.0198)},
            cores=2,
            max_rows=2 * ROWS_PER_CORE,
            overhead_s=CPU_OVERHEAD_S,
        ),
    )
}


def this_machine(settings: "Settings") -> DeviceCosts:
    """This machine, with what its server has stored, or with what such a machine takes until one has run."""
    choices, compiled = upgrade_choices(choose_checkpoints(settings), settings.compile, kernels_ready=True)
    choices = compiled or choices
    name, choice = next(iter(choices.items()))
    stored = load_costs(cost_file(settings, choices))
    prior = {key: model.coefficients for key, model in prior_costs(choices, settings.threads).items()}
    coefficients = {stage: (stored or prior)[Key(name, stage)] for stage in STAGES}
    label = "this machine" if stored else "this machine, as not yet measured: run tutti serve once"
    device = _device(label, coefficients, settings.threads if choice.device == "cpu" else None, None, None)
    return replace(device, target_s=TARGET_S[choice.device])


def find_device(name: str, cores: int | None = None) -> DeviceCosts:
    """A known device, or the costs in a file: those that a server stored at its first start, or JSON of --measure."""
    if name in DEVICES:
        return DEVICES[name]
    path = Path(name)
    if path.suffix != ".json":
        known = ", ".join(DEVICES)
        hint = did_you_mean(name, DEVICES) or ";"
        raise InvalidInput(f"unknown device {name!r}{hint} choose {known}, or a file costs.json", param="device")
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"cannot read {path}: {exc}", param="device") from exc
    if isinstance(stored, dict) and "models" in stored:
        return from_report(stored, path.name)
    costs = load_costs(path)
    if not costs:
        raise InvalidInput(f"{path} has no costs of this version of tutti", param="device")
    checkpoint = next(iter(costs)).checkpoint
    return _device(path.name, {stage: costs[Key(checkpoint, stage)] for stage in STAGES}, cores, None, None)


def from_report(report: Mapping[str, Any], name: str, overhead_s: float | None = None) -> DeviceCosts:
    """The device of a server, from its GET /v1/stats/costs; the first model counts."""
    try:
        stages = next(iter(report["models"].values()))
        coefficients = {stage: tuple(map(float, stages[stage]["coefficients"])) for stage in STAGES}
        if any(len(each) != 4 for each in coefficients.values()):
            raise ValueError("each stage needs four coefficients")
        cores, max_rows = stages["vocoder"]["cores"], int(report["max_batch_size"])
    except (KeyError, TypeError, ValueError, StopIteration, AttributeError) as exc:
        raise InvalidInput(f"{name} reports no costs that can be read: {exc!r}", param="measure") from exc
    if overhead_s is None:
        overhead_s = report.get("overhead_s")
    return _device(name, coefficients, cores, max_rows, overhead_s)  # type: ignore[arg-type]


def _device(
    name: str,
    coefficients: Mapping[StageName, Coefficients],
    cores: int | None,
    max_rows: int | None,
    overhead_s: float | None,
) -> DeviceCosts:
    if max_rows is None:
        max_rows = CUDA_ROWS if cores is None else ROWS_PER_CORE * cores
    if overhead_s is None:
        overhead_s = GPU_OVERHEAD_S if cores is None else CPU_OVERHEAD_S
    return DeviceCosts(name, coefficients, cores, max_rows, overhead_s)
