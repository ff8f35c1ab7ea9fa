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
        self._board: Any = None  # kept: the actor ends when the replica that made it has no handle of it

    def collect(self) -> Iterable[Metric]:
        """The metrics of all replicas; those of this one alone if the others cannot be asked."""
        mine = labelled(self._registry.collect(), self._replica)
        try:
            self._publish(mine)
            return merged(ray.get(self._board.read.remote(), timeout=READ_TIMEOUT_S))
        except ray.exceptions.RayError:
            return mine

    async def publish_forever(self, refresh: Callable[[], None]) -> None:
        """Publish again and again; `refresh` sets the gauges that change by themselves."""
        while True:
            refresh()
            with suppress(ray.exceptions.RayError):
                await asyncio.to_thread(self._publish, labelled(self._registry.collect(), self._replica))
            await asyncio.sleep(PUBLISH_S)

    def _publish(self, metrics: list[Metric]) -> None:
        """Send the metrics to the actor, which the first replica makes, and another one after its death."""
        if self._board is None:
            name = f"{BOARD}-{self._application}"
            self._board = ray.remote(Board).options(name=name, get_if_exists=True, num_cpus=0).remote()
        try:
            ray.get(self._board.publish.remote(self._replica, metrics), timeout=READ_TIMEOUT_S)
        except ray.exceptions.RayError:
            self._board = None
            raise


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
