"""Start a cluster of Ray on this machine: a head, and a node for each replica."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tutti_ray.environment import prepare


@dataclass
class LocalCluster:
    """A running cluster, its nodes and its application."""

    url: str
    ray: Any  # the module
    nodes: list[Any]
    args: dict[str, Any]
    _nodes_of: Any = field(repr=False)  # ray.cluster_utils.Cluster

    def deploy(
        self, build: Callable[[dict[str, Any]], Any] | None = None, *, name: str = "tutti", **settings: Any
    ) -> None:
        """Deploy, or update what is deployed; return when all replicas run."""
        from ray import serve

        from tests.cluster import tones

        args = {**self.args, "settings": {**self.args["settings"], **settings}}
        serve.run((build or tones.build)(args), name=name, route_prefix="/")

    def replica_pids(self) -> list[int]:
        """The processes of the replicas that run, not their workers."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            if " ".join(process.info["cmdline"] or ()).startswith("ray::ServeReplica:tutti"):
                found.append(process.pid)
        return found

    def kill_replica(self) -> None:
        os.kill(self.replica_pids()[0], signal.SIGKILL)

    def kill_node(self) -> None:
        """Kill a node that has a replica, with all its processes at once."""
        raylet = psutil.Process(self.nodes[-1].all_processes["raylet"][0].process.pid)
        for process in (raylet, *raylet.children(recursive=True)):
            process.kill()
        self._nodes_of.remove_node(self.nodes.pop(), allow_graceful=False)

    def add_node(self) -> None:
        self.nodes.append(self._nodes_of.add_node(num_cpus=2, resources={"device": 1}, node_ip_address="127.0.0.1"))

    def wait_for_new_replica(self, before: set[int], timeout_s: float) -> float:
        """Wait until all replicas run that there should be, and not only those before; return the seconds."""
        from ray import serve

        started_s = time.monotonic()
        while time.monotonic() < started_s + timeout_s:
            (deployment,) = serve.status().applications["tutti"].deployments.values()
            is_complete = deployment.replica_states.get("RUNNING", 0) == self.args["replicas"]
            if is_complete and set(self.replica_pids()) - before:
                return time.monotonic() - started_s
            time.sleep(0.1)
        raise TimeoutError(f"no new replica after {timeout_s:g} s")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def start_cluster(folder: Path, *, replicas: int, **environ: str) -> Iterator[LocalCluster]:
    """Start Ray and the replicas. Ray reads its variables once, so a process can do this once."""
    os.environ |= {"RAY_AUTH_TOKEN_PATH": str(folder / "token"), **environ}
    prepare("proxy", alone=True)
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    try:
        port = free_port()
        args = {"replicas": replicas, "resources": {"device": 1}, "settings": {"data": str(folder / "data")}}
        running = LocalCluster(f"http://127.0.0.1:{port}", ray, [], args, nodes)
        for _ in range(replicas):
            running.add_node()
        ray.init(address=nodes.address, log_to_driver=False, logging_level="warning")
        serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
        running.deploy()
        yield running
        serve.shutdown()
    finally:
        ray.shutdown()
        nodes.shutdown()
