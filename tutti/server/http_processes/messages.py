"""What an HTTP process and the server's process say to each other."""

from dataclasses import dataclass

from prometheus_client import Metric

from tutti.errors import TuttiError
from tutti.settings import Settings
from tutti.speech import Delivery, Speech, SpeechParams


@dataclass(frozen=True, slots=True)
class EngineState:
    """What an HTTP process knows of the engine."""

    ready: bool
    checkpoints: tuple[str, ...]  # the first is the default
    batching_enabled: bool


@dataclass(frozen=True, slots=True)
class Welcome:
    """The first message to an HTTP process; the descriptor of its listening socket comes with it."""

    settings: Settings
    engine: EngineState


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection for the server's process, whose descriptor comes with it, and what was read from it."""

    data: bytes


@dataclass(frozen=True, slots=True)
class StartStream:
    """Begin a stream: its first speech is sent without being asked for."""

    number: int  # of the stream in its HTTP process
    text: str
    params: SpeechParams
    caller: str
    delivery: Delivery
    id: str
    max_start_s: float | None
    trace_id: str


@dataclass(frozen=True, slots=True)
class NextSpeech:
    """The last speech was taken; the next one is wanted."""

    number: int


@dataclass(frozen=True, slots=True)
class LeaveStream:
    """Nothing more is wanted of a stream."""

    number: int


@dataclass(frozen=True, slots=True)
class SpeechReady:
    number: int
    speech: Speech
    is_last: bool = False  # nothing follows, not even StreamEnded


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The last message of a stream, unless its last speech was or it was closed."""

    number: int
    error: TuttiError | None = None


@dataclass(frozen=True, slots=True)
class RefusedStreams:
    """So many streams were refused without being read."""

    n_streams: int


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
