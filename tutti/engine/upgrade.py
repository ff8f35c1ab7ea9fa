"""`compile=auto`: which model a server on CUDA starts with, which one it changes to, and their costs."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tutti import __version__
from tutti.batching.cost import CostModel
from tutti.batching.job import Key
from tutti.engine.warmup import WarmUp
from tutti.model.choice import Choice
from tutti.worker.base import Worker

log = logging.getLogger(__name__)


def upgrade_choices(
    choices: Mapping[str, Choice], compile: str, *, kernels_ready: bool
) -> tuple[Mapping[str, Choice], Mapping[str, Choice] | None]:
    """The checkpoints to start with, and those to change to when they are ready; none if there is nothing to gain.

    Without compiled kernels (at the very first start) the first ones run without: compiling takes a minute.
    """
    if compile != "auto" or all(choice.device != "cuda" for choice in choices.values()):
        return choices, None
    first = {
        name: replace(choice, compile="off" if kernels_ready else "plain") if choice.device == "cuda" else choice
        for name, choice in choices.items()
    }
    second = {
        name: replace(choice, compile="full") if choice.device == "cuda" else choice for name, choice in choices.items()
    }
    return first, second


def kernel_marker(home: Path) -> Path:
    """The file that says that all kernels of these versions are compiled."""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    return home / "compiled" / f"complete-{__version__}-torch-{torch}"


@dataclass(frozen=True, slots=True)
class MeasureSecond:
    """Measures the costs of the second worker before it serves, and puts them in force."""

    first: WarmUp
    costs: Mapping[Key, CostModel]  # of the second worker
    path: Path
    marker: Path

    async def __call__(self, worker: Worker) -> None:
        await replace(self.first, path=self.path, costs=self.costs)(worker)
        for key, model in self.first.costs.items():
            model.start_from(self.costs[key].coefficients)
        try:
            self.marker.parent.mkdir(parents=True, exist_ok=True)
            self.marker.touch()
        except OSError as exc:
            log.warning("the next start will compile again, %s cannot be written: %s", self.marker, exc)
