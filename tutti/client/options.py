"""How a client is set up, the same for `Client` and `AsyncClient`."""

import ssl
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from tutti.client.call_stats import Call, Clock
from tutti.errors import InvalidInput, did_you_mean

MB = 1 << 20


class ClientOptions(TypedDict, total=False):
    """The keyword arguments of a client's constructor; `ClientSettings` has the defaults."""

    api_key: str | None
    voice: str | None
    headers: Mapping[str, str]
    pool_size: int
    max_workers: int
    chunk_bytes: int
    http2: bool | None
    verify: ssl.SSLContext | bool
    prewarm: bool
    connect_timeout_s: float
    health_timeout_s: float
    synthesis_timeout_s: float
    streaming_timeout_s: float
    retries: int
    memory_cache_bytes: int
    file_cache_bytes: int
    cache_folder: Path | None
    on_call: Callable[[Call], None] | None
    clock: Clock


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """All options of a client with their defaults; docs/client.md explains each."""

    api_key: str | None = field(default=None, repr=False)
    voice: str | None = None  # None: the server's default
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    pool_size: int = 10
    max_workers: int = 4  # concurrent texts of one `speak_many`, and threads for callbacks
    chunk_bytes: int = 512
    http2: bool | None = None  # None: over TLS if the h2 package is installed
    verify: ssl.SSLContext | bool = True  # True: the system's certificates
    prewarm: bool = True
    connect_timeout_s: float = 3.0
    health_timeout_s: float = 0.5
    synthesis_timeout_s: float = 10.0  # for a complete response
    streaming_timeout_s: float = 15.0  # between two reads of a stream
    retries: int = 2
    memory_cache_bytes: int = 64 * MB
    file_cache_bytes: int = 0  # off by default: spoken text may be private
    cache_folder: Path | None = None  # None: the user's cache folder
    on_call: Callable[[Call], None] | None = None
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        for name in ("pool_size", "max_workers"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be 1 or more", param=name)
        if self.chunk_bytes < 2:
            raise InvalidInput("chunk_bytes must be 2 or more: one sample", param="chunk_bytes")


def client_settings(options: ClientOptions) -> ClientSettings:
    check_names(options, ClientOptions.__annotations__)
    return ClientSettings(**options)


def check_names(given: Iterable[str], known: Collection[str], named: Collection[str] = ()) -> None:
    """Raise TypeError for a keyword argument that does not exist, as Python does, and say what may be meant.

    `named`: further arguments of the call, which Python has taken out of `given`.
    """
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}{did_you_mean(name, (*known, *named))}")


def server_of(url: str) -> str:
    """Return the server's address without the `/v1` that OpenAI's libraries want."""
    bare = url.rstrip("/").removesuffix("/v1").rstrip("/")
    if not bare.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} is not an address; write http://host:8880", param="url")
    return bare
