"""The server, assembled: routes around one engine, and what stands before them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware

from tutti import __version__
from tutti.server import errors
from tutti.server import openapi as docs
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.middleware.access_log import Access
from tutti.server.middleware.auth import Keys
from tutti.server.middleware.ingress import Ingress
from tutti.server.routes.dev import side_routes
from tutti.server.routes.jobs import jobs_of, jobs_routes
from tutti.server.routes.live import live_routes
from tutti.server.routes.models import discovery_routes
from tutti.server.routes.openai import speech_routes
from tutti.server.routes.ops import probe_routes
from tutti.server.routes.page import page_routes
from tutti.server.routes.realtime import realtime_routes
from tutti.server.routes.stats import watching_routes
from tutti.server.routes.trial import Trials, trial_routes
from tutti.server.routes.tts import legacy_routes
from tutti.server.service import Service
from tutti.settings import Settings

log = logging.getLogger("tutti.server")


Warmed = Callable[[asyncio.Task[None]], object]


def create_app(
    engine: EngineProtocol, settings: Settings, registry: CollectorRegistry | None = None, on_warm: Warmed | None = None
) -> FastAPI:
    """The application. It answers probes at once, and takes work as soon as the engine is warm."""
    registry = registry or CollectorRegistry()
    service = Service.of(engine, settings)
    keys = Keys(settings.api_keys)
    jobs = jobs_of(service)

    async def warm() -> None:
        await engine.start()
        await jobs.start()

    @asynccontextmanager
    async def lifespan(create_app: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.create_task(warm())
        warming.add_done_callback(on_warm or _log_failure)
        try:
            yield
        finally:
            warming.cancel()
            await asyncio.gather(warming, return_exceptions=True)
            await jobs.close()
            await engine.close(grace_s=0)
            service.encoder_threads.shutdown(wait=False, cancel_futures=True)

    made = FastAPI(
        title="tutti",
        version=__version__,
        description="All voices, one pass: text to speech with Kokoro-82M.",
        lifespan=lifespan,
        docs_url=None,  # both would load their scripts from elsewhere; /docs is among the files of the page
        redoc_url=None,
    )
    made.state.service = service
    trials = Trials(service)
    for routes in (
        speech_routes(service),
        discovery_routes(service),
        legacy_routes(service),
        side_routes(service),
        probe_routes(service, registry),
        watching_routes(service, trials.told),
        trial_routes(service, trials),
        live_routes(service),
        realtime_routes(service),
        jobs_routes(service, jobs, keys),
        page_routes(),
    ):
        made.include_router(routes)
    errors.install(made)
    made.openapi = lambda: docs.document(made)  # type: ignore[method-assign]
    # Each goes around those before it.
    made.add_middleware(Ingress, service=service, keys=keys)
    if settings.cors_origins:
        made.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
    made.add_middleware(Access, registry=registry)
    return made


def _log_failure(warming: asyncio.Task[None]) -> None:
    if not warming.cancelled() and (error := warming.exception()):
        log.error("the engine did not start: %s", error)
