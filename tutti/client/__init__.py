"""The client: first byte early, connections reused, numbers shown. Needs httpx2 and nothing else of tutti's."""

from tutti.client.aclient import AsyncClient
from tutti.client.audio import Audio, Piece, Word, wav
from tutti.client.calls import Call, Stats, Summary
from tutti.client.client import Client
from tutti.client.errors import ClientClosed, CutShort, Refused, TimedOut, Unreachable
from tutti.client.handler import OptimizedKokoroHandler
from tutti.client.hooks import prometheus_hook
from tutti.client.live import AsyncLive, Live
from tutti.client.stream import AsyncStream, Stream
from tutti.client.wish import Wishes

__all__ = [
    "AsyncClient",
    "AsyncLive",
    "AsyncStream",
    "Audio",
    "Call",
    "Client",
    "ClientClosed",
    "CutShort",
    "Live",
    "OptimizedKokoroHandler",
    "Piece",
    "Refused",
    "Stats",
    "Stream",
    "Summary",
    "TimedOut",
    "Unreachable",
    "Wishes",
    "Word",
    "prometheus_hook",
    "wav",
]
