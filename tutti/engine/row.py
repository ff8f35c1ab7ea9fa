"""One utterance on its way through both stages: its jobs, its spans that are delivered early; and where to find it."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from tutti.batching.job import Batch, Job, Key, Priority
from tutti.batching.scheduler import Scheduler
from tutti.engine.playback import FRAME_S, FRAMES_PER_TOKEN, Playback
from tutti.metrics import ChunkMode
from tutti.model.spans import SEARCH_FRAMES, SpanRules
from tutti.speech import SAMPLES_PER_FRAME, Samples, Timing, Utterance
from tutti.trace import NO_TRACE, Trace
from tutti.worker.messages import FrameRange

log = logging.getLogger(__name__)

MIN_GROWTH, MAX_GROWTH = 1.5, 3.0  # length of a span over the one before; larger: fewer spans, less overhead
MIN_SPLIT_S = 0.05  # predicted seconds of the vocoder; a row that takes less is not cut
LEAD = 0.8  # share of the audio still to be played in which the next span should be ready; larger risks a gap
SHARED_LEAD = 2.0  # batch caps of audio in a first span while others wait; larger: fewer gaps, later first audio
LONG_FRAMES = 200  # a row of this length tells what a frame costs
MAX_SPAN = 100  # frames of a span, or more if they fit the batch cap; larger makes new requests wait longer
CLOSED = "the engine was closed"
TOO_SLOW = "the device became too slow to speak this in time; try again later"


@dataclass(frozen=True, slots=True, eq=False)
class RowAudio:
    """The samples of a row, or of its next span."""

    samples: Samples
    durations: NDArray[np.int64]  # of the whole row
    timing: Timing
    next: "asyncio.Future[RowAudio] | None" = None  # the following span


def new_future() -> asyncio.Future[RowAudio]:
    """The next audio of a row."""
    future: asyncio.Future[RowAudio] = asyncio.get_running_loop().create_future()
    # Its error is retrieved here: its caller may have left, and asyncio would log it as never retrieved.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


@dataclass(slots=True, eq=False)
class Row:
    """One utterance: its values when it is submitted, and its progress."""

    utterance: Utterance
    checkpoint: str
    stream: int
    priority: Priority
    playback: Playback
    position_s: float = 0.0  # in the audio of its stream
    caller: str = ""
    n_characters: int = 0
    span_rules: SpanRules | None = None  # how it may be delivered in spans; none = whole
    starts_stream: bool = False  # nothing of its stream was heard before
    request_id: str = ""  # for the log
    chunk: int = 0  # its number in the stream
    max_start_s: float | None = None  # how long its stream may wait for its first audio; none: as the scheduler says
    n_remaining: int = 0  # characters of its text that follow it, as far as they are known
    tempo: float = 1.0  # by which its audio is made shorter when it is done
    trace: Trace = NO_TRACE

    # Set by the batcher:
    id: int = -1
    job: Job | None = None
    give_up_s: float = inf  # when the client of its stream stops to wait for its first audio
    durations: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    n_frames: int = 0
    queue_s: float = 0.0
    acoustic_s: float = 0.0
    n_lost: int = 0  # workers that died with it
    is_bypassed: bool = False  # the policy ran it alone and at once, instead of in a batch with others
    is_isolated: bool = False  # it runs without other rows: a worker died with it and others, one of which is the cause
    spans: deque[FrameRange] = field(default_factory=deque)  # still to be delivered
    plays_s: float = 0.0  # when its listener hears its first frame, once the first span is there
    future: asyncio.Future[RowAudio] = field(default_factory=new_future)

    @property
    def deadline_s(self) -> float:
        """When its first audio is needed, by the present estimate."""
        return self.playback.deadline_s(self.position_s)

    @property
    def heard_frame_s(self) -> float:
        """Seconds that its listener hears of a frame."""
        return FRAME_S / self.tempo

    @property
    def estimated_frames(self) -> int:
        return round(FRAMES_PER_TOKEN * self.utterance.tokens_at_speed_1) + self.utterance.pause_frames

    @property
    def first_audio_frames(self) -> int:
        """Estimated frames that the vocoder computes before any audio of this row is heard."""
        n_frames, rules = self.estimated_frames, self.span_rules
        return rules.cost(n_frames, 0, rules.first) if rules and n_frames >= rules.min_row else n_frames

    @property
    def span(self) -> FrameRange | None:
        """The span to be made next; none if that is the whole row."""
        return None if self.spans[0] == (0, self.n_frames) else self.spans[0]

    @property
    def span_cost_frames(self) -> int:
        """The vocoder's work for the span to be made next, in frames of a whole row."""
        if self.span is None or self.span_rules is None:
            return self.n_frames
        return self.span_rules.cost(self.n_frames, *self.span)

    @property
    def further_span_frames(self) -> int:
        """The same for the spans after it."""
        if self.span_rules is None:
            return 0
        return sum(self.span_rules.cost(self.n_frames, *span) for span in islice(self.spans, 1, None))

    @property
    def continuation_deadline_s(self) -> float | None:
        """When the span to be made next is needed; none for the first one."""
        start, _ = self.spans[0]
        return self.plays_s + start * self.heard_frame_s if start else None

    def new_job(self, scheduler: Scheduler, now: float) -> Job:
        """The job of a row that was never queued: it carries the estimate for the text after it."""
        job = self.acoustic_job(scheduler, now)
        if self.priority != "bulk":
            job.remaining = scheduler.remaining_of_text(self.checkpoint, self.n_remaining)
        return job

    def acoustic_job(self, scheduler: Scheduler, now: float) -> Job:
        """The job for its first stage."""
        later_s = scheduler.predict(Key(self.checkpoint, "vocoder"), self.first_audio_frames)
        key, size = Key(self.checkpoint, "acoustic"), len(self.utterance.tokens)
        job = self._job(key, size, self.deadline_s, later_s, now)
        job.spans = scheduler.remaining_of_row(self.checkpoint, self.estimated_frames - self.first_audio_frames)
        job.may_split = self.may_split(scheduler)
        return job

    def vocoder_job(self, scheduler: Scheduler, now: float) -> Job:
        """The job for its next span, or for all of it, now that its length is known."""
        key = Key(self.checkpoint, "vocoder")
        if not self.spans and self.span_rules is None:
            self.spans.append((0, self.n_frames))
        elif not self.spans:
            others_wait = any(job.stream != self.stream for queue in scheduler.queues for job in queue)
            whole_s = scheduler.predict(key, self.n_frames)
            self.choose_spans(whole_s, self.frame_s(scheduler), scheduler.limits.cap_s, now, others_wait=others_wait)
        continuation_s = self.continuation_deadline_s
        deadline_s = self.deadline_s if continuation_s is None else continuation_s
        job = self._job(key, self.span_cost_frames, deadline_s, 0.0, now)
        job.is_continuation = continuation_s is not None
        job.starts_stream = job.starts_stream and not job.is_continuation
        job.spans = scheduler.remaining_of_row(self.checkpoint, self.further_span_frames)
        return job

    def whole_job(self, scheduler: Scheduler, now: float) -> Job:
        """The job for all of it at once."""
        self.spans.append((0, self.n_frames))
        return self.vocoder_job(scheduler, now)

    def _job(self, key: Key, size: int, deadline_s: float, later_s: float, now: float) -> Job:
        return Job(
            key, self.stream, self.priority, size, deadline_s, later_s, self.caller, self.n_characters, now,
            starts_stream=self.starts_stream, starts_late=self.playback.starts_late, max_start_s=self.max_start_s,
            give_up_s=self.give_up_s,
        )  # fmt: skip

    def may_split(self, scheduler: Scheduler) -> bool:
        """Whether it may be worth cutting, before its length is known, or was cut before its worker died."""
        if self.spans or self.span_rules is None:
            return bool(self.spans)
        return scheduler.predict(Key(self.checkpoint, "vocoder"), self.estimated_frames) >= MIN_SPLIT_S / 2

    def frame_s(self, scheduler: Scheduler) -> float:
        """Predicted seconds of the vocoder for a frame of a long row."""
        return scheduler.predict(Key(self.checkpoint, "vocoder"), LONG_FRAMES) / LONG_FRAMES

    def accepted(self, job: Job) -> None:
        """Note what admission control promised to the stream that this row starts."""
        self.give_up_s = job.give_up_s
        if job.starts_late:
            self.playback.start_late(job.deadline_s)

    def record_batch(self, batch: Batch, started_s: float, ended_s: float) -> None:
        """Record how long it waited for a batch, and in its trace how long that ran, too."""
        arrived_s = self.job.arrived_s if self.job else started_s
        self.queue_s += started_s - arrived_s
        self.is_bypassed |= batch.reason == "bypass"
        self.trace.record_step("queue", arrived_s, started_s, chunk=self.chunk, stage=batch.key.stage)
        self.trace.record_step("batch", started_s, ended_s, chunk=self.chunk, stage=batch.key.stage, rows=batch.n_rows)

    def mode(self, max_rows: int) -> ChunkMode:
        """How it reached the model: past the batches, through them, or one by one because batching is off."""
        return "direct" if max_rows == 1 else "bypassed" if self.is_bypassed else "batched"

    def log_spoken(self, timing: Timing, max_rows: int) -> None:
        """Say how this chunk was spoken, under the id of its request (X-Stream-ID)."""
        steps_ms = [1000 * step_s for step_s in (timing.queue_s, timing.acoustic_s, timing.vocoder_s)]
        log.info(
            "chunk spoken id=%s stream=%d chunk=%d class=%s mode=%s rows=%d took=%.1fms "
            "queue=%.1fms acoustic=%.1fms vocoder=%.1fms trace=%s",
            self.request_id or "-", self.stream, self.chunk, self.priority, self.mode(max_rows), timing.batch_rows,
            sum(steps_ms), *steps_ms, self.trace.id or "-",
        )  # fmt: skip

    def acoustic_done(self, durations: NDArray[np.int64], took_s: float) -> float:
        """Record what the acoustic stage found out: how long each symbol is.

        Return by how many seconds the row is longer than was thought, so all that follows it is needed later.
        """
        n_frames = int(durations.sum())
        longer_s = self.heard_frame_s * (n_frames - (self.n_frames or self.estimated_frames))
        self.durations, self.n_frames, self.acoustic_s = durations, n_frames, took_s
        self.playback.corrected(longer_s)
        return longer_s

    def choose_spans(self, whole_s: float, frame_s: float, cap_s: float, now: float, *, others_wait: bool) -> None:
        """Split the row into spans if it starts a stream, would be late as a whole, or would block others for long.

        A row that takes less than MIN_SPLIT_S stays whole: a listener would not hear the difference.
        `whole_s`: predicted seconds of the vocoder for the whole row; `frame_s`: for one frame of a long row.
        """
        max_frames = max(MAX_SPAN, cap_s / frame_s)
        is_late = now + whole_s > self.deadline_s
        helps = whole_s >= MIN_SPLIT_S and (self.starts_stream or is_late or self.n_frames > max_frames)
        if self.span_rules and helps:
            # Each span may be so much longer than the last that it is ready when that one has been played.
            growth = min(max(self.heard_frame_s / frame_s, MIN_GROWTH), MAX_GROWTH)
            # The next span may have to wait for a batch of others.
            is_shared = others_wait and isfinite(cap_s)
            first = round(SHARED_LEAD * cap_s / self.heard_frame_s) + SEARCH_FRAMES if is_shared else 0
            self.spans.extend(self.span_rules.split(self.n_frames, growth, max_frames, first))
        else:
            self.spans.append((0, self.n_frames))

    def span_done(self, samples: Samples, frame_s: float, now: float) -> bool:
        """Move on to the next span; False if there is none.

        It starts where this one really ended, and is short enough to be made while its listener plays this one.
        """
        start, _ = self.spans.popleft()
        rules = self.span_rules
        if not self.spans or rules is None:
            return False
        if start == 0:
            self.plays_s = self.playback.plays_s(self.position_s, now)
        start += len(samples) // SAMPLES_PER_FRAME
        _, end = self.spans.popleft()
        in_time = int(LEAD * (self.plays_s + start * self.heard_frame_s - now) / frame_s) - 2 * rules.context
        middle = start + max(in_time, rules.least)
        if end - middle >= rules.least:
            self.spans.appendleft((middle, end))
            end = middle
        self.spans.appendleft((start, end))
        return True


class RowIndex:
    """The rows of a batcher: by the jobs that wait or run, and the rows whose callers wait, wherever their jobs are.

    Under load there are a thousand, so those of one stream are found without a search.
    """

    def __init__(self) -> None:
        self._rows: dict[Job, Row] = {}
        self._jobs: dict[int, dict[Job, None]] = {}  # of each stream, in the order in which they were added
        self._open: dict[int, dict[Row, None]] = {}  # of each stream: the rest of their audio is awaited

    def __getitem__(self, job: Job) -> Row:
        return self._rows[job]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._rows)

    def values(self) -> Iterable[Row]:
        return self._rows.values()

    def add(self, job: Job, row: Row) -> None:
        self._rows[job] = row
        self._jobs.setdefault(row.stream, {})[job] = None

    def pop(self, job: Job) -> Row:
        row = self._rows.pop(job)
        jobs = self._jobs[row.stream]
        del jobs[job]
        if not jobs:
            del self._jobs[row.stream]
        return row

    def discard(self, job: Job) -> None:
        """Remove a job if it is there."""
        if job in self._rows:
            self.pop(job)

    def of_streams(self, streams: Iterable[int]) -> Iterator[tuple[Job, Row]]:
        """The jobs of these streams and their rows."""
        return ((job, self._rows[job]) for stream in streams for job in self._jobs.get(stream, ()))

    def acoustic_done(self, rows: Sequence[Row], durations: Sequence[NDArray[np.int64]], took_s: float) -> None:
        """Record how long rows are, none of which is here now, and so when later chunks of their streams are needed."""
        longer: dict[int, list[tuple[int, float]]] = {}
        for row, row_durations in zip(rows, durations, strict=True):
            longer.setdefault(row.stream, []).append((row.chunk, row.acoustic_done(row_durations, took_s)))
        for row in (*rows, *(other for _, other in self.of_streams(longer))):
            row.position_s += sum(longer_s for chunk, longer_s in longer.get(row.stream, ()) if chunk < row.chunk)

    def all_follow(self, streams: Set[int]) -> bool:
        """Whether all continue these streams, which are handed audio now, and so have time; False if none is."""
        return bool(streams) and all(row.stream in streams and not row.starts_stream for row in self._rows.values())

    @property
    def open(self) -> list[Row]:
        """The rows whose callers wait."""
        return [row for rows in self._open.values() for row in rows]

    def open_of(self, stream: int) -> list[Row]:
        return list(self._open.get(stream, ()))

    def add_open(self, row: Row) -> None:
        """Its caller waits from now on."""
        self._open.setdefault(row.stream, {})[row] = None

    def remove_open(self, row: Row) -> bool:
        """Its caller no longer waits; False if it did not."""
        rows = self._open.get(row.stream, {})
        if row not in rows:
            return False
        del rows[row]
        if not rows:
            del self._open[row.stream]
        return True

    def fail(self, rows: Iterable[Row], error: Exception) -> list[Row]:
        """Tell the callers of these rows; return the rows whose callers had not left."""
        failed = [row for row in rows if not row.future.done()]
        for row in failed:
            self.remove_open(row)
            row.future.set_exception(error)
        return failed
