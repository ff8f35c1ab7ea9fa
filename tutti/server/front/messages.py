"""What an HTTP process and the server's process say to each other; those of streams are named tuples, read faster."""

from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client import Metric

from tutti.admission.ticket import Delivery
from tutti.engine.request import StreamRequest
from tutti.errors import TuttiError
from tutti.speech import Speech


@dataclass(frozen=True, slots=True)
class EngineState:
    """What an HTTP process knows of the engine."""

    ready: bool
    checkpoints: tuple[str, ...]  # the first is the default
    batching_enabled: bool


@dataclass(frozen=True, slots=True)
class Connection:
    """Comes with a connection for the server's process: what was read from it."""

    data: bytes


class StartStream(NamedTuple):
    """Begin a stream: its first speech is sent without being asked for."""

    number: int  # of the stream in its HTTP process
    request: StreamRequest
    trace_id: str


class NextSpeech(NamedTuple):
    """The last speech was taken; the next one is wanted."""

    number: int


class LeaveStream(NamedTuple):
    """Nothing more is wanted of a stream."""

    number: int


class SpeechReady(NamedTuple):
    number: int
    speech: Speech
    is_last: bool = False  # nothing follows, not even StreamEnded


class StreamEnded(NamedTuple):
    """The last message of a stream, unless its last speech was or it was closed."""

    number: int
    error: TuttiError | None = None


@dataclass(frozen=True, slots=True)
class StreamReport:
    """How many streams were refused without being read, and how long others waited until their first audio was sent."""

    n_refused: int
    first_audio: list[tuple[float, Delivery]]


@dataclass(frozen=True, slots=True)
class ReportMetrics:
    """Asks for MetricsReport."""


@dataclass(frozen=True, slots=True)
class MetricsReport:
    """The metrics of an HTTP process, which count for the whole server."""

    metrics: list[Metric]


@dataclass(frozen=True, slots=True)
class Beat:
    """Asks whether the process answers; it sends the same back."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Refuse new work, and say Drained when no request is active or the grace time is over."""

    grace_s: float


@dataclass(frozen=True, slots=True)
class Drained:
    in_time: bool
