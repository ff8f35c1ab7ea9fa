"""The training data: rows that can be spoken, and a pool that returns what was put into it."""

import numpy as np
import torch

from tests.training.fakes import WORDS, example, silent_voices
from training.pool import Pool
from training.rows import HELD_OUT, MAX_SPEED, MIN_SPEED, RowSource, VoiceTables, held_out_rows
from tutti.model.light.signal import HOP
from tutti.model.validation import check_utterances
from tutti.text.vocab import SYMBOLS

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


def test_a_segment_is_a_part_of_its_row_and_silent_outside() -> None:
    pool = Pool(30, CPU)
    rows = [example(30, 1), example(200, 2)]
    assert pool.add(rows)
    segments = pool.draw(50, n_steps=40, context=6)
    assert segments.features.shape == (50, 52, 512)
    n_short = 0
    for i in range(50):
        row = next(row for row in rows if torch.equal(row.timbre, segments.timbre[i]))
        valid = segments.valid[i, :, 0].bool()
        first = int(valid.nonzero()[0])
        n = int(valid.sum())
        places = [at for at in range(len(row.f0) - n + 1)
                  if torch.equal(row.features[at : at + n].float(), segments.features[i, valid])]  # fmt: skip
        assert len(places) == 1
        (at,) = places
        assert first <= 6
        assert not segments.features[i, ~valid].any()
        wave = torch.zeros(52 * HOP)
        wave[first * HOP : (first + n) * HOP] = row.samples[at * HOP : (at + n) * HOP].float()
        torch.testing.assert_close(segments.samples[i], wave[6 * HOP : 46 * HOP])
        n_short += n == 30
    assert 0 < n_short < 25, "the short row is drawn, by its length"


def test_a_full_pool_takes_no_more() -> None:
    pool = Pool(2, CPU)
    assert pool.add([example(100, 1)])
    assert not pool.add([example(50, 2), example(50, 3)])
    assert (pool.n_rows, pool.n_steps) == (2, 150)
