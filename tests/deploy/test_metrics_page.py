"""docs/metrics.md and the registry agree on every metric, its type and its labels."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from tutti.metrics import Metrics
from tutti.server.audio_memory import AudioMemory
from tutti.server.lifecycle import Lifecycle
from tutti.server.middleware.access_log import AccessLog
from tutti.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `tutti_")
]


@pytest.fixture(scope="module")
def registry() -> CollectorRegistry:
    """The registry of `tutti serve`."""
    registry = Metrics().registry
    AccessLog(None, registry, Lifecycle(None), None)  # type: ignore[arg-type]
    AudioMemory(1e9).register(registry)
    return registry


def metrics_of(registry: CollectorRegistry) -> dict[str, tuple[str, list[str]]]:
    metrics = {}
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        collector = registry._names_to_collectors[name]
        assert isinstance(collector, MetricWrapperBase)
        metrics[name] = (family.type, sorted(collector._labelnames))
    return metrics


def test_every_metric_is_documented_once_with_its_type_and_labels(registry: CollectorRegistry) -> None:
    documented = {row[0].strip("`"): (row[1], sorted(filter(None, row[2].split(", ")))) for row in ROWS}
    assert len(documented) == len(ROWS)
    assert documented == metrics_of(registry)


def test_every_metric_has_its_unit_and_advice(registry: CollectorRegistry) -> None:
    units = {"seconds": "seconds", "bytes": "bytes", "ratio": "ratio", "frames": "frames"}
    for name, _, _, unit, meaning, advice in ROWS:
        assert meaning
        assert advice, name
        base = name.strip("`").removesuffix("_total")
        expected = next((unit for end, unit in units.items() if base.endswith(f"_{end}")), "")
        assert unit.startswith(expected), name


def test_every_documented_metric_and_setting_exists(registry: CollectorRegistry) -> None:
    assert set(re.findall(r"\btutti_[a-z_]+", PAGE)) <= metrics_of(registry).keys()
    assert {name.lower() for name in re.findall(r"\bTUTTI_([A-Z_]+)", PAGE)} <= set(Settings.model_fields)
