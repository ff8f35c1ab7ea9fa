"""How short chunks must be on a device of a given speed."""

from hypothesis import given
from hypothesis import strategies as st

from tutti.batching.cost import CostModel
from tutti.batching.job import Key
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.chunk_pace import FIRST_SHARE, MAX_PACE, MIN_PACE, chunk_pace
from tutti.engine.row import FRAME_S, FRAMES_PER_TOKEN
from tutti.text.chunk import DEFAULT_PACE
from tutti.text.chunker import TINY_SYMBOLS


def scheduler_of(seconds_per_s: float) -> Scheduler:
    """On a device that takes so long for a second of audio, all of it in the vocoder."""
    costs = {"acoustic": (1e-6, 0.0, 0.0, 0.0), "vocoder": (0.0, 0.0, 0.0, seconds_per_s * FRAME_S)}
    return Scheduler(Limits(), lambda key: CostModel(SideBySide(1), costs[key.stage]), Deadline())


@given(st.floats(0.001, 2.0), st.floats(0.05, 5.0))
def test_the_first_chunk_is_ready_before_the_target_if_that_is_possible(seconds_per_s: float, target_s: float) -> None:
    pace = chunk_pace(scheduler_of(seconds_per_s), "kokoro", target_s, is_incremental=False)
    audio_s = pace.first_symbols * FRAMES_PER_TOKEN * FRAME_S
    assert TINY_SYMBOLS <= pace.first_symbols <= DEFAULT_PACE.first_symbols
    assert seconds_per_s * audio_s <= 1.02 * FIRST_SHARE * target_s + 1e-3 or pace.first_symbols == TINY_SYMBOLS


@given(st.floats(0.001, 2.0))
def test_a_slower_device_gets_shorter_chunks(seconds_per_s: float) -> None:
    pace = chunk_pace(scheduler_of(seconds_per_s), "kokoro", 1.5, is_incremental=False)
    slower = chunk_pace(scheduler_of(1.5 * seconds_per_s), "kokoro", 1.5, is_incremental=False)
    assert slower.first_symbols <= pace.first_symbols
    assert pace.seconds_per_s <= slower.seconds_per_s
    assert MIN_PACE <= pace.seconds_per_s <= MAX_PACE
    assert pace.seconds_per_s >= min(seconds_per_s, MAX_PACE), "never faster than the device"


def test_a_fast_device_keeps_the_default() -> None:
    assert chunk_pace(scheduler_of(0.005), "kokoro", 0.2, is_incremental=False) == DEFAULT_PACE


def test_rows_in_spans_need_no_short_first_chunk() -> None:
    pace = chunk_pace(scheduler_of(0.7), "kokoro", 1.5, is_incremental=True)
    assert pace.first_symbols == DEFAULT_PACE.first_symbols


def test_the_predicted_costs_are_those_of_the_checkpoint() -> None:
    scheduler = Scheduler(
        Limits(),
        lambda key: CostModel(SideBySide(1), (0.0, 0.0, 0.0, 0.02 if key == Key("slow", "vocoder") else 1e-5)),
        Deadline(),
    )
    slow, fast = (chunk_pace(scheduler, name, 1.5, is_incremental=False) for name in ("slow", "fast"))
    assert slow.first_symbols < fast.first_symbols
