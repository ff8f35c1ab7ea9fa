"""The application of an HTTP process: the routes for speech alone, with the middleware of the server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from tutti.server.engine_protocol import EngineProtocol
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.stack import add_middleware
from tutti.server.routes.openai import speech_routes
from tutti.server.routes.tts import tts_routes
from tutti.server.service import Service
from tutti.server.spans import Spans
from tutti.settings import Settings


def create_speech_app(engine: EngineProtocol, settings: Settings, registry: CollectorRegistry) -> FastAPI:
    service = Service.of(engine, settings)
    service.memory.register(registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            service.encoders.close()

    application = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    application.state.service = service
    for routes in (speech_routes(service), tts_routes(service)):
        application.router.routes += routes.routes
    add_middleware(application, service, ApiKeys(settings.api_keys), registry, Spans())
    return application
