"""The training data: rows that can be spoken, and a pool that returns what was put into it."""

from itertools import count

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.fakes import WORDS, HummingTeacher, example, silent_voices
from training.filling import Filling
from training.pool import Pool
from training.rows import HELD_OUT, MAX_SPEED, MIN_SPEED, RowSource, VoiceTables, held_out_rows
from training.teacher import Example
from tutti.model.light.signal import HOP
from tutti.model.validation import check_utterances
from tutti.text.vocab import SYMBOLS

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")


def spoken(tokens: np.ndarray) -> str:
    symbols = {number: symbol for symbol, number in SYMBOLS.items()}
    return "".join(symbols[token] for token in tokens[1:-1].tolist())


def test_rows_can_be_spoken_and_are_repeatable() -> None:
    rows, again = (RowSource(WORDS, silent_voices(), seed=5).take(200) for _ in range(2))
    check_utterances(rows)
    assert all(MIN_SPEED <= row.speed <= MAX_SPEED for row in rows)
    assert [row.tokens.tolist() for row in rows] == [row.tokens.tolist() for row in again]
    assert {row.prosody.pitch == 0 for row in rows} == {True, False}


def test_hard_rows_are_frequent() -> None:
    tables = np.ones((4, 510, 256), np.float32)
    voices = VoiceTables(("af_a", "am_b", "am_c", "ef_d"), tables * np.arange(1, 5, dtype=np.float32)[:, None, None])
    rows = RowSource(WORDS, voices, seed=3).take(600)
    assert np.mean([row.speed > 1.2 for row in rows]) > 0.35
    assert np.mean([row.style[0] % 1 > 0 for row in rows]) > 0.25, "blends"
    assert np.mean([len(row.tokens) < 25 for row in rows]) > 0.25
    assert np.mean([row.style[0] == 4 for row in rows]) > 0.15, "the only voice of its language"


def test_held_out_words_are_never_trained_on() -> None:
    unique = [f"b{'a' * i}d" for i in range(3 * HELD_OUT)]
    held_out = set(unique[::HELD_OUT])
    trained = RowSource({"a": unique}, silent_voices(), seed=0).take(300)
    assert not held_out & {word for row in trained for word in spoken(row.tokens).replace(",", "").split()}
    rows = held_out_rows({"e": unique}, silent_voices(), per_voice=3)
    check_utterances(rows)
    assert {spoken(row.tokens).rstrip(".").split()[0] for row in rows[3:]} <= held_out


def test_voice_tables_survive_their_archive(tmp_path) -> None:  # type: ignore[no-untyped-def]
    voices = VoiceTables(("af_a", "bm_b"), np.random.default_rng(0).normal(size=(2, 510, 256)).astype(np.float32))
    voices.write(tmp_path / "voices.npz")
    again = VoiceTables.read(tmp_path / "voices.npz")
    assert again.names == voices.names
    np.testing.assert_allclose(again.tables, voices.tables, rtol=1e-3, atol=1e-6)


def cut_at(row: Example, features: torch.Tensor) -> list[int]:
    """The places in a row at which it has these features."""
    n = len(features)
    return [at for at in range(len(row.f0) - n + 1) if torch.equal(row.features[at : at + n].float(), features)]


def test_a_segment_is_a_part_of_its_row_and_silent_outside() -> None:
    pool = Pool(30, CPU)
    rows = [example(30, 1), example(200, 2)]
    pool.add(rows)
    segments = pool.draw(50, n_steps=40, context=6)
    assert segments.features.shape == (50, 52, 512)
    n_short = 0
    for i in range(50):
        row = next(row for row in rows if torch.equal(row.timbre, segments.timbre[i]))
        valid = segments.valid[i, :, 0].bool()
        first = int(valid.nonzero()[0])
        n = int(valid.sum())
        (at,) = cut_at(row, segments.features[i, valid])
        assert first <= 6
        assert torch.equal(segments.statistics[i], row.statistics)
        assert not segments.features[i, ~valid].any()
        wave = torch.zeros(52 * HOP)
        wave[first * HOP : (first + n) * HOP] = row.samples[at * HOP : (at + n) * HOP].float()
        torch.testing.assert_close(segments.samples[i], wave[6 * HOP : 46 * HOP])
        n_short += n == 30
    assert 0 < n_short < 25, "the short row is drawn, by its length"


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(60, 120), min_size=1, max_size=3), min_size=1, max_size=15))
def test_a_full_pool_replaces_its_oldest_rows_and_never_draws_a_torn_one(batches: list[list[int]]) -> None:
    pool, seeds = Pool(10, CPU), count(1)
    rows: list[Example] = []
    for lengths in batches:
        added = [example(n, next(seeds)) for n in lengths]
        pool.add(added)
        rows += added
        segments = pool.draw(20, n_steps=8, context=2)
        for i in range(20):
            (n,) = (n for n, row in enumerate(rows) if torch.equal(row.timbre, segments.timbre[i]))
            valid = segments.valid[i, :, 0].bool()
            assert len(cut_at(rows[n], segments.features[i, valid])) == 1, "not a piece of one row"
            assert sum(len(row.f0) for row in rows[n + 1 :]) <= pool.capacity, "the row should be gone"
    assert pool.n_steps == sum(len(row.f0) for row in rows)
    assert (pool.draw(400, n_steps=1, context=0).timbre == rows[-1].timbre).all(1).any(), "the newest row is not drawn"


def test_a_teacher_that_is_too_slow_is_given_time_until_it_fails() -> None:
    def start(pace: float) -> Filling:
        source = RowSource(WORDS, silent_voices(), seed=0)
        filling = Filling(HummingTeacher(), source, Pool(60, CPU), batch=2, pace=pace)
        filling.start()
        filling.stop()
        return filling

    assert not start(0).is_behind
    slow = start(1e9)
    assert slow.is_behind
    slow.error = "the device is gone"
    assert not slow.is_behind, "nobody to wait for"


def test_a_teacher_that_is_ahead_leaves_the_device_to_the_training() -> None:
    def fill(pace: float) -> Filling:
        source = RowSource(WORDS, silent_voices(), seed=0)
        filling = Filling(HummingTeacher(), source, Pool(60, CPU), batch=2, pace=pace)
        filling.start()
        filling.fill(30)
        filling.stop()
        return filling

    assert fill(1e-3).is_ahead
    assert not fill(1e-3).is_behind
    assert not fill(1e9).is_ahead
    assert not fill(0).is_ahead, "without a pace nobody rests"
