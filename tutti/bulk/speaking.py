"""Speak one shard on one device: prepare its texts, run full batches, encode each row when its last chunk is there."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from itertools import count
from typing import Any

from tutti.audio.encoder import encoder
from tutti.audio.formats import find_format
from tutti.bulk.fields import OtherColumns, TextRow, parse_row, row_id
from tutti.bulk.output import FinishedRow
from tutti.bulk.shards import ModelRow, Shard, batches
from tutti.bulk.table import RawRow
from tutti.engine.engine import Engine
from tutti.engine.row import RowAudio
from tutti.engine.stream import PreparedText
from tutti.errors import G2PUnavailable, NotReady, QueueFull, TuttiError, WorkerLost
from tutti.speech import Speech, SpeechParams, Timing, Utterance
from tutti.tasks import with_retries
from tutti.worker.base import Worker
from tutti.worker.messages import Run

log = logging.getLogger(__name__)

CALLS_AHEAD = 2  # batches at the worker, the running one included: it never waits for this process
TEXTS_AT_ONCE = 32  # prepared side by side; more takes memory, fewer may keep processes of the front end waiting
TIMEOUT_S = 600.0  # of a batch, and
ROW_TIMEOUT_S = 60.0  # for each of its rows: after it the device hangs
NOT_THE_ROW = (QueueFull, G2PUnavailable, NotReady, WorkerLost)  # tried again, then the run stops: never in the index


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """What the bytes depend on, besides the table and the model."""

    params: SpeechParams  # of rows that say nothing else
    format: str = "flac"
    sample_rate: int | None = None
    with_words: bool = False  # in the JSON of each row
    other_columns: OtherColumns = "refuse"
    max_text: int = 20_000  # characters of a row
    shard_rows: int = 512
    batch_rows: int = 64
    caller: str | None = None  # id of the key whose private voices may speak, too


class DeviceQueue:
    """One worker; a few calls wait at it, in the order in which they came."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._room = asyncio.Semaphore(CALLS_AHEAD)
        self._ids = count()

    async def speak(self, checkpoint: str, rows: Sequence[Utterance]) -> list[RowAudio | TuttiError]:
        """Run both stages; a row on which the model fails gets its error, and the others their audio."""
        async with self._room:
            return await self._run(checkpoint, rows)

    async def _run(self, checkpoint: str, rows: Sequence[Utterance]) -> list[RowAudio | TuttiError]:
        try:
            spoken = await with_retries(
                lambda: self._worker.run(
                    Run(checkpoint, "both", tuple(next(self._ids) for _ in rows), tuple(rows)),
                    TIMEOUT_S + ROW_TIMEOUT_S * len(rows),
                ),
                NOT_THE_ROW,
            )
        except NOT_THE_ROW:
            raise
        except TuttiError as exc:
            if len(rows) == 1:
                return [exc]
            log.warning("a batch of %d rows failed, its halves run apart: %s", len(rows), exc)
            middle = len(rows) // 2
            return [*await self._run(checkpoint, rows[:middle]), *await self._run(checkpoint, rows[middle:])]
        timing = Timing(0.0, 0.0, spoken.acoustic_s, spoken.vocoder_s, len(rows))
        pairs = zip(spoken.samples, spoken.durations, strict=True)
        return [RowAudio(samples, durations, timing) for samples, durations in pairs]


@dataclass(slots=True)
class RowInProgress:
    """A row of the table on its way: its text in rows for the model, and the audio of those that ran."""

    raw: RawRow
    text: TextRow | None = None
    prepared: PreparedText | None = None
    audio: dict[int, RowAudio] = field(default_factory=dict)  # by chunk
    error: TuttiError | None = None
    n_missing: int = 0

    def add(self, chunk: int, audio: RowAudio | TuttiError) -> None:
        self.n_missing -= 1
        if isinstance(audio, TuttiError):
            self.error = self.error or audio
        else:
            self.audio[chunk] = audio

    def failed(self) -> FinishedRow:
        assert self.error is not None
        return FinishedRow(self.raw.number, row_id(self.raw), error=f"{self.error.code}: {self.error.message}")


class ShardSpeaker:
    """Speaks shards on one device; a few of them at once, so that texts and files of one are made beside another."""

    def __init__(
        self,
        engine: Engine,
        device: DeviceQueue,
        options: BulkOptions,
        pool: ThreadPoolExecutor,
        on_row: Callable[[FinishedRow], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._device = device
        self._options = options
        self._pool = pool
        self._on_row = on_row
        self._texts = asyncio.Semaphore(TEXTS_AT_ONCE)

    async def speak(self, shard: Shard) -> list[FinishedRow]:
        """Every row of the shard in order, spoken or failed."""
        rows = await asyncio.gather(*(self._prepare(raw) for raw in shard.rows))
        finished: dict[int, asyncio.Task[FinishedRow]] = {}
        model_rows = [
            ModelRow(n, chunk, row.prepared.checkpoint, model_row.estimated_frames)
            for n, row in enumerate(rows)
            if row.prepared is not None
            for chunk, model_row in enumerate(row.prepared.rows)
        ]
        async with asyncio.TaskGroup() as group:

            async def run(batch: Sequence[ModelRow]) -> None:
                utterances = [_utterance(rows[each.text], each.chunk) for each in batch]
                for each, audio in zip(batch, await self._device.speak(batch[0].checkpoint, utterances), strict=True):
                    row = rows[each.text]
                    row.add(each.chunk, audio)
                    if not row.n_missing:
                        finished[each.text] = group.create_task(self._finish(row))

            for n, row in enumerate(rows):
                if not row.n_missing:  # a bad row, or nothing but pauses
                    finished[n] = group.create_task(self._finish(row))
            for batch in batches(model_rows, self._options.batch_rows):
                group.create_task(run(batch))
        return [finished[n].result() for n in range(len(rows))]

    async def _prepare(self, raw: RawRow) -> RowInProgress:
        row, options = RowInProgress(raw), self._options
        async with self._texts:
            try:
                text = row.text = parse_row(raw, options.params, options.other_columns, options.max_text)
                row.prepared = await with_retries(
                    lambda: self._engine.prepare(text.text, text.params, caller=options.caller or ""), NOT_THE_ROW
                )
                row.n_missing = len(row.prepared.rows)
            except NOT_THE_ROW:
                raise
            except TuttiError as exc:
                row.error = exc
        return row

    async def _finish(self, row: RowInProgress) -> FinishedRow:
        finished = await asyncio.get_running_loop().run_in_executor(self._pool, finish_row, row, self._options)
        self._on_row(finished)
        return finished


def _utterance(row: RowInProgress, chunk: int) -> Utterance:
    assert row.prepared is not None
    return row.prepared.rows[chunk].utterance


def finish_row(row: RowInProgress, options: BulkOptions) -> FinishedRow:
    """Join the audio of a row and encode it."""
    if row.error is not None or row.prepared is None or row.text is None:
        return row.failed()
    try:
        speech = row.prepared.speech([row.audio[chunk] for chunk in range(len(row.prepared.rows))])
        stream = encoder(options.format, sample_rate=options.sample_rate, n_samples=len(speech.samples))
        audio = stream.encode(speech.samples) + stream.flush()
    except TuttiError as exc:
        row.error = exc
        return row.failed()
    row.audio.clear()
    suffix = find_format(options.format).suffixes[0]
    facts = json.dumps(_facts(row.text, speech, stream.sample_rate, options), ensure_ascii=False).encode()
    return FinishedRow(
        row.raw.number,
        row.text.id,
        speech.duration_s,
        sha256(audio).hexdigest(),
        files=((suffix, audio), (".json", facts)),
    )


def _facts(text: TextRow, speech: Speech, sample_rate: int, options: BulkOptions) -> dict[str, Any]:
    """What stands beside the audio: the text, how it was spoken, how long it is, what could not be said."""
    defaults = SpeechParams(text.params.voice)
    shown = {each.name for each in fields(SpeechParams)} - {"pcm_volume", "with_words", "voice_names"}
    params = {
        name: value
        for name, value in asdict(text.params).items()
        if name in shown and (name == "voice" or value != getattr(defaults, name))
    }
    facts: dict[str, Any] = {"id": text.id, "text": text.text, **params}
    facts |= {"seconds": round(speech.duration_s, 6), "sample_rate": sample_rate}
    if speech.dropped:
        facts["dropped"] = list(speech.dropped)
    if speech.notices:
        facts["notices"] = list(speech.notices)
    if options.with_words:
        facts["words"] = [
            {"word": word.word, "start": round(word.start_s, 4), "end": round(word.end_s, 4), "span": word.span}
            for word in speech.words
        ]
    return facts | ({"columns": _jsonable(text.other)} if text.other else {})


def _jsonable(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))
