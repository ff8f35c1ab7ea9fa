"""The jobs of a row: one for each stage, or for each span of its second one."""

from collections.abc import Iterable, Set

from tutti.batching.job import Job, Key
from tutti.batching.scheduler import Scheduler
from tutti.engine.row import MIN_SPLIT_S, Row

LONG_FRAMES = 200  # a row of this length tells what a frame costs


def new_job(scheduler: Scheduler, row: Row, now: float) -> Job:
    """The job of a row that was never queued: it tells what follows it in its text."""
    job = acoustic_job(scheduler, row, now)
    if row.priority != "bulk":
        job.rest = scheduler.rest_of_text(row.checkpoint, row.n_rest)
    return job


def acoustic_job(scheduler: Scheduler, row: Row, now: float) -> Job:
    later_s = scheduler.predict(Key(row.checkpoint, "vocoder"), row.first_audio_frames)
    key, size = Key(row.checkpoint, "acoustic"), len(row.utterance.tokens)
    job = _job(row, key, size, row.deadline_s, later_s, now)
    job.spans = scheduler.rest_of_row(row.checkpoint, row.estimated_frames - row.first_audio_frames)
    return job


def vocoder_job(scheduler: Scheduler, row: Row, now: float) -> Job:
    """The job for the next span of a row, or for all of it, now that its length is known."""
    key = Key(row.checkpoint, "vocoder")
    if not row.spans and row.span_rules is None:
        row.spans.append((0, row.n_frames))
    elif not row.spans:
        is_alone = all(job.stream == row.stream for queue in scheduler.queues for job in queue)
        whole_s = scheduler.predict(key, row.n_frames)
        row.plan_spans(whole_s, frame_s(scheduler, row), scheduler.limits.cap_s, now, is_alone=is_alone)
    continuation_s = row.continuation_deadline_s
    deadline_s = row.deadline_s if continuation_s is None else continuation_s
    job = _job(row, key, row.span_cost_frames, deadline_s, 0.0, now)
    job.is_continuation = continuation_s is not None
    job.starts_stream = job.starts_stream and not job.is_continuation
    job.spans = scheduler.rest_of_row(row.checkpoint, row.further_span_frames)
    return job


def may_split(scheduler: Scheduler, row: Row) -> bool:
    """Whether the row may be worth cutting, before its length is known, or was cut before its worker died."""
    if row.spans or row.span_rules is None:
        return bool(row.spans)
    return scheduler.predict(Key(row.checkpoint, "vocoder"), row.estimated_frames) >= MIN_SPLIT_S / 2


def frame_s(scheduler: Scheduler, row: Row) -> float:
    """Predicted seconds of the vocoder for a frame of a long row."""
    return scheduler.predict(Key(row.checkpoint, "vocoder"), LONG_FRAMES) / LONG_FRAMES


def _job(row: Row, key: Key, size: int, deadline_s: float, later_s: float, now: float) -> Job:
    return Job(
        key, row.stream, row.priority, size, deadline_s, later_s, row.caller, row.n_characters, now,
        starts_stream=row.starts_stream, starts_late=row.playback.starts_late, max_start_s=row.max_start_s,
        give_up_s=row.give_up_s,
    )  # fmt: skip


def all_follow(rows: Iterable[Row], streams: Set[int]) -> bool:
    """Whether all rows continue these streams, which are handed audio now, and so have time; False if none is."""
    return bool(streams) and all(row.stream in streams and not row.starts_stream for row in rows)
