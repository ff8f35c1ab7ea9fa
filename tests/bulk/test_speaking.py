"""A shard is spoken in fixed batches; a row on which the model fails does not take others with it."""

import asyncio
import io
import json
import tarfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.fakes import FailingModel, RecordingModel, has_token, silent_voices, tone_engine
from tutti.audio.encoder import encoder
from tutti.bulk.output import FinishedRow, OutputFolder
from tutti.bulk.shards import Shard
from tutti.bulk.speaking import NOT_THE_ROW, BulkOptions, DeviceQueue, ShardSpeaker
from tutti.bulk.table import RawRow
from tutti.engine.engine import Engine
from tutti.errors import G2PUnavailable, QueueFull, TuttiError
from tutti.speech import Speech, SpeechParams
from tutti.tasks import with_retries
from tutti.text import vocab

PARAMS = SpeechParams("af_heart", pcm_volume=1.0)


def shard(*rows: dict[str, Any]) -> Shard:
    return Shard(0, tuple(RawRow(n, row, 1) for n, row in enumerate(rows)))


def speak(engine: Engine, work: Shard, **options: Any) -> list[FinishedRow]:
    async def run() -> list[FinishedRow]:
        async with engine:
            with ThreadPoolExecutor(2) as pool:
                device = DeviceQueue(engine.batchers[0].worker)
                return await ShardSpeaker(engine, device, BulkOptions(PARAMS, **options), pool).speak(work)

    return asyncio.run(run())


def test_batches_are_full_and_of_similar_length(tmp_path: Path) -> None:
    model = RecordingModel()
    rows = speak(
        tone_engine(silent_voices(tmp_path), lambda: model),
        shard(*({"text": "a" * n + "."} for n in (5, 50, 10, 40, 20, 30, 1))),
        batch_rows=3,
    )
    lengths = [[row.n_frames for row in call] for call in model.vocoder_calls]
    assert [len(call) for call in lengths] == [3, 3, 1]
    flat = [length for call in lengths for length in call]
    assert flat == sorted(flat, reverse=True)
    assert [row.number for row in rows] == list(range(7))
    assert not any(row.error for row in rows)


def test_a_row_is_the_same_audio_that_the_engine_speaks(tmp_path: Path) -> None:
    text = "One sentence here. " * 30 + "[pause:0.5s] The end."
    engine = tone_engine(silent_voices(tmp_path))
    (row,) = speak(engine, shard({"id": "x", "text": text, "speed": 1.1}), format="wav", with_words=True)

    async def directly() -> Speech:
        async with tone_engine(engine.voices) as other:
            return await other.speak(text, SpeechParams("af_heart", speed=1.1, pcm_volume=1.0))

    (_, audio), (_, facts) = row.files
    speech = asyncio.run(directly())
    stream = encoder("wav", n_samples=len(speech.samples))
    assert audio == stream.encode(speech.samples) + stream.flush()
    stored = json.loads(facts)
    times = [(word.word, word.start_s, word.end_s) for word in speech.words]
    assert [(word["word"], word["start"], word["end"]) for word in stored["words"]] == [
        (word, pytest.approx(start_s, abs=1e-4), pytest.approx(end_s, abs=1e-4)) for word, start_s, end_s in times
    ]
    assert stored["id"] == "x"
    assert stored["text"] == text
    assert stored["speed"] == 1.1
    assert stored["seconds"] == pytest.approx((len(audio) - 44) / 48000, abs=1e-6)


def test_the_row_on_which_the_model_fails_is_alone_in_failing(tmp_path: Path) -> None:
    bad = int(vocab.encode("z")[1])
    engine = tone_engine(silent_voices(tmp_path), lambda: FailingModel(lambda rows: has_token(rows, bad)))
    rows = speak(engine, shard(*({"text": text} for text in ("one", "two", "zebra", "four", "five"))))
    assert [bool(row.error) for row in rows] == [False, False, True, False, False]
    assert rows[2].error.startswith("model_failed: ")
    assert rows[2].files == ()


def attempts(*errors: TuttiError) -> Callable[[], Awaitable[str]]:
    left = list(errors)

    async def attempt() -> str:
        if left:
            raise left.pop(0)
        return "spoken"

    return attempt


def test_what_is_not_the_rows_fault_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.tasks.RETRY_WAIT_S", 0.0)
    full = [QueueFull("full", retry_after_s=0.0)] * 20
    assert asyncio.run(with_retries(attempts(*full, G2PUnavailable("gone")), NOT_THE_ROW)) == "spoken"
    with pytest.raises(G2PUnavailable):  # the run stops, and can be resumed: it is in no index
        asyncio.run(with_retries(attempts(*[G2PUnavailable("gone")] * 5), NOT_THE_ROW))


def test_a_queue_that_was_full_is_in_no_index(tmp_path: Path) -> None:
    engine = tone_engine(silent_voices(tmp_path))
    prepare, refusals = engine.prepare, [QueueFull("full", retry_after_s=0.0)] * 3

    async def sometimes_full(text: str, params: SpeechParams, **who: str) -> Any:
        if refusals:
            raise refusals.pop()
        return await prepare(text, params, **who)

    engine.prepare = sometimes_full  # type: ignore[method-assign]
    rows = speak(engine, shard({"text": "one"}, {"text": "two"}))
    assert not refusals
    assert [row.error for row in rows] == ["", ""]


def test_a_shard_is_done_when_its_index_is_there(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.create()
    rows = [
        FinishedRow(0, "a", 1.5, "hash", files=((".flac", b"audio"), (".json", b"{}"))),
        FinishedRow(1, "../../b", error="invalid_input: no"),
    ]
    assert not folder.is_done("000000")
    assert folder.write_shard("000000", rows).n_failed == 1
    assert folder.is_done("000000")
    with tarfile.open(tmp_path / "shards" / "000000.tar") as tar:
        members = [(each.name, each.mtime, each.uid, each.mode) for each in tar]
        assert members == [("000000000.flac", 0, 0, 0o644), ("000000000.json", 0, 0, 0o644)]
    total = folder.write_whole_index(1, 2)
    assert (total.n_rows, total.n_failed, total.audio_s) == (2, 1, 1.5)
    good, bad = pq.read_table(tmp_path / "index.parquet").to_pylist()
    assert good["file"] == "000000000.flac"
    assert (bad["id"], bad["status"], bad["file"], bad["error"]) == ("../../b", "failed", None, "invalid_input: no")
    with pytest.raises(TuttiError, match="2 rows, but the table 3"):
        folder.write_whole_index(1, 3)


def test_what_a_killed_run_left_behind_is_removed(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.create()
    left = tmp_path / "shards" / ".000000.tar.0123.partial"
    left.write_bytes(io.BytesIO(b"half").getvalue())
    folder.create()
    assert not left.exists()
