"""Routes for operators and probes: health, readiness, version, metrics."""

import platform
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from tutti import __version__
from tutti.errors import NotReady
from tutti.server.openapi import only_errors
from tutti.server.service import Service
from tutti.server.shared_answer import SharedAnswer


def probe_routes(service: Service, scraped: Collector) -> APIRouter:
    routes = APIRouter(tags=["probes"])

    async def render_metrics() -> bytes:
        service.engine.monitor.refresh_gauges()
        return await run_in_threadpool(generate_latest, scraped)

    metrics_page = SharedAnswer(render_metrics)

    @routes.get("/health")
    async def health() -> dict[str, Any]:
        """The state of the server; 200 as long as it can answer."""
        state, workers = service.lifecycle.state, service.engine.workers()
        ready = state == "ready" and workers["readyWorkers"] > 0
        status = "healthy" if ready else "unhealthy" if state == "ready" else state
        return {"status": status, "ready": ready, "version": __version__, **workers}

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the process is alive."""
        return {"status": "ok"}

    @routes.get("/readyz", responses=only_errors(503))
    async def readyz() -> dict[str, str]:
        """200 only while new work is accepted."""
        service.lifecycle.check_processes()
        if service.engine.workers()["queueSize"] >= service.settings.max_queue:
            raise NotReady("the queue is full")
        return {"status": "ready"}

    @routes.get("/version")
    async def version() -> dict[str, str]:
        """The versions of the server, the model and Python."""
        return {"version": __version__, "model": "Kokoro-82M v1.0", "python": platform.python_version()}

    @routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """The metrics, for Prometheus."""
        return Response(await metrics_page(), headers={"content-type": CONTENT_TYPE_LATEST})

    return routes
