"""Metrics of several processes, added up: for the reader they are one server."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.samples import Sample


def summed(reports: Iterable[Iterable[Metric]]) -> list[Metric]:
    """All metrics; samples with the same name and labels are added, but of their times of creation the first counts."""
    metrics: dict[str, Metric] = {}
    values: dict[tuple[str, str, frozenset[tuple[str, str]]], Sample] = {}
    for report in reports:
        for metric in report:
            if metric.name not in metrics:
                metrics[metric.name] = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            for sample in metric.samples:
                key = metric.name, sample.name, frozenset(sample.labels.items())
                before = values.get(key)
                if before is None:
                    values[key] = sample
                elif sample.name.endswith("_created"):
                    values[key] = before._replace(value=min(before.value, sample.value))
                else:
                    values[key] = before._replace(value=before.value + sample.value)
    for (name, _, _), sample in values.items():
        metrics[name].samples.append(sample)
    return list(metrics.values())


def counters(metrics: Iterable[Metric]) -> list[Metric]:
    """Those that only grow: what a process has counted still holds after its end."""
    return [metric for metric in metrics if metric.type in ("counter", "histogram", "summary")]
