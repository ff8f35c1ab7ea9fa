"""How uvicorn runs an application: event loop, protocols, limits."""

import asyncio
import contextlib
import gc
import resource
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import cast

import uvicorn
from fastapi import FastAPI

from tutti.errors import InvalidInput
from tutti.server.front.limits import READ_STALL_FACTOR
from tutti.server.front.protocol import Front, HttpProtocol
from tutti.server.front.websocket import WebSocketProtocol
from tutti.server.service import Service
from tutti.settings import Settings

# Their minor versions, as in pyproject.toml: our protocols override methods of theirs that they do not document.
TESTED_VERSIONS = {"uvicorn": "0.54", "httptools": "0.9", "websockets": "16.1"}
KEEP_ALIVE_S = 75  # an idle connection stays open this long, for clients with a pool
SPARE_FILES = 64  # file descriptors kept for other things than connections
FULL_AFTER = 100  # collections of what is younger before a full one; Python's own choice is 10


def collect_rarely() -> None:
    """Leave out what is loaded by now: a collection over it would take 20 ms. Collect the rest in full less often.

    A full collection looks at every open stream (16 ms for 330 of them on a Neoverse-N1), and all others wait for it.
    Streams leave no cycles, so there is little to find.
    """
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, FULL_AFTER)


def check_versions() -> None:
    """Raise unless the libraries that speak HTTP are those that the tests run with."""
    for name, tested in TESTED_VERSIONS.items():
        found = version(name)
        if not found.startswith(f"{tested}."):
            raise InvalidInput(f"{name} {found} is installed, but this version of tutti needs {tested}: "
                               f"pip install '{name}=={tested}.*'")  # fmt: skip


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop, which takes a third less time for sockets; none where it does not run."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def uvicorn_config(application: FastAPI, settings: Settings, front: Front | None = None) -> uvicorn.Config:
    """The configuration of a server for this application; `front`: if other processes answer requests, too."""
    service: Service = application.state.service
    front = front or Front(service.lifecycle, service.engine.loop_budget, settings.idle_s)
    return uvicorn.Config(
        application,
        http=cast(type[HttpProtocol], partial(HttpProtocol, front)),
        ws=cast(type[WebSocketProtocol], partial(WebSocketProtocol, front.loop_budget)),
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
