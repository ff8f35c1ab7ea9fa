"""The application: routes around one engine, and the middleware before them."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from tutti import __version__
from tutti.server.downloads import Downloads
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.stack import add_middleware
from tutti.server.openapi import add_openapi_route
from tutti.server.routes.dev import dev_routes
from tutti.server.routes.jobs import jobs_routes, make_jobs
from tutti.server.routes.lexicons import lexicon_routes
from tutti.server.routes.live import live_routes
from tutti.server.routes.openai import discovery_routes, speech_routes
from tutti.server.routes.ops import probe_routes
from tutti.server.routes.own_voices import own_voice_routes
from tutti.server.routes.page import page_routes
from tutti.server.routes.realtime import realtime_routes
from tutti.server.routes.stats import stats_routes
from tutti.server.routes.tts import tts_routes
from tutti.server.service import Service
from tutti.server.spans import open_spans
from tutti.server.wires.azure import azure_routes
from tutti.server.wires.cartesia import cartesia_routes
from tutti.server.wires.deepgram import deepgram_routes
from tutti.server.wires.elevenlabs import elevenlabs_routes
from tutti.server.wires.elevenlabs_dictionaries import elevenlabs_dictionaries
from tutti.server.wires.elevenlabs_socket import elevenlabs_sockets
from tutti.settings import Settings
from tutti.tasks import cancel_all

log = logging.getLogger("tutti.server")


OnWarm = Callable[[asyncio.Task[None]], object]


def create_app(
    engine: EngineProtocol,
    settings: Settings,
    registry: CollectorRegistry | None = None,
    on_warm: OnWarm | None = None,
    *,
    wait_warm: bool = False,
    scraped: Collector | None = None,
) -> FastAPI:
    """Build the application. It answers probes at once, and accepts work when the engine is warm.

    `wait_warm`: its startup ends when the engine is warm, and fails if the engine does; for servers that send requests
    as soon as the startup has ended. `scraped`: what /metrics shows, if not the registry alone.
    """
    registry = registry or CollectorRegistry()
    service = Service.of(engine, settings)
    service.memory.register(registry)
    keys = ApiKeys(settings.api_keys)
    jobs = make_jobs(service)
    spans = open_spans(os.environ)
    downloads = Downloads(settings.data / "downloads")

    async def warm() -> None:
        await engine.start()
        await jobs.start()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.create_task(warm())
        warming.add_done_callback(on_warm or _log_failure)
        try:
            if wait_warm:
                await asyncio.shield(warming)
            yield
        finally:
            await cancel_all([warming])
            await jobs.close()
            await engine.close(grace_s=0)
            service.encoders.close()
            await asyncio.to_thread(spans.close)

    application = FastAPI(
        title="tutti",
        version=__version__,
        description="All voices, one pass: text to speech with Kokoro-82M.",
        lifespan=lifespan,
        docs_url=None,  # both load scripts from other hosts; /docs is one of the files of the page
        redoc_url=None,
        openapi_url=None,
    )
    application.state.service = service
    for routes in (
        speech_routes(service, downloads),
        discovery_routes(service),
        own_voice_routes(service, keys),
        lexicon_routes(service, keys),
        tts_routes(service),
        dev_routes(service, downloads),
        elevenlabs_routes(service),
        elevenlabs_dictionaries(service, keys),
        elevenlabs_sockets(service, keys),
        cartesia_routes(service),
        deepgram_routes(service),
        azure_routes(service),
        probe_routes(service, scraped or registry),
        stats_routes(service),
        live_routes(service),
        realtime_routes(service),
        jobs_routes(service, jobs, keys),
        page_routes(),
    ):
        application.router.routes += routes.routes  # FastAPI would look for the route in each router, twice
    add_middleware(application, service, keys, registry, spans)
    add_openapi_route(application)
    return application


def _log_failure(warming: asyncio.Task[None]) -> None:
    if not warming.cancelled() and (error := warming.exception()):
        log.error("the engine did not start: %s", error)
