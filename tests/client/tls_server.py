"""The application behind TLS and HTTP/2, as a reverse proxy would offer it."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from hypercorn.asyncio import serve
from hypercorn.config import Config
from prometheus_client import CollectorRegistry

from tutti.server.app import create_app
from tutti.settings import Settings


@dataclass
class TlsServer:
    url: str
    trusted: ssl.SSLContext
    requests: list[tuple[str, str, tuple[str, int]]] = field(default_factory=list)  # path, version, client address


@contextmanager
def tls_server(engine: Any, folder: Path, protocols: tuple[str, ...] = ("h2", "http/1.1")) -> Iterator[TlsServer]:
    authority = trustme.CA()
    certificate = folder / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    warm, loop = threading.Event(), asyncio.new_event_loop()
    settings = Settings(port=0, grace_s=0)
    application = create_app(engine, settings, CollectorRegistry(), on_warm=lambda _: warm.set())
    sock = socket.create_server(("127.0.0.1", 0))
    server = TlsServer(f"https://127.0.0.1:{sock.getsockname()[1]}", trusted)

    async def record(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] in ("http", "websocket"):
            server.requests.append((scope["path"], scope["http_version"], tuple(scope["client"])))
        await application(scope, receive, send)

    config = Config()
    config.bind = [f"fd://{sock.detach()}"]  # the server closes it
    config.certfile = config.keyfile = str(certificate)
    config.alpn_protocols = list(protocols)
    config.graceful_timeout = 3.0
    config.errorlog = None
    stop = asyncio.Event()

    async def run() -> None:
        await serve(record, config, shutdown_trigger=stop.wait)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    try:
        assert warm.wait(60)
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
        assert not thread.is_alive()
