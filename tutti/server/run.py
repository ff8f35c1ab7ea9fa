"""`tutti serve`: bind, load, listen; on SIGTERM finish the active requests, then exit."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address
from threading import current_thread, main_thread

import uvicorn
from fastapi import FastAPI

from tutti.engine.build import open_engine
from tutti.engine.engine import Engine
from tutti.errors import InvalidInput
from tutti.server.agent_check import serve_agent_check
from tutti.server.app import create_app
from tutti.server.lifecycle import Lifecycle
from tutti.server.logs import background_logging
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.http_protocol import READ_STALL_FACTOR, WebSocketProtocol, http_protocol
from tutti.server.middleware.origin import OriginRules
from tutti.server.service import Service, resolve_voice_settings
from tutti.settings import Settings

KEEP_ALIVE_S = 75  # an idle connection stays open this long, for clients with a pool
OPEN_WARNING = (
    "tutti: warning: there are no API keys, so everyone who reaches this machine may use the server; "
    "set TUTTI_API_KEYS, or listen on 127.0.0.1 only"
)
SPARE_FILES = 64  # file descriptors kept for other things than connections
Listener = Callable[[Service], contextlib.AbstractAsyncContextManager[None]]
log = logging.getLogger("tutti.server")


class Server(uvicorn.Server):
    """Uvicorn with its own signal handlers: they drain first, and a clean end has exit code 0."""

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
        """Drain; a second call exits at once, even if requests are active."""
        if self._draining is not None:
            print("tutti: stopped immediately", file=sys.stderr, flush=True)
            os._exit(1)
        log.info("draining requests=%d grace_s=%g", self._lifecycle.n_active, self._grace_s)
        self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        if await self._lifecycle.drain(self._grace_s):
            log.info("drained")
        else:
            log.warning("cancelled after the grace time requests=%d", self._lifecycle.n_active)
        self.should_exit = True


def serve(settings: Settings, notes: Sequence[str] = ()) -> None:
    """Serve until a signal. A wrong setting or a port in use fails before anything is downloaded or loaded."""
    resolve_voice_settings(settings)
    ApiKeys(settings.api_keys)
    OriginRules(settings)
    with (
        bind(settings) as sock,
        wyoming_listener(settings) as wyoming,
        agent_check_listener(settings) as agent_check,
        background_logging(settings.log_format),
    ):
        if not settings.api_keys and not ip_address(sock.getsockname()[0]).is_loopback:
            print(OPEN_WARNING, file=sys.stderr, flush=True)
        for note in notes:
            log.warning("settings: %s", note)
        engine = open_engine(settings, for_server=True, progress=_log_progress)
        with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
            runner.run(_serve(engine, settings, sock, (wyoming, agent_check)))


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop, which takes a third less time for sockets; none where it does not run."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(engine: Engine, settings: Settings, sock: socket.socket, listeners: Sequence[Listener]) -> None:
    failures: list[BaseException] = []

    def on_warm(warming: asyncio.Task[None]) -> None:
        error = None if warming.cancelled() else warming.exception()
        if error is not None:
            failures.append(error)
            server.should_exit = True
        elif not warming.cancelled():
            gc.freeze()  # the loaded modules and model stay: a garbage collection over them would block for 20 ms
            others = f"from other machines: {url}, " if (url := url_for_others(sock)) else ""
            print(f"tutti is ready: {url_of(sock)}  ({others}docs: /docs, stop: Ctrl-C)", file=sys.stderr, flush=True)

    application = create_app(engine, settings, engine.batch_stats.metrics.registry, on_warm=on_warm)
    server = Server(uvicorn_config(application, settings), application.state.service.lifecycle, settings.grace_s)
    async with contextlib.AsyncExitStack() as stack:
        for listener in listeners:
            await stack.enter_async_context(listener(application.state.service))
        await server.serve(sockets=[sock])
    if failures:
        raise failures[0]


def _log_progress(task: str, n_done: int, n_steps: int) -> None:
    log.info("starting step=%r done=%d of=%d", task, n_done, n_steps)


def url_of(sock: socket.socket) -> str:
    """Return an address that this machine can open; 0.0.0.0 is none."""
    host, port = sock.getsockname()[:2]
    return _url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)


def url_for_others(sock: socket.socket) -> str | None:
    """Return the address for other machines if the socket is bound to all interfaces and there is a network."""
    host, port = sock.getsockname()[:2]
    if not ip_address(host).is_unspecified:
        return None
    target = "2001:db8::1" if ":" in host else "192.0.2.1"  # of the documentation; connecting UDP sends nothing
    with socket.socket(sock.family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect((target, 9))
        return _url(probe.getsockname()[0], port)
    return None


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(settings: Settings) -> socket.socket:
    """Return a socket that is bound but not listening: a port in use fails before the long load, not after."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With IPPROTO_TCP: without it asyncio does not disable Nagle's algorithm, which delays writes by 40 ms.
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
def wyoming_listener(settings: Settings) -> Iterator[Listener]:
    """Bind the Wyoming port, if one is set. A missing package or a port in use fails now."""
    if settings.wyoming_port is None:
        yield lambda _: contextlib.nullcontext()
        return
    from tutti.server.wyoming import serve_wyoming

    address = {"host": settings.wyoming_host or settings.host, "port": settings.wyoming_port}
    with bind(settings.model_copy(update=address)) as sock:
        yield partial(serve_wyoming, sock=sock)


@contextlib.contextmanager
def agent_check_listener(settings: Settings) -> Iterator[Listener]:
    """Bind the agent-check port, if one is set. A port in use fails now."""
    if settings.agent_check_port is None:
        yield lambda _: contextlib.nullcontext()
        return
    with bind(settings.model_copy(update={"port": settings.agent_check_port})) as sock:
        yield partial(serve_agent_check, sock=sock)


def uvicorn_config(application: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=http_protocol(settings.idle_s, application.state.service),
        ws=WebSocketProtocol,
        ws_max_size=settings.max_body,
        ws_ping_timeout=READ_STALL_FACTOR * settings.idle_s,  # a reader whose buffer is full answers no ping
        ws_per_message_deflate=False,  # audio does not compress
        lifespan="on",
        access_log=False,
        proxy_headers=False,  # Ingress looks at them, and only if TUTTI_TRUSTED_PROXIES is set
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
        limit_concurrency=max(1, min(settings.max_connections, _raise_file_limit() - SPARE_FILES)),
    )


def _raise_file_limit() -> int:
    """Raise the limit on open files as far as the system allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = min(hard, 65_536) if hard != resource.RLIM_INFINITY else 65_536
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, target), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
