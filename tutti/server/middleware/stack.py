"""All middleware of an application, in its order."""

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from tutti.server.errors import UnknownPath, error_response, install_error_handlers
from tutti.server.middleware.access_log import AccessLog
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.ingress import Ingress
from tutti.server.service import Service
from tutti.server.spans import Spans


async def no_route(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a path that no route is for; Starlette's own closes a WebSocket with 403, as for a wrong key."""
    await error_response(UnknownPath("Not Found"))(scope, receive, send)


def add_middleware(
    application: FastAPI, service: Service, keys: ApiKeys, registry: CollectorRegistry, spans: Spans
) -> None:
    """Finish an application whose routes are complete."""
    # Build the routes now: FastAPI would do so during the first request, which takes 50 ms.
    for route in application.routes:
        route.matches({"type": "http", "method": "GET", "path": "", "root_path": "", "headers": []})
    install_error_handlers(application)
    application.router.default = no_route
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
