"""Shards and batches depend on the table alone; a folder is resumed only by the run that made it."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.bulk.manifest import check_same, load_manifest, store_manifest
from tutti.bulk.run import open_folder, stored_batch_rows
from tutti.bulk.shards import ModelRow, batches, shards
from tutti.bulk.speaking import BulkOptions
from tutti.bulk.table import RawRow
from tutti.errors import InvalidInput
from tutti.speech import SpeechParams

sizes = st.lists(st.integers(0, 50), max_size=60)


@given(sizes, st.integers(1, 7), st.integers(1, 100))
def test_shards_hold_every_row_once_in_order(row_sizes: list[int], max_rows: int, max_size: int) -> None:
    rows = [RawRow(n, b"", size) for n, size in enumerate(row_sizes)]
    cut = list(shards(rows, max_rows, max_size))
    assert [row for shard in cut for row in shard.rows] == rows
    assert [shard.number for shard in cut] == list(range(len(cut)))
    for shard in cut:
        assert 1 <= len(shard.rows) <= max_rows
        assert sum(row.size for row in shard.rows[:-1]) < max_size
    for shard, _ in pairwise(cut):
        assert len(shard.rows) == max_rows or sum(row.size for row in shard.rows) >= max_size


model_rows = st.lists(
    st.builds(ModelRow, st.integers(0, 9), st.integers(0, 9), st.sampled_from("ab"), st.integers(1, 99)),
    max_size=40,
    unique_by=lambda row: (row.text, row.chunk),
)


@given(model_rows, st.integers(1, 9), st.randoms())
def test_batches_are_full_sorted_by_length_and_independent_of_the_order(
    rows: list[ModelRow], max_rows: int, random: st.DataObject
) -> None:
    grouped = batches(rows, max_rows)
    assert sorted(row for batch in grouped for row in batch) == sorted(rows)
    for batch in grouped:
        assert len({row.checkpoint for row in batch}) == 1
    for batch, following in pairwise(grouped):
        if batch[0].checkpoint == following[0].checkpoint:
            assert len(batch) == max_rows
            assert min(row.n_frames for row in batch) >= max(row.n_frames for row in following)
    shuffled = rows.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert batches(shuffled, max_rows) == grouped


OPTIONS = BulkOptions(SpeechParams("af_heart"))


def test_a_folder_is_resumed_with_the_same_input_and_options_only(tmp_path: Path) -> None:
    open_folder(tmp_path, "abc", OPTIONS, {"model": "kokoro"})
    open_folder(tmp_path, "abc", OPTIONS, {"model": "kokoro"})
    changed = BulkOptions(SpeechParams("af_heart", speed=1.2), "wav")
    with pytest.raises(InvalidInput) as refused:
        open_folder(tmp_path, "abd", changed, {"model": "kokoro"})
    message = str(refused.value)
    assert 'table.sha256 was "abc" and is "abd"' in message
    assert "options.params.speed was 1.0 and is 1.2" in message
    assert 'options.format was "flac" and is "wav"' in message
    assert "model" not in message


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("a letter")
    with pytest.raises(InvalidInput, match="not empty"):
        load_manifest(tmp_path)
    (tmp_path / "bulk.json").write_text("[")
    with pytest.raises(InvalidInput, match="cannot read"):
        load_manifest(tmp_path)


def test_a_resumed_run_keeps_its_batch_size(tmp_path: Path) -> None:
    assert stored_batch_rows(tmp_path) is None
    store_manifest(tmp_path, {"options": {"batch_rows": 24}})
    assert stored_batch_rows(tmp_path) == 24


def test_values_are_compared_as_json_stores_them(tmp_path: Path) -> None:
    now = {"pair": (1, 2), "missing": None}
    check_same(tmp_path, json.loads(json.dumps(now)), now)
