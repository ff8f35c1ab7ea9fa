"""How short the chunks of a live stream must be on this device, by its predicted costs and its queue. Pure."""

from tutti.batching.job import Key
from tutti.batching.scheduler import SENTENCE, Scheduler
from tutti.engine.row import FRAME_S, FRAMES_PER_TOKEN
from tutti.text.chunk import DEFAULT_PACE, ChunkPace
from tutti.text.chunker import TINY_SYMBOLS

FIRST_SHARE = 0.6  # of the target that the first chunk may take alone; larger chunks sound smoother, but start later
CAUTION = 1.2  # times the predicted seconds: speed changes, and other requests come; larger makes shorter chunks
MIN_PACE, MAX_PACE = 0.5, 0.9  # a faster device needs no longer chunks; on a slower one gaps cannot be avoided


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
    every cut takes time from those that wait, and more of its next chunks would be late.
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
    return ChunkPace(first_symbols, min(max(seconds_per_s, MIN_PACE), MAX_PACE))


def _seconds(scheduler: Scheduler, checkpoint: str, n_symbols: int) -> float:
    """Predicted seconds of a chunk of this length alone."""
    n_frames = round(FRAMES_PER_TOKEN * n_symbols)
    return scheduler.predict(Key(checkpoint, "acoustic"), n_symbols) + scheduler.predict(
        Key(checkpoint, "vocoder"), n_frames
    )
