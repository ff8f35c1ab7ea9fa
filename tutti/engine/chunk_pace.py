"""How short the chunks of a live stream must be on this device, by its predicted costs and its queue. Pure."""

from tutti.batching.job import Key
from tutti.batching.scheduler import SENTENCE, Scheduler
from tutti.engine.row import FRAME_S, FRAMES_PER_TOKEN
from tutti.text.chunk import DEFAULT_PACE, ChunkPace
from tutti.text.chunker import TINY_SYMBOLS

FIRST_SHARE = 0.6  # of the target that the first chunk may take alone; larger chunks sound smoother, but start later
# Seconds that a chunk of several sentences may take alone, since a batch that has begun cannot be interrupted: longer
# chunks sound smoother, but somebody who comes meanwhile waits for them. One sentence may take longer.
JOINED_S = 0.5
MIN_JOINED = 50  # symbols, about 3.6 s of audio; shorter chunks would sound like a list
CAUTION = 1.2  # times the predicted seconds: speed changes, and other requests come; larger makes shorter chunks
MIN_PACE, MAX_PACE = 0.5, 0.9  # a faster device needs no longer chunks; on a slower one gaps cannot be avoided


def chunk_pace(
    scheduler: Scheduler, checkpoint: str, target_s: float, now: float, *, n_before: int = 0, is_incremental: bool
) -> ChunkPace:
    """The first chunk is ready before the target, and each later one before the last has been played.

    If the stream has to wait, its first chunk may take as long as that: a shorter one would hardly start sooner, but
    every cut takes time from those that wait, and more of its next chunks would be late.
    A checkpoint whose rows are delivered in spans (`is_incremental`) needs no short first chunk.
    `n_before`: streams before this one whose first chunk is not queued yet.
    """
    sentence_s = scheduler.sentence_s(checkpoint)
    seconds_per_s = CAUTION * sentence_s / (SENTENCE["vocoder"] * FRAME_S)
    first_symbols = longest = DEFAULT_PACE.first_symbols
    # Costs of a lone row grow linearly with its length.
    least_s, most_s = (_seconds(scheduler, checkpoint, n) for n in (TINY_SYMBOLS, longest))
    symbol_s = max(most_s - least_s, 1e-9) / (longest - TINY_SYMBOLS)
    allowed_s = FIRST_SHARE * target_s
    if not is_incremental and allowed_s < most_s:  # else the queue need not be looked at
        wait_s = scheduler.predicted_wait_s(checkpoint, "first", target_s, now) + n_before * sentence_s
        fitting = TINY_SYMBOLS + int((max(allowed_s, wait_s) - least_s) / symbol_s)
        first_symbols = min(max(fitting, TINY_SYMBOLS), longest)
    fitting = TINY_SYMBOLS + int((JOINED_S - least_s) / symbol_s)
    joined = min(max(fitting, MIN_JOINED), DEFAULT_PACE.joined_symbols)
    return ChunkPace(first_symbols, min(max(seconds_per_s, MIN_PACE), MAX_PACE), joined_symbols=joined)


def _seconds(scheduler: Scheduler, checkpoint: str, n_symbols: int) -> float:
    """Predicted seconds of a chunk of this length alone."""
    n_frames = round(FRAMES_PER_TOKEN * n_symbols)
    return scheduler.predict(Key(checkpoint, "acoustic"), n_symbols) + scheduler.predict(
        Key(checkpoint, "vocoder"), n_frames
    )
