"""The request router of Ray Serve that asks `routing`. It runs in the proxy, which alone sees every request."""

import time
from typing import Any

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from tutti_ray.routing import DEFAULT_BYTES, LeastWait, ReplicaReport, request_bytes


class LeastWaitRouter(RequestRouter):
    """Sends each request to the replica with the least predicted wait."""

    def initialize_state(self, **_: Any) -> None:
        self._least_wait = LeastWait()

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        replicas = {replica.replica_id: replica for replica in candidate_replicas}
        reports = {id: ReplicaReport.parse(replica.routing_stats) for id, replica in replicas.items()}
        ranked = self._least_wait.choose(reports, _length(pending_request), time.monotonic())
        return [[replicas[id]] for id in ranked]


def _length(request: PendingRequest | None) -> int:
    """The bytes of a request. The proxy passes the scope of ASGI as the first argument; calls of handles do not."""
    scope = getattr(request.args[0], "_asgi_scope", None) if request and request.args else None
    return DEFAULT_BYTES if scope is None else request_bytes(scope)
