"""`tutti serve`: bind, load, listen, say when it is warm; on SIGTERM finish what was begun, and go."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from threading import current_thread, main_thread

import uvicorn
from fastapi import FastAPI

from tutti.engine.build import open_engine
from tutti.engine.engine import Engine
from tutti.errors import InvalidInput
from tutti.server.app import create_app
from tutti.server.lifecycle import Lifecycle
from tutti.server.logs import logging_aside
from tutti.server.middleware.auth import Keys
from tutti.server.middleware.http_protocol import STALLED, Socket, patient
from tutti.server.service import Service, chosen_voices
from tutti.settings import Settings

KEEP_ALIVE_S = 75  # pooled clients come back within this time
SPARE_FILES = 64  # descriptors that are not connections
Beside = Callable[[Service], contextlib.AbstractAsyncContextManager[None]]
log = logging.getLogger("tutti.server")


class Server(uvicorn.Server):
    """Uvicorn, less its signals: ours drain first, and a clean end is exit code 0."""

    def __init__(self, config: uvicorn.Config, lifecycle: Lifecycle, grace_s: float) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle
        self._grace_s = grace_s
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT) if current_thread() is main_thread() else ()
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """The first call drains; the second leaves at once, whatever is under way."""
        if self._draining is not None:
            print("tutti: stopped at once", file=sys.stderr, flush=True)
            os._exit(1)
        log.info("draining requests=%d grace_s=%g", self._lifecycle.n_active, self._grace_s)
        self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        if await self._lifecycle.drain(self._grace_s):
            log.info("drained")
        else:
            log.warning("cut after the grace time requests=%d", self._lifecycle.n_active)
        self.should_exit = True


def serve(settings: Settings) -> None:
    """Serves until told to stop. A wrong setting or a taken port shows before anything is fetched or loaded."""
    chosen_voices(settings)
    Keys(settings.api_keys)
    with bind(settings) as sock, wyoming(settings) as beside, logging_aside(settings.log_format):
        asyncio.run(_serve(open_engine(settings, apart=True, progress=_show), settings, sock, beside))


async def _serve(engine: Engine, settings: Settings, sock: socket.socket, beside: Beside) -> None:
    failed: list[BaseException] = []

    def warm(warming: asyncio.Task[None]) -> None:
        error = None if warming.cancelled() else warming.exception()
        if error is not None:
            failed.append(error)
            server.should_exit = True
        elif not warming.cancelled():
            gc.freeze()  # what was loaded stays: to look through it for garbage would hold everybody up for 20 ms
            print(f"tutti is ready: {url_of(sock)}  (docs: /docs, stop: Ctrl-C)", file=sys.stderr, flush=True)

    application = create_app(engine, settings, engine.batch_stats.metrics.registry, on_warm=warm)
    server = Server(uvicorn_config(application, settings), application.state.service.lifecycle, settings.grace_s)
    async with beside(application.state.service):
        await server.serve(sockets=[sock])
    if failed:
        raise failed[0]


def _show(what: str, done: int, steps: int) -> None:
    """How the start goes on, for whoever watches."""
    log.info("starting step=%r done=%d of=%d", what, done, steps)


def url_of(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(settings: Settings) -> socket.socket:
    """A socket that has its address but does not listen yet: a taken port shows before a long load, not after."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # By its full name: to a socket that does not say TCP, asyncio leaves Nagle's wait of 40 ms between two writes.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
    except OSError as exc:
        sock.close()
        raise InvalidInput(
            f"cannot listen on {settings.host} port {settings.port}: {exc.strerror}", param="port"
        ) from exc
    return sock


@contextlib.contextmanager
def wyoming(settings: Settings) -> Iterator[Beside]:
    """What speaks to Home Assistant beside HTTP, where a port is set for it; what is missing or taken shows now."""
    if settings.wyoming_port is None:
        yield lambda _: contextlib.nullcontext()
        return
    from tutti.server.wyoming import serve_wyoming

    place = {"host": settings.wyoming_host or settings.host, "port": settings.wyoming_port}
    with bind(settings.model_copy(update=place)) as sock:
        yield partial(serve_wyoming, sock=sock)


def uvicorn_config(application: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=patient(settings.idle_s),
        ws=Socket,
        ws_max_size=settings.max_body,
        ws_ping_timeout=STALLED * settings.idle_s,  # a reader that is full answers no ping either
        ws_per_message_deflate=False,  # sound does not shrink
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
        limit_concurrency=max(1, min(settings.max_connections, _files() - SPARE_FILES)),
    )


def _files() -> int:
    """How many files may be open: as many as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 65_536) if hard != resource.RLIM_INFINITY else 65_536
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
