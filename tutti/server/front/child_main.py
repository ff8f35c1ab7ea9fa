"""Main function of an HTTP process: serves the requests for speech, with streams of the server's process."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from tutti.admission.refusals import Refusals
from tutti.engine.checkpoints import open_voices
from tutti.process.link import Link
from tutti.server.downloads import Downloads
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.front.messages import (
    Beat,
    Connection,
    Drain,
    Drained,
    EngineState,
    MetricsReport,
    ReportMetrics,
    SpeechReady,
    StreamEnded,
)
from tutti.server.front.placement import EngineLoad, placement
from tutti.server.front.protocol import Front
from tutti.server.front.remote_engine import RemoteEngine
from tutti.server.logs import background_logging
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.stack import add_middleware
from tutti.server.routes.openai import speech_routes
from tutti.server.routes.tts import tts_routes
from tutti.server.service import Service
from tutti.server.spans import Spans
from tutti.server.uvicorn_setup import collect_rarely, event_loop_factory, uvicorn_config
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
    for routes in (speech_routes(service, Downloads(settings.data / "downloads")), tts_routes(service)):
        application.router.routes += routes.routes
    add_middleware(application, service, ApiKeys(settings.api_keys), registry, Spans())
    return application


class SpeechServer(uvicorn.Server):
    """Uvicorn that leaves signals to the server's process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass(frozen=True, slots=True)
class Place:
    """What a process is started with: its place among those of its server."""

    settings: Settings  # its share of what the server may hold
    n_processes: int  # they share the cores
    engine: EngineState
    refusals: Refusals
    load: EngineLoad
    listening: socket.socket


def main(end: socket.socket, place: Place) -> None:
    """Serve until the server's process closes its end."""
    with (
        background_logging(place.settings.log_format),
        asyncio.Runner(loop_factory=event_loop_factory()) as runner,
    ):
        runner.run(_serve(end, place))


async def _serve(end: socket.socket, place: Place) -> None:
    engine = RemoteEngine(place.engine, place.refusals, open_voices(place.settings))
    registry = CollectorRegistry()
    # The routes for speech use no more of an engine than this one has.
    application = create_speech_app(cast(EngineProtocol, engine), place.settings, registry)
    service: Service = application.state.service
    service.encoders.share = 1 / place.n_processes  # each has threads for all cores, but they share these

    def transfer(descriptor: int, data: bytes) -> None:
        link.send(Connection(data), os.dup(descriptor))

    front = Front(
        service.lifecycle,
        engine.loop_budget,
        place.settings.idle_s,
        lambda head: placement(head, in_engine=False, is_busy=place.load.is_busy),
        transfer,
    )
    server = SpeechServer(uvicorn_config(application, place.settings, front))
    draining: set[asyncio.Task[None]] = set()

    async def drain(grace_s: float) -> None:
        link.send(Drained(await service.lifecycle.drain(grace_s)))

    def receive(message: object) -> None:
        match message:
            case SpeechReady() | StreamEnded():
                engine.receive(message)
            case EngineState():
                engine.state = message
            case Beat():
                link.send(message)
            case ReportMetrics():
                link.send(MetricsReport(list(registry.collect())))
            case Drain(grace_s):
                draining.add(asyncio.create_task(drain(grace_s)))

    def lost() -> None:
        engine.lost()
        server.should_exit = True

    link = Link(receive, lost)
    engine.send = link.send
    link.open(end)
    collect_rarely()
    await server.serve(sockets=[place.listening])
