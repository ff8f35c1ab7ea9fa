"""One replica: the engine of one device, and the application of `tutti serve` around it."""

import asyncio
import itertools
import time
from contextlib import ExitStack
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from tutti.engine.build import open_engine
from tutti.engine.engine import Engine
from tutti.server.app import create_app
from tutti.server.lifecycle import Lifecycle
from tutti.server.logs import background_logging
from tutti.server.uvicorn_setup import collect_rarely
from tutti.settings import Settings

# A replica that has had no worker for so long is replaced, maybe on another device. Its own supervision restarts a
# worker within seconds; smaller replaces replicas that would recover by themselves.
MAX_UNREADY_S = 60.0
SENTENCE_BYTES = 60  # of a typical sentence, whose cost the engine predicts


class UnhealthyReplica(Exception):
    """No worker of the replica can be started."""


class Replica:
    """The methods that Ray Serve calls, all on the event loop of the replica."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = Settings(**settings)
        self._logging = ExitStack()
        self._logging.enter_context(background_logging(self.settings.log_format))
        self.engine = self.open_engine(self.settings)
        self._numbers = itertools.count()
        self._ready_s = time.monotonic()
        self._lifecycle: Lifecycle | None = None

    def open_engine(self, settings: Settings) -> Engine:
        return open_engine(settings, for_server=True)

    async def __serve_build_asgi_app__(self) -> Any:
        """The application; Ray runs its startup, which ends when the engine is warm, before it sends requests."""
        registry = self.engine.batch_stats.metrics.registry
        scraped = self.cluster_metrics(registry)
        application = create_app(
            self.engine, self.settings, registry, lambda _: collect_rarely(), wait_warm=True, scraped=scraped
        )
        self._lifecycle = application.state.service.lifecycle
        application.add_middleware(OneRequestId)
        return application

    def cluster_metrics(self, registry: CollectorRegistry) -> Collector:
        from tutti_ray.metrics import ClusterMetrics

        metrics = ClusterMetrics(registry)
        self._publishing = asyncio.create_task(metrics.publish_forever(self.engine.monitor.refresh_gauges))
        return metrics

    def check_health(self) -> None:
        """Raise if the replica should be replaced."""
        now_s = time.monotonic()
        if self.engine.workers()["readyWorkers"] > 0:
            self._ready_s = now_s
        elif now_s > self._ready_s + MAX_UNREADY_S:
            raise UnhealthyReplica(f"no worker for {now_s - self._ready_s:.0f} s")

    def record_routing_stats(self) -> dict[str, Any]:
        """What the router ranks replicas by: the fields of `routing.ReplicaReport`."""
        return {
            "number": next(self._numbers),
            "ready": self.engine.workers()["readyWorkers"] > 0,
            "wait_s": self.engine.predicted_wait_s("live"),
            "n_active": self._lifecycle.n_active if self._lifecycle else 0,
            "byte_s": self.engine.monitor.sentence_s() / SENTENCE_BYTES,
        }

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What `scaling.wanted_replicas` decides by."""
        wait = self.engine.predicted_wait_s("live") / self.engine.pacing.target_s
        return {"wait": wait, "busy": self.engine.busy_ratio()}


class OneRequestId:
    """Drops the request id from answers: Ray Serve adds the same one itself, but not to WebSockets."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_without_id(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [header for header in message["headers"] if header[0].lower() != b"x-request-id"]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_without_id)
