"""The listener's clock, the only source of deadlines, and what it asks of a stream. Pure: the time is an argument."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tutti.admission.ticket import Delivery
from tutti.batching.job import Key
from tutti.batching.scheduler import SENTENCE, Scheduler
from tutti.model.spans import SpanRules
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME
from tutti.text.chunk import DEFAULT_PACE, ChunkPace
from tutti.text.chunker import TINY_SYMBOLS

FRAMES_PER_TOKEN = 2.9  # at speed 1, before the durations are known
FRAME_S = SAMPLES_PER_FRAME / SAMPLE_RATE
FIRST_SHARE = 0.6  # of the target that the first chunk may take alone; larger chunks sound smoother, but start later
CAUTION = 1.2  # times the predicted seconds: speed changes, and other requests come; larger makes shorter chunks
# Of the device for a second of audio: a faster one needs no longer chunks; on a slower one gaps cannot be avoided.
MIN_SECONDS, MAX_SECONDS = 0.5, 0.9


@dataclass(frozen=True, slots=True)
class Pacing:
    """Targets for the first audio, and how many chunks are made ahead of the listener."""

    target_s: float = 1.5  # to the first audio
    whole_target_s: float = 20.0  # to the first chunk of a whole answer; clients give up after 30 s
    bulk_target_s: float = 60.0  # to each chunk of bulk work
    whole_max_start_s: float | None = None  # how long a whole answer may wait to start; none: as long as a stream
    ahead: int = 2  # chunks made beyond the one that the caller waits for; more wastes work when a client leaves
    whole_ahead: int = 4  # the same for whole answers and bulk work
    idle_unload_s: float | None = None  # without a stream, after which the models are unloaded; none: never
    first_chunks: int = 2  # chunks of a stream that count as first
    joined_symbols: int = DEFAULT_PACE.joined_symbols  # up to which sentences are joined to a chunk; see ChunkPace
    span_rules: Mapping[str, SpanRules] = field(default_factory=dict)  # by checkpoint; others deliver whole rows

    def target(self, delivery: Delivery) -> float:
        """Seconds until the first audio is due."""
        return {"live": self.target_s, "whole": self.whole_target_s, "bulk": self.bulk_target_s}[delivery]


@dataclass(slots=True)
class Playback:
    """A listener that starts to play with the first chunk and pauses when no audio is there."""

    requested_s: float
    target_s: float  # from the request to the first audio
    safety_s: float = 0.0  # a chunk is due this long before it is played
    extra_s: float = 0.0  # by how much the stream may start after its target, because it was accepted late
    started_s: float | None = None  # start of playback plus all gaps since
    sent_s: float = 0.0  # seconds of audio handed over
    pending_s: float = 0.0  # estimated seconds of audio being made

    def reserve(self, duration_s: float) -> float:
        """Append a chunk of about this duration; return its position in the audio."""
        position_s = self.sent_s + self.pending_s
        self.pending_s += duration_s
        return position_s

    def corrected(self, longer_s: float) -> None:
        """A chunk that is being made turned out to be so much longer than was estimated."""
        self.pending_s = max(0.0, self.pending_s + longer_s)

    def deadline_s(self, position_s: float) -> float:
        """When the audio at this position is needed, by the present estimate."""
        if self.started_s is None:
            return self.requested_s + self.target_s + self.extra_s + position_s
        return self.started_s + position_s - self.safety_s

    def start_late(self, deadline_s: float) -> None:
        """Accept that the first audio is there only at this time."""
        self.extra_s = max(0.0, deadline_s - self.requested_s - self.target_s)

    @property
    def starts_late(self) -> bool:
        return self.extra_s > 0.0

    def plays_s(self, position_s: float, now: float) -> float:
        """When the audio from this position on is needed if its first part is handed over now."""
        return now + position_s if self.started_s is None else max(now, self.deadline_s(position_s))

    def text_arrived(self, now: float) -> None:
        """Restart the clock if the listener waited for text that is being written, and not for audio."""
        if self.pending_s > 0:
            return
        if self.started_s is None:
            self.requested_s = now
        else:
            self.started_s = max(self.started_s, now + self.target_s - self.sent_s)

    def sent(self, now: float, duration_s: float, estimated_s: float) -> bool:
        """Record that audio was handed over, with the estimate reserved for it; False if the listener heard a gap."""
        gap_s = 0.0 if self.started_s is None else now - (self.started_s + self.sent_s)
        self.started_s = now if self.started_s is None else self.started_s + max(0.0, gap_s)
        self.sent_s += duration_s
        self.pending_s = max(0.0, self.pending_s - estimated_s)
        return gap_s <= 0.0


def chunk_pace(
    scheduler: Scheduler,
    checkpoint: str,
    target_s: float,
    now: float,
    delay_s: float = 0.0,
    n_before: int = 0,
    *,
    is_incremental: bool,
) -> ChunkPace:
    """The first chunk is ready before the target, and each later one before the last has been played.

    If the stream has to wait, its first chunk may take as long as that: a shorter one would hardly start sooner, but
    every cut takes time from waiting streams, and more of its next chunks would be late.
    A checkpoint whose rows are delivered in spans (`is_incremental`) needs no short first chunk.
    `delay_s`: what the stream loses before and after the device; `n_before`: streams before this one whose first chunk
    is not queued yet.
    """
    sentence_s = scheduler.sentence_s(checkpoint)
    seconds_per_s = CAUTION * sentence_s / (SENTENCE["vocoder"] * FRAME_S)
    first_symbols = longest = DEFAULT_PACE.first_symbols
    if not is_incremental:
        # Costs of a lone row grow linearly with its length.
        most_s, allowed_s = _seconds(scheduler, checkpoint, longest), FIRST_SHARE * target_s
        if allowed_s < most_s:  # else the queue need not be looked at
            least_s = _seconds(scheduler, checkpoint, TINY_SYMBOLS)
            wait_s = scheduler.predicted_wait_s(checkpoint, "first", target_s, now, delay_s=delay_s)
            wait_s += n_before * sentence_s
            share = (max(allowed_s, wait_s) - least_s) / max(most_s - least_s, 1e-9)
            first_symbols = TINY_SYMBOLS + int(min(max(share, 0.0), 1.0) * (longest - TINY_SYMBOLS))
    return ChunkPace(first_symbols, min(max(seconds_per_s, MIN_SECONDS), MAX_SECONDS))


def _seconds(scheduler: Scheduler, checkpoint: str, n_symbols: int) -> float:
    """Predicted seconds of a chunk of this length alone."""
    n_frames = round(FRAMES_PER_TOKEN * n_symbols)
    return scheduler.predict(Key(checkpoint, "acoustic"), n_symbols) + scheduler.predict(
        Key(checkpoint, "vocoder"), n_frames
    )
