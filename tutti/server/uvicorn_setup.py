"""How uvicorn runs an application: event loop, protocols, limits."""

import asyncio
import contextlib
import resource
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from tutti.server.middleware.http_protocol import READ_STALL_FACTOR, HttpProtocol, WebSocketProtocol, http_protocol
from tutti.settings import Settings

KEEP_ALIVE_S = 75  # an idle connection stays open this long, for clients with a pool
SPARE_FILES = 64  # file descriptors kept for other things than connections


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop, which takes a third less time for sockets; none where it does not run."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def uvicorn_config(
    application: FastAPI, settings: Settings, protocol: type[HttpProtocol] | None = None
) -> uvicorn.Config:
    """The configuration of a server for this application; `protocol` handles its connections."""
    return uvicorn.Config(
        application,
        http=protocol or http_protocol(settings.idle_s, application.state.service),
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
