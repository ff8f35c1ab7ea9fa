"""A cluster of Ray with three nodes on the loopback interface, and replicas on the tone model."""

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cluster.local_cluster import LocalCluster, start_cluster

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    if importlib.util.find_spec("ray") is None:
        for item in items:
            if item.get_closest_marker("cluster"):
                item.add_marker(pytest.mark.skip(reason="Ray is not installed; run: make test-cluster"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with start_cluster(tmp_path_factory.mktemp("cluster"), replicas=2) as running:
        yield running
