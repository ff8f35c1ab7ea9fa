"""How a client is set up: the same for both faces."""

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from tutti.client.call_stats import Call, Clock
from tutti.errors import InvalidInput

MB = 1 << 20


class Choices(TypedDict, total=False):
    """Everything that may be told to a client when it is made; `Options` has the defaults."""

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
class Options:
    """See docs/client.md."""

    api_key: str | None = field(default=None, repr=False)
    voice: str | None = None  # none: the server's
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    pool_size: int = 10
    max_workers: int = 4  # texts of one `speak_many` at a time, and threads for callbacks
    chunk_bytes: int = 512
    http2: bool | None = None  # none: over TLS where the h2 package is there
    verify: ssl.SSLContext | bool = True  # true: the system's certificates
    prewarm: bool = True
    connect_timeout_s: float = 3.0
    health_timeout_s: float = 0.5
    synthesis_timeout_s: float = 10.0
    streaming_timeout_s: float = 15.0
    retries: int = 2
    memory_cache_bytes: int = 64 * MB
    file_cache_bytes: int = 0  # what was said may be private: files only where asked for
    cache_folder: Path | None = None  # none: the user's cache folder
    on_call: Callable[[Call], None] | None = None
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        for name in ("pool_size", "max_workers"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be 1 or more", param=name)
        if self.chunk_bytes < 2:
            raise InvalidInput("chunk_bytes must be 2 or more: one sample", param="chunk_bytes")


def server_of(url: str) -> str:
    """The server's address without the `/v1` that OpenAI's libraries want."""
    bare = url.rstrip("/").removesuffix("/v1").rstrip("/")
    if not bare.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} is no address; write http://host:8880", param="url")
    return bare
