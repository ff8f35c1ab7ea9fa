"""/metrics of a cluster: every replica answers with the metrics of all, each with the label `replica`."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import ray
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from ray import serve

BOARD = "tutti-metrics"  # name of the actor
PUBLISH_S = 2.0  # between two reports of a replica
MAX_AGE_S = 10.0  # of a report; older: the replica is gone
READ_TIMEOUT_S = 5.0


class Board:
    """An actor that keeps the last metrics of each replica. It ends with the replica that made it."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[float, list[Metric]]] = {}

    def publish(self, replica: str, metrics: list[Metric]) -> None:
        self._reports[replica] = time.monotonic(), metrics

    def read(self) -> list[list[Metric]]:
        oldest_s = time.monotonic() - MAX_AGE_S
        self._reports = {name: report for name, report in self._reports.items() if report[0] > oldest_s}
        return [metrics for _, metrics in self._reports.values()]


class ClusterMetrics(Collector):
    """Publishes the metrics of this replica, and collects those of all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._replica = serve.get_replica_context().replica_id.unique_id
        self._application = serve.get_replica_context().app_name

    def collect(self) -> Iterable[Metric]:
        """The metrics of all replicas; those of this one alone if the others cannot be asked."""
        mine = labelled(self._registry.collect(), self._replica)
        try:
            board = self._board()
            board.publish.remote(self._replica, mine)
            return merged(ray.get(board.read.remote(), timeout=READ_TIMEOUT_S))
        except ray.exceptions.RayError:
            return mine

    def _board(self) -> Any:
        """The actor, made by the first replica that needs it."""
        name = f"{BOARD}-{self._application}"
        return ray.remote(Board).options(name=name, get_if_exists=True, num_cpus=0).remote()

    async def publish_forever(self, refresh: Callable[[], None]) -> None:
        """Publish again and again; `refresh` sets the gauges that change by themselves."""
        while True:
            refresh()
            await asyncio.to_thread(self._publish)
            await asyncio.sleep(PUBLISH_S)

    def _publish(self) -> None:
        with suppress(ray.exceptions.RayError):
            ray.get(self._board().publish.remote(self._replica, labelled(self._registry.collect(), self._replica)))


def labelled(metrics: Iterable[Metric], replica: str) -> list[Metric]:
    """Copies of metrics with the label of their replica."""
    copies = []
    for metric in metrics:
        copy = Metric(metric.name, metric.documentation, metric.type, metric.unit)
        copy.samples = [Sample(s.name, {**s.labels, "replica": replica}, *s[2:]) for s in metric.samples]
        copies.append(copy)
    return copies


def merged(reports: Iterable[Iterable[Metric]]) -> list[Metric]:
    """The samples of all replicas, together under each metric."""
    metrics: dict[str, Metric] = {}
    for report in reports:
        for metric in report:
            if metric.name in metrics:
                metrics[metric.name].samples += metric.samples
            else:
                metrics[metric.name] = metric
    return list(metrics.values())
