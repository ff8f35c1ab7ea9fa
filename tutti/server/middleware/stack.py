"""All middleware of an application, in its order."""

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware

from tutti.server.errors import install_error_handlers
from tutti.server.middleware.access_log import AccessLog
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.ingress import Ingress
from tutti.server.service import Service
from tutti.server.spans import Spans


def add_middleware(
    application: FastAPI, service: Service, keys: ApiKeys, registry: CollectorRegistry, spans: Spans
) -> None:
    """Finish an application whose routes are complete."""
    # Build the routes now: FastAPI would do so during the first request, which takes 50 ms.
    for route in application.routes:
        route.matches({"type": "http", "method": "GET", "path": "", "root_path": "", "headers": []})
    install_error_handlers(application)
    # Each middleware wraps those added before it.
    application.add_middleware(Ingress, service=service, keys=keys)
    if origins := service.settings.cors_origins:
        application.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
    application.add_middleware(AccessLog, registry=registry, lifecycle=service.lifecycle, spans=spans)
