"""`tutti serve`: bind, load, listen; on SIGTERM finish the active requests, then exit."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address
from threading import current_thread, main_thread
from typing import cast

import uvicorn

from tutti.engine.build import open_engine
from tutti.engine.checkpoints import choose_checkpoints, fetch_repositories
from tutti.engine.engine import Engine
from tutti.errors import InvalidInput
from tutti.server.agent_check import serve_agent_check
from tutti.server.app import create_app
from tutti.server.front.pool import HttpProcesses
from tutti.server.front.protocol import Front
from tutti.server.lifecycle import Lifecycle
from tutti.server.logs import background_logging
from tutti.server.middleware.auth import ApiKeys
from tutti.server.middleware.origin import OriginRules
from tutti.server.service import Service, resolve_voice_settings
from tutti.server.spans import is_exporting
from tutti.server.uvicorn_setup import check_versions, collect_rarely, event_loop_factory, uvicorn_config
from tutti.settings import Settings
from tutti.voices import Voices

OPEN_WARNING = (
    "tutti: warning: there are no API keys, so everyone who reaches this machine may use the server; "
    "set TUTTI_API_KEYS, or listen on 127.0.0.1 only"
)
HTTP_PROCESSES = 3  # before a CUDA device: more wait for the engine, fewer would be its limit
CORES_FOR_HTTP = 8  # with fewer the model, the text front end and the engine need them all
BACKLOG = 2048  # connections that wait to be accepted
Listener = Callable[[Service], contextlib.AbstractAsyncContextManager[None]]
log = logging.getLogger("tutti.server")


class Server(uvicorn.Server):
    """Uvicorn without its signal handlers: a stop drains first, and a clean end has exit code 0."""

    def __init__(
        self,
        config: uvicorn.Config,
        lifecycle: Lifecycle,
        grace_s: float,
        http_processes: HttpProcesses | None = None,
    ) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle
        self._grace_s = grace_s
        self._http_processes = http_processes
        self._taking_over: set[asyncio.Task[None]] = set()
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Drain; a second call exits at once, even if requests are active."""
        if self._draining is not None:
            with contextlib.suppress(OSError):  # the terminal is gone
                print("tutti: stopped immediately", file=sys.stderr, flush=True)
            os._exit(1)
        self._drain_once()

    def hang_up(self) -> None:
        """Drain: the terminal is closed. Its shell and the system may both say so."""
        if self._draining is None:
            self._drain_once()

    def _drain_once(self) -> None:
        log.info("draining requests=%d grace_s=%g", self._lifecycle.n_active, self._grace_s)
        self._draining = asyncio.create_task(self._drain())

    def take_over(self, sock: socket.socket, data: bytes) -> None:
        """Go on with a connection of an HTTP process, and with what that has read from it."""
        task = asyncio.create_task(self._take_over(sock, data))
        self._taking_over.add(task)
        task.add_done_callback(self._taking_over.discard)

    async def _take_over(self, sock: socket.socket, data: bytes) -> None:
        while not self.started:
            await asyncio.sleep(0.01)

        def create_protocol() -> asyncio.Protocol:
            create = cast(Callable[..., asyncio.Protocol], self.config.http_protocol_class)
            state, app_state = self.server_state, self.lifespan.state
            return create(config=self.config, server_state=state, app_state=app_state, received=data)

        sock.setblocking(False)
        with contextlib.suppress(OSError):  # the client has left meanwhile
            await asyncio.get_running_loop().connect_accepted_socket(create_protocol, sock)

    async def _drain(self) -> None:
        draining = [self._lifecycle.drain(self._grace_s)]
        if self._http_processes is not None:
            draining.append(self._http_processes.drain(self._grace_s))
        if all(await asyncio.gather(*draining)):
            log.info("drained")
        else:
            log.warning("cancelled after the grace time requests=%d", self._lifecycle.n_active)
        self.should_exit = True
        if self._http_processes is not None:
            await self._http_processes.close()  # while this process ends its own connections


@contextlib.contextmanager
def handling_signals(server: Server) -> Iterator[None]:
    """Stop the server on a signal, from now until all of it has ended."""
    loop = asyncio.get_running_loop()
    handlers = {signal.SIGTERM: server.stop, signal.SIGINT: server.stop}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        handlers[signal.SIGHUP] = server.hang_up
    if current_thread() is not main_thread():
        handlers = {}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def serve(settings: Settings, notes: Sequence[str] = ()) -> None:
    """Serve until a signal. A wrong setting or a port in use fails before anything is downloaded or loaded."""
    check_versions()
    resolve_voice_settings(settings, Voices.of(settings))
    ApiKeys(settings.api_keys)
    OriginRules(settings)
    fetch_repositories(settings)
    n_processes = n_http_processes(settings)
    with (
        listening(settings, n_processes) as sockets,
        wyoming_listener(settings) as wyoming,
        agent_check_listener(settings) as agent_check,
        background_logging(settings.log_format),
    ):
        if not settings.api_keys and not ip_address(sockets[0].getsockname()[0]).is_loopback:
            print(OPEN_WARNING, file=sys.stderr, flush=True)
        for note in notes:
            log.warning("settings: %s", note)
        engine = open_engine(settings, for_server=True, progress=_log_progress)
        with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
            runner.run(_serve(engine, settings, sockets, (wyoming, agent_check), n_processes))


def n_http_processes(settings: Settings) -> int:
    """How many processes speak HTTP in front of this one; 0: this one does."""
    if settings.rate_requests or settings.rate_characters or is_exporting(os.environ) or sys.platform != "linux":
        return 0
    if settings.http_processes is not None:
        return settings.http_processes
    on_cuda = any(choice.device == "cuda" for choice in choose_checkpoints(settings).values())
    return HTTP_PROCESSES if on_cuda and (os.cpu_count() or 1) >= CORES_FOR_HTTP else 0


async def _serve(
    engine: Engine,
    settings: Settings,
    sockets: list[socket.socket],
    listeners: Sequence[Listener],
    n_processes: int,
) -> None:
    failures: list[BaseException] = []
    registry = engine.batch_stats.metrics.registry
    processes = HttpProcesses(engine, settings, registry, n_processes) if n_processes else None

    def on_warm(warming: asyncio.Task[None]) -> None:
        error = None if warming.cancelled() else warming.exception()
        if error is not None:
            failures.append(error)
            server.should_exit = True
        elif not warming.cancelled():
            collect_rarely()
            if processes is not None:
                processes.engine_started()
            sock = sockets[0]
            others = f"from other machines: {url}, " if (url := url_for_others(sock)) else ""
            print(f"tutti is ready: {url_of(sock)}  ({others}docs: /docs, stop: Ctrl-C)", file=sys.stderr, flush=True)

    application = create_app(engine, settings, registry, on_warm=on_warm, scraped=processes)
    lifecycle = application.state.service.lifecycle
    if processes is not None:
        lifecycle.http_processes_answer = lambda: processes.answer
    front = Front(lifecycle, engine.loop_budget, settings.idle_s, processes.place) if processes else None
    server = Server(uvicorn_config(application, settings, front), lifecycle, settings.grace_s, processes)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(handling_signals(server))
        for listener in listeners:
            await stack.enter_async_context(listener(application.state.service))
        if processes is not None:
            processes.start(sockets, server.take_over)
            stack.push_async_callback(processes.close)
        await server.serve(sockets=[] if processes else sockets)
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


@contextlib.contextmanager
def listening(settings: Settings, n_processes: int) -> Iterator[list[socket.socket]]:
    """Bind the port; for several HTTP processes a socket for each, over which the system spreads new connections."""
    with contextlib.ExitStack() as stack:
        with bind(settings) as first:  # not shared: fails if the port is in use
            settings = settings.model_copy(update={"port": first.getsockname()[1]})
            if n_processes == 0:
                yield [first]
                return
        sockets = [stack.enter_context(bind(settings, shared=True)) for _ in range(n_processes)]
        for sock in sockets:
            sock.listen(BACKLOG)
        yield sockets


def bind(settings: Settings, *, shared: bool = False) -> socket.socket:
    """Return a socket that is bound but not listening: a port in use fails before the long load, not after.

    `shared`: other sockets of this user may be bound to the same port.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With IPPROTO_TCP: without it asyncio does not disable Nagle's algorithm, which delays writes by 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
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
