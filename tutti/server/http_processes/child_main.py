"""Main function of an HTTP process: serves the requests for speech, with streams of the server's process."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from typing import cast

import uvicorn
from prometheus_client import CollectorRegistry

from tutti.process.link import Link
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.garbage import collect_rarely
from tutti.server.http_processes.direct import DirectAnswers
from tutti.server.http_processes.messages import (
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
from tutti.server.http_processes.protocol import speech_protocol
from tutti.server.http_processes.remote_engine import RemoteEngine
from tutti.server.http_processes.speech_app import create_speech_app
from tutti.server.logs import background_logging
from tutti.server.service import Service
from tutti.server.uvicorn_setup import event_loop_factory, uvicorn_config
from tutti.settings import Settings


class SpeechServer(uvicorn.Server):
    """Uvicorn that leaves signals to the server's process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def main(
    end: socket.socket,
    settings: Settings,
    n_processes: int,
    state: EngineState,
    direct: DirectAnswers,
    listening: socket.socket,
) -> None:
    """Serve until the server's process closes its end; `n_processes` share the cores."""
    with (
        background_logging(settings.log_format),
        asyncio.Runner(loop_factory=event_loop_factory()) as runner,
    ):
        runner.run(_serve(end, settings, n_processes, state, direct, listening))


async def _serve(
    end: socket.socket,
    settings: Settings,
    n_processes: int,
    state: EngineState,
    direct: DirectAnswers,
    listening: socket.socket,
) -> None:
    engine, registry = RemoteEngine(state), CollectorRegistry()
    # The routes for speech use no more of an engine than this one has.
    application = create_speech_app(cast(EngineProtocol, engine), settings, registry)
    service: Service = application.state.service
    service.encoders.share = 1 / n_processes  # each has threads for all cores, but they share these

    def hand_on(descriptor: int, data: bytes) -> None:
        link.send(Connection(data), os.dup(descriptor))

    protocol = speech_protocol(settings.idle_s, service, hand_on, direct)
    server = SpeechServer(uvicorn_config(application, settings, protocol))
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
    await server.serve(sockets=[listening])
