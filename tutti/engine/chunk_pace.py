"""How short the chunks of a live stream must be on this device, by its predicted costs. Pure."""

from tutti.batching.job import Key
from tutti.batching.scheduler import SENTENCE, Scheduler
from tutti.engine.row import FRAME_S, FRAMES_PER_TOKEN
from tutti.text.chunk import ChunkPace
from tutti.text.chunker import TINY_SYMBOLS

FIRST_SHARE = 0.6  # of the target that the first chunk may take alone; larger chunks sound smoother, but start later
STEP = 5  # symbols between the lengths that are tried
CAUTION = 1.2  # times the predicted seconds: speed changes, and other requests come; larger makes shorter chunks
MIN_PACE, MAX_PACE = 0.5, 0.9  # a faster device needs no longer chunks; on a slower one gaps cannot be avoided


def chunk_pace(scheduler: Scheduler, checkpoint: str, target_s: float, *, is_incremental: bool) -> ChunkPace:
    """The first chunk is ready before the target, and each later one before the last has been played.

    A checkpoint whose rows are delivered in spans (`is_incremental`) needs no short first chunk.
    """
    seconds_per_s = CAUTION * scheduler.sentence_s(checkpoint) / (SENTENCE["vocoder"] * FRAME_S)
    longest = ChunkPace().first_symbols
    lengths = range(longest, TINY_SYMBOLS, -STEP)
    fits = (n for n in lengths if is_incremental or _seconds(scheduler, checkpoint, n) <= FIRST_SHARE * target_s)
    return ChunkPace(next(fits, TINY_SYMBOLS), min(max(seconds_per_s, MIN_PACE), MAX_PACE))


def _seconds(scheduler: Scheduler, checkpoint: str, n_symbols: int) -> float:
    """Predicted seconds of a chunk of this length alone."""
    n_frames = round(FRAMES_PER_TOKEN * n_symbols)
    return scheduler.predict(Key(checkpoint, "acoustic"), n_symbols) + scheduler.predict(
        Key(checkpoint, "vocoder"), n_frames
    )
