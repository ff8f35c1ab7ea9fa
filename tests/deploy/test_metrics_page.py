"""docs/metrics.md and the registry agree: every metric with its type and labels, none missing, none invented."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from tutti.metrics import Metrics
from tutti.server.middleware.access_log import AccessLog
from tutti.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `tutti_")
]


@pytest.fixture(scope="module")
def registry() -> CollectorRegistry:
    """As `tutti serve` fills it."""
    found = Metrics().registry
    AccessLog(None, found)  # type: ignore[arg-type]
    return found


def known(registry: CollectorRegistry) -> dict[str, tuple[str, list[str]]]:
    found = {}
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        collector = registry._names_to_collectors[name]
        assert isinstance(collector, MetricWrapperBase)
        found[name] = (family.type, sorted(collector._labelnames))
    return found


def test_every_metric_is_told_once_with_its_type_and_labels(registry: CollectorRegistry) -> None:
    told = {row[0].strip("`"): (row[1], sorted(filter(None, row[2].split(", ")))) for row in ROWS}
    assert len(told) == len(ROWS)
    assert told == known(registry)


def test_each_says_its_unit_and_what_to_do(registry: CollectorRegistry) -> None:
    units = {"seconds": "seconds", "bytes": "bytes", "ratio": "ratio", "frames": "frames"}
    for name, _, _, unit, meaning, advice in ROWS:
        assert meaning
        assert advice, name
        base = name.strip("`").removesuffix("_total")
        expected = next((says for end, says in units.items() if base.endswith(f"_{end}")), "")
        assert unit.startswith(expected), name


def test_every_metric_and_setting_that_it_names_exists(registry: CollectorRegistry) -> None:
    assert set(re.findall(r"\btutti_[a-z_]+", PAGE)) <= known(registry).keys()
    assert {name.lower() for name in re.findall(r"\bTUTTI_([A-Z_]+)", PAGE)} <= set(Settings.model_fields)
