"""How short chunks must be on a device of a given speed."""

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tutti.admission.refusals import Asking
from tutti.batching.cost import Coefficients, CostModel
from tutti.batching.job import FUSED_S, STAGES, Job, Key
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.playback import FIRST_SHARE, FRAME_S, FRAMES_PER_TOKEN, MAX_SECONDS, MIN_SECONDS, chunk_pace
from tutti.engine.stats import BatchStats
from tutti.errors import QueueFull
from tutti.plan.devices import DEVICES, DeviceCosts
from tutti.plan.planner import scheduler_of as scheduler_of_device
from tutti.plan.simulation import MODEL, TOKENS_PER_S, SimulatedStream, Simulation
from tutti.text.chunk import DEFAULT_PACE, ChunkPace, PhonemeWord, Pronunciation
from tutti.text.chunker import TINY_SYMBOLS, Chunker
from tutti.worker.base import Worker


def scheduler_of(seconds_per_s: float) -> Scheduler:
    """On a device that takes so long for a second of audio, all of it in the vocoder."""
    costs = {"acoustic": (1e-6, 0.0, 0.0, 0.0), "vocoder": (0.0, 0.0, 0.0, seconds_per_s * FRAME_S)}
    return Scheduler(Limits(), lambda key: CostModel(SideBySide(1), costs[key.stage]), Deadline())


@given(st.floats(0.001, 2.0), st.floats(0.05, 5.0))
def test_the_first_chunk_is_ready_before_the_target_if_that_is_possible(seconds_per_s: float, target_s: float) -> None:
    pace = chunk_pace(scheduler_of(seconds_per_s), "kokoro", target_s, 0.0, is_incremental=False)
    audio_s = pace.first_symbols * FRAMES_PER_TOKEN * FRAME_S
    assert TINY_SYMBOLS <= pace.first_symbols <= DEFAULT_PACE.first_symbols
    assert seconds_per_s * audio_s <= 1.02 * FIRST_SHARE * target_s + 1e-3 or pace.first_symbols == TINY_SYMBOLS


@given(st.floats(0.001, 2.0))
def test_a_slower_device_gets_shorter_chunks(seconds_per_s: float) -> None:
    pace = chunk_pace(scheduler_of(seconds_per_s), "kokoro", 1.5, 0.0, is_incremental=False)
    slower = chunk_pace(scheduler_of(1.5 * seconds_per_s), "kokoro", 1.5, 0.0, is_incremental=False)
    assert slower.first_symbols <= pace.first_symbols
    assert pace.seconds_per_s <= slower.seconds_per_s
    assert MIN_SECONDS <= pace.seconds_per_s <= MAX_SECONDS
    assert pace.seconds_per_s >= min(seconds_per_s, MAX_SECONDS), "never faster than the device"


def test_a_fast_device_keeps_the_default() -> None:
    assert chunk_pace(scheduler_of(0.005), "kokoro", 0.2, 0.0, is_incremental=False) == DEFAULT_PACE


def test_rows_in_spans_need_no_short_first_chunk() -> None:
    pace = chunk_pace(scheduler_of(0.7), "kokoro", 1.5, 0.0, is_incremental=True)
    assert pace.first_symbols == DEFAULT_PACE.first_symbols


# -- beside other streams ------------------------------------------------------------------------------------------


def two_cores(speed: float) -> DeviceCosts:
    """They take `speed` times the half second that those of an ordinary server take for a second of audio."""
    known = DEVICES["n1x2"]
    costs = {stage: cast(Coefficients, tuple(speed * c for c in known.coefficients[stage])) for stage in STAGES}
    return DeviceCosts("two cores", costs, cores=2, max_rows=4, target_s=1.5)


def pace_beside(scheduler: Scheduler, n_before: int = 0) -> ChunkPace:
    return chunk_pace(scheduler, MODEL, 1.5, 0.0, n_before=n_before, is_incremental=False)


def seconds(scheduler: Scheduler, n_symbols: int) -> float:
    n_frames = round(FRAMES_PER_TOKEN * n_symbols)
    return scheduler.predict(Key(MODEL, "acoustic"), n_symbols) + scheduler.predict(Key(MODEL, "vocoder"), n_frames)


def add_chunk(scheduler: Scheduler, stream: int, n_symbols: int, deadline_s: float) -> None:
    later_s = scheduler.predict(Key(MODEL, "vocoder"), round(FRAMES_PER_TOKEN * n_symbols))
    scheduler.add(Job(Key(MODEL, "acoustic"), stream, "first", n_symbols, deadline_s, later_s), 0.0)


@given(st.floats(0.5, 2.0), st.lists(st.integers(TINY_SYMBOLS, 100), max_size=6))
def test_a_first_chunk_takes_as_long_as_its_stream_waits_but_not_longer(speed: float, waiting: list[int]) -> None:
    """So nothing is cut where that would help nobody, and no stream starts later than twice its wait for that."""
    scheduler = scheduler_of_device(two_cores(speed))
    idle = pace_beside(scheduler)
    for stream, n_symbols in enumerate(waiting):
        add_chunk(scheduler, stream, n_symbols, 1.5)
    pace, wait_s = pace_beside(scheduler), scheduler.predicted_wait_s(MODEL, "first", 1.5, 0.0)
    takes_s, more_s = (seconds(scheduler, n) for n in (pace.first_symbols, pace.first_symbols + 2))
    assert idle.first_symbols <= pace.first_symbols <= DEFAULT_PACE.first_symbols
    assert pace.first_symbols == idle.first_symbols or takes_s <= wait_s + 0.05
    assert pace.first_symbols == DEFAULT_PACE.first_symbols or more_s >= wait_s - 0.05
    assert pace.seconds_per_s == idle.seconds_per_s


def test_what_is_not_due_yet_is_no_wait() -> None:
    """A new stream comes before the next chunks of one that plays."""
    scheduler = scheduler_of_device(two_cores(1.0))
    idle = pace_beside(scheduler)
    for chunk in range(2):
        add_chunk(scheduler, 0, 100, 20.0 + 7.0 * chunk)
    assert pace_beside(scheduler) == idle


def test_streams_whose_text_is_still_being_read_count() -> None:
    scheduler = scheduler_of_device(two_cores(1.0))
    lengths = [pace_beside(scheduler, n).first_symbols for n in range(4)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[1]
    assert lengths[-1] == DEFAULT_PACE.first_symbols


CUT_S = 0.5  # of silence that a chunk has at its ends: every cut makes that much more audio


def spoken(clauses: Sequence[int], pace: ChunkPace) -> list[float]:
    """Seconds of the chunks of one sentence, given by the symbols of its clauses."""
    words = tuple(PhonemeWord("a" * (n - 2), (0, 0), after=", ") for n in clauses)
    chunks = Chunker(pace=pace).chunks([(Pronunciation(words), 0.0)])
    return [CUT_S + len(chunk.phonemes) / TOKENS_PER_S for chunk in chunks]


@given(st.lists(st.lists(st.integers(8, 40), min_size=1, max_size=4), min_size=4, max_size=4), st.floats(0.5, 2.0))
@settings(deadline=None, max_examples=examples(40))
def test_four_sentences_at_once_are_never_slower_than_in_turn(texts: list[list[int]], speed: float) -> None:
    device = two_cores(speed)
    paces = [pace_beside(scheduler_of_device(device), n) for n in range(4)]

    def took_s(texts: Sequence[Sequence[int]]) -> float:
        streams = [SimulatedStream(n, 0.0, spoken(text, paces[n])) for n, text in enumerate(texts)]
        rules = scheduler_of_device(device)
        Simulation(device, rules, admission=False, ahead=3, is_paced=False, fuses=True).run(streams)
        return max(stream.done_s for stream in streams)

    assert took_s(texts) <= sum(took_s([text]) for text in texts) + FUSED_S


def test_the_predicted_costs_are_those_of_the_checkpoint() -> None:
    scheduler = Scheduler(
        Limits(),
        lambda key: CostModel(SideBySide(1), (0.0, 0.0, 0.0, 0.02 if key == Key("slow", "vocoder") else 1e-5)),
        Deadline(),
    )
    slow, fast = (chunk_pace(scheduler, name, 1.5, 0.0, is_incremental=False) for name in ("slow", "fast"))
    assert slow.first_symbols < fast.first_symbols


def test_what_another_stream_lost_beside_the_device_makes_no_chunk_longer() -> None:
    scheduler = scheduler_of_device(two_cores(1.0))
    batcher = Batcher(cast(Worker, None), scheduler, BatchStats(), clock=lambda: 0.0)
    idle = pace_beside(scheduler)
    for _ in range(20):
        batcher.loop_budget.record_delay(0.5)
    with suppress(QueueFull):
        batcher.start_delay.n_starting = 1
        batcher.check_wait(Asking(MODEL, ""), 1.5)
    assert pace_beside(scheduler) == idle
    with_delay = chunk_pace(scheduler, MODEL, 1.5, 0.0, delay_s=batcher.start_delay.seconds, is_incremental=False)
    assert with_delay.first_symbols > idle.first_symbols
