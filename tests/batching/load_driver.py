"""Run a load through the real engine on a virtual clock, with a simulated worker, and write down what is decided.

All that the recorded loads know of the parts of the engine is in this file: when these parts change, it changes with
them, and no record does.
"""

import asyncio
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.virtual import VirtualLoop
from tests.batching.loads import PAUSE, Device, Load, Request, S
from tests.fakes import silent_voices, spoken_with
from tutti.admission.refusals import Refusals
from tutti.admission.ticket import Ticket
from tutti.batching.cost import CostModel
from tutti.batching.job import Key, StageName
from tutti.batching.layout import Layout, Regrouped, SideBySide
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.engine import Engine
from tutti.engine.playback import Pacing
from tutti.engine.request import StreamRequest
from tutti.engine.row import Row, RowAudio
from tutti.engine.stats import BatchStarted, BatchStats, EventLog
from tutti.errors import DeviceFull, ModelFailed, QueueFull, RowsLost, TuttiError, WorkerLost
from tutti.model.protocol import Ran
from tutti.model.spans import SpanRules
from tutti.plan.simulation import Padded
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Samples, Speech, Utterance
from tutti.text import vocab
from tutti.text.chunk import Chunk, PhonemeWord
from tutti.text.frontend import DueTime, never
from tutti.text.g2p_messages import OpenText
from tutti.worker.messages import FrameRange, Run, Status

FAILS, KILLS = (int(vocab.encode(letter)[1]) for letter in "fj")  # tokens that no other row has
SPANS = SpanRules(first=14, min_row=60, context=15, once=0.34)
CAP = 0.4  # of the target
WAIT_S, QUIET_S, EARLY_ROWS = 0.05, 0.002, 6  # of `window` and `bypass`
RESTART = 120_000  # microseconds until a worker that died runs again
BESIDE = 140  # percent of its time that a batch takes which starts beside another
ON_ONE_CORE = 175  # percent of the time of a row alone on all cores
PAUSE_S = 0.7
ENOUGH_SYMBOLS = 50  # a chunk that has so many ends with its sentence


def replay(load: Load) -> list[str]:
    """Run a load to its end; return what was decided, an event a line, with the microseconds since its start."""
    loop = VirtualLoop()
    real, time.monotonic = time.monotonic, loop.time
    try:
        with tempfile.TemporaryDirectory() as folder:
            return loop.run_until_complete(_Run(load, Path(folder)).lines_of_all())
    finally:
        time.monotonic = real
        loop.close()


class _Run:
    """One load, its engine and its record."""

    def __init__(self, load: Load, folder: Path) -> None:
        self.load = load
        self.lines: list[str] = []
        self.workers = [_Worker(load, self.note) for _ in range(load.workers)]
        self.engine = self._engine(folder)

    def _engine(self, folder: Path) -> Engine:
        load, device, target_s = self.load, self.load.device, self.load.device.target / S
        limits = Limits(
            max_rows=device.max_rows,
            max_padded={} if load.max_frames is None else {"vocoder": load.max_frames},
            max_text=load.max_text,
            max_waiting=load.max_waiting,
            cap_s=CAP * target_s,
            timeout_s=load.timeout / S,
        )
        window = {"max_wait_s": WAIT_S, "min_wait_s": QUIET_S, "early_rows": EARLY_ROWS}
        policies: dict[str, Policy] = {
            "deadline": Deadline(limits.cap_s, can_prefetch=device.prefetches),
            "fifo": Fifo(),
            "window": Window(**window),  # type: ignore[arg-type]
            "bypass": Bypass(**window),  # type: ignore[arg-type]
        }
        stats = BatchStats(events=_Events(self))
        batchers, refusals = [], Refusals()
        for number, worker in enumerate(self.workers):
            costs = {Key(name, stage): _cost(device, stage) for name in load.models for stage in _UNITS}
            scheduler = Scheduler(limits, costs.__getitem__, policies[load.policy], refusals)
            batchers.append(_Batcher(self.note, worker, scheduler, stats, name=str(number), clock=time.monotonic))
        return Engine(
            batchers,
            silent_voices(folder),
            _Texts(load.reading),
            stats,
            checkpoints=load.models,
            pacing=Pacing(target_s, whole_target_s=5.0, whole_ahead=6, span_rules=dict.fromkeys(load.light, SPANS)),
            policies=policies,
        )

    async def lines_of_all(self) -> list[str]:
        loop = asyncio.get_running_loop()
        async with self.engine:
            for at, policy in self.load.switches:
                loop.call_at(at / S, self._switch, policy)
            for at, number in self.load.deaths:
                loop.call_at(at / S, self.workers[number].die)
            async with asyncio.TaskGroup() as group:
                for number, request in enumerate(self.load.requests):
                    group.create_task(self._ask(number, request))
        assert not any(worker.rows for worker in self.workers), "rows that ended leave no frames"
        return self.lines

    def note(self, line: str) -> None:
        self.lines.append(f"{_us(_now())} {line}")

    def _switch(self, policy: str) -> None:
        self.note(f"policy {policy}")
        self.engine.monitor.use(policy)

    async def _ask(self, number: int, request: Request) -> None:
        """One client, from its request to the end of its stream."""
        await asyncio.sleep(request.at / S)
        heard = _Heard()
        try:
            async with asyncio.timeout(None if request.leaves is None else request.leaves / S):
                async with aclosing(self._stream(number, request)) as speeches:
                    await heard.listen(speeches, request)
            how = "done"
        except TimeoutError:
            how = "left"
        except QueueFull as refusal:
            how = f"{type(refusal).__name__}, retry in {refusal.retry_after_s:.1f} s"
        except TuttiError as error:
            how = type(error).__name__
        self.note(f"end {number}: {how}; {heard}")

    def _stream(self, number: int, request: Request) -> AsyncGenerator[Speech]:
        ticket = Ticket(
            request.caller,
            request.delivery,
            arrived_s=None if request.has_arrived is None else (request.at - request.has_arrived) / S,
            max_start_s=None if request.max_start is None else request.max_start / S,
        )
        text = f"{'. '.join(request.text)}." if request.writes is None else _written(request.text, request.writes)
        params = spoken_with(model=request.model, seed=number, speed=request.speed, with_words=False)
        return self.engine.stream(StreamRequest(text, params, ticket))


class _Heard:
    """What a client got."""

    def __init__(self) -> None:
        self.asked_s = self.starts_s = _now()
        self.first = ""
        self.n_pieces = self.n_samples = 0

    def __str__(self) -> str:
        return f"{self.n_pieces} pieces, {self.n_samples / SAMPLES_PER_FRAME:g} frames{self.first}"

    async def listen(self, speeches: AsyncIterator[Speech], request: Request) -> None:
        async for speech in speeches:
            self.first = self.first or f", first after {_us(_now() - self.asked_s)}"
            self.n_pieces, self.n_samples = self.n_pieces + 1, self.n_samples + len(speech.samples)
            self.starts_s = max(self.starts_s, _now())
            if self.n_pieces == request.takes:
                raise TimeoutError
            if not request.reads_on:
                await asyncio.sleep(self.starts_s - _now())
            self.starts_s += len(speech.samples) / SAMPLE_RATE


async def _written(sentences: Sequence[str], every: int) -> AsyncIterator[str | None]:
    """A text that is being written, a sentence at a time."""
    for sentence in sentences:
        yield f"{sentence}. "
        yield None
        await asyncio.sleep(every / S)


class _Texts:
    """A text front end that reads one chunk after the other. A chunk is a sentence, several short ones, or a part."""

    ready = True

    def __init__(self, reading: int) -> None:
        self._reading = reading
        self._turn = asyncio.Lock()

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def chunks(self, opened: OpenText, due_s: DueTime = never) -> AsyncGenerator[Chunk]:
        text, pace = opened.text, opened.pace
        later_symbols = min(pace.joined_symbols, int(110 / pace.seconds_per_s))
        start = end = 0
        most = pace.first_symbols
        for word in [*text.split(), ""]:
            symbols = text[start:end]
            if symbols.strip() == f"{PAUSE}.":
                yield Chunk((), PAUSE_S)
                start = end
            elif symbols and (word in ("", f"{PAUSE}.") or end + len(word) - start > most or _is_enough(symbols)):
                async with self._turn:
                    await asyncio.sleep((self._reading + 3 * len(symbols)) / S)
                yield Chunk((PhonemeWord(symbols.strip(), (start, end), after=""),))
                start, most = end, later_symbols
            end = text.find(word, end) + len(word)


def _is_enough(symbols: str) -> bool:
    return symbols.endswith(".") and len(symbols) >= ENOUGH_SYMBOLS


class _Batcher(Batcher):
    """Notes which streams are accepted, and how much later than in time they may start."""

    def __init__(self, note: Callable[[str], None], *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._note = note

    def speak(self, row: Row) -> asyncio.Future[RowAudio]:
        future = super().speak(row)
        if row.starts_stream:
            late = f" to start {_us(row.playback.extra_s)} late" if row.playback.starts_late else ""
            self._note(f"accept {row.utterance.seed}{late}")
        return future


class _Events(EventLog):
    """Notes each batch when it starts to run."""

    def __init__(self, run: _Run) -> None:
        super().__init__(clock=time.monotonic)
        self._run = run

    def add(self, event: Any) -> None:
        # The second stage of a call that ran both is reported when the call has ended.
        if isinstance(event, BatchStarted) and event.at_s == _now():
            batch, worker = event.batch, f" worker {event.worker}" if len(self._run.workers) > 1 else ""
            call = self._run.workers[int(event.worker)].next_call(batch.key.stage)
            late = ("~" if job.starts_late else "" for job in batch.jobs)
            rows = " ".join(name + mark for name, mark in zip(call.names, late, strict=True))
            ahead = f", sent {_us(event.at_s - call.sent_s)} ahead" if call.sent_s < event.at_s else ""
            self._run.note(f"{batch.key.checkpoint} {call.kind}{worker}, {batch.reason}{ahead}: {rows}")


# -- the device ----------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Rows that run together, padded to the same length."""

    members: tuple[int, ...]
    length: int

    @property
    def padded(self) -> int:
        return len(self.members) * self.length


def _split(sizes: Sequence[int]) -> list[_Part]:
    """Group rows whose lengths, rounded up, are equal."""
    groups: dict[int, list[int]] = {}
    for row, size in enumerate(sizes):
        groups.setdefault(-(-size // 64) * 64, []).append(row)
    return [_Part(tuple(rows), length) for length, rows in groups.items()]


_UNITS: Mapping[StageName, Callable[[Device], int]] = {"acoustic": lambda d: d.token, "vocoder": lambda d: d.frame}


def _layout(device: Device, stage: StageName) -> Layout:
    if device.layout == "side by side":
        return SideBySide(device.cores if stage == "vocoder" else 1)
    return Padded() if device.layout == "padded" else Regrouped(_split)


def _microseconds(device: Device, stage: StageName, sizes: Sequence[int]) -> int:
    """What a batch takes."""
    unit, cores = _UNITS[stage](device), device.cores if stage == "vocoder" else 1
    if device.layout == "padded":
        return device.call + unit * len(sizes) * max(sizes)
    if device.layout == "regrouped":
        return device.call + unit * sum(part.padded for part in _split(sizes))
    if len(sizes) == 1 or cores == 1:
        return device.call + unit * sum(sizes)
    work = [0] * cores
    for size in sorted(sizes, reverse=True):  # the longest first, each on the core that is free first
        work[work.index(min(work))] += unit * size * ON_ONE_CORE // 100
    return device.call + max(work)


def _cost(device: Device, stage: StageName) -> CostModel:
    """What the scheduler expects after a warm-up."""
    cost = CostModel(_layout(device, stage), (0.01, 0.0, 1e-5, 1e-5))
    sweep = [[size] * n for size in (20, 100, 300) for n in (1, 2, 8) if n <= device.max_rows]
    cost.seed((sizes, _microseconds(device, stage, sizes) / S) for sizes in sweep)
    return cost


@dataclass(eq=False)
class _Call:
    kind: str  # acoustic, vocoder or both
    utterances: Sequence[Utterance]  # none for the vocoder
    ids: Sequence[int]
    spans: Mapping[int, FrameRange]
    names: Sequence[str]  # of its rows
    sent_s: float
    future: asyncio.Future[Any]


class _KeptRow(NamedTuple):
    """What a worker holds of a row between its stages."""

    durations: NDArray[np.int64]
    tokens: frozenset[int]
    n_frames: int


class _Worker:
    """Takes the time of its device, holds rows between their stages, fails and dies as rows and load say.

    Calls run one after the other; where stages overlap, the acoustic ones beside the others.
    """

    def __init__(self, load: Load, note: Callable[[str], None]) -> None:
        self.rows: dict[int, _KeptRow] = {}
        self._load, self._device, self._note = load, load.device, note
        self._names: dict[int, str] = {}  # of rows: the number of the request, and of the row in it
        self._n_rows: Counter[int | None] = Counter()  # of each request
        self._calls: dict[str, deque[_Call]] = {"acoustic": deque(), "vocoder": deque()}  # the first of each runs
        self._timers: dict[str, asyncio.TimerHandle] = {}  # of those that run
        self._sent: dict[str, deque[_Call]] = {"acoustic": deque(), "vocoder": deque()}  # not reported, by stage
        self._forgotten: set[int] = set()
        self._starts_s = 0.0  # when it runs again after its death

    def die(self) -> None:
        """Lose all rows and the calls that run; those behind them run when it has started again."""
        self._note("the worker dies")
        self.rows.clear()
        self._starts_s = _now() + RESTART / S
        for timer in self._timers.values():
            timer.cancel()
        running = list(self._timers)
        self._timers.clear()
        for lane in running:
            _answer(self._calls[lane].popleft(), WorkerLost("the worker died"))
        for lane in self._calls:
            self._begin(lane)

    def next_call(self, stage: StageName) -> _Call:
        """The call of the batch of this stage that starts now: the first one that was not taken back."""
        sent = self._sent[stage]
        while sent[0].future.cancelled():
            sent.popleft()
        return sent.popleft()

    # The protocol of workers:

    @property
    def status(self) -> Status:
        return Status("ready" if _now() >= self._starts_s else "restarting", stages_overlap=self._device.overlaps)

    async def start(self) -> None: ...

    async def wake(self) -> None: ...

    async def close(self) -> None: ...

    async def unload(self) -> bool:
        return False

    def forget(self, ids: Sequence[int]) -> None:
        self._forgotten.update(ids)
        self._drop_forgotten()

    def run(self, run: Run, timeout_s: float) -> asyncio.Future[Ran]:
        kind, spans = run.stages, run.spans
        for id, utterance in zip(run.ids, run.utterances, strict=kind != "vocoder"):
            if id not in self._names:
                self._names[id] = f"{utterance.seed}.{self._n_rows[utterance.seed]}"
                self._n_rows[utterance.seed] += 1
        names = [self._names[id] + (f"[{spans[id][0]}-{spans[id][1]}]" if id in spans else "") for id in run.ids]
        future = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        call = _Call(kind, run.utterances, run.ids, spans, names, _now(), future)
        self._sent["vocoder" if kind == "vocoder" else "acoustic"].append(call)
        lane = "acoustic" if self._device.overlaps and kind == "acoustic" else "vocoder"
        self._calls[lane].append(call)
        self._begin(lane)
        return future

    def _begin(self, lane: str) -> None:
        """Run the first call of a lane that nobody has taken back, if none runs there."""
        calls = self._calls[lane]
        while calls and lane not in self._timers and calls[0].future.cancelled():
            calls.popleft()
        if not calls or lane in self._timers:
            return
        percent = next((percent for at, percent in reversed(self._load.speeds) if at <= _us(_now())), 100)
        percent = percent * BESIDE // 100 if self._timers else percent
        result, acoustic, vocoder = self._result(calls[0])
        acoustic_s, vocoder_s = (percent * each // 100 / S for each in (acoustic, vocoder))
        if isinstance(result, Ran):
            result = result._replace(acoustic_s=acoustic_s, vocoder_s=vocoder_s)
        ends_s = max(_now(), self._starts_s) + acoustic_s + vocoder_s
        self._timers[lane] = asyncio.get_running_loop().call_at(ends_s, self._end, lane, result)

    def _end(self, lane: str, result: Any) -> None:
        call = self._calls[lane][0]
        if call.kind != "acoustic" and any(KILLS in row.tokens for row in self._rows_of(call)):
            self.die()
            return
        del self._timers[lane]
        self._calls[lane].popleft()
        if not call.future.cancelled() and not isinstance(result, Exception):
            if call.kind == "acoustic":
                self.rows.update(zip(call.ids, self._rows_of(call), strict=True))
            if call.kind == "vocoder":
                is_last = {
                    id: call.spans.get(id, (0, row.n_frames))[1] == row.n_frames for id, row in self.rows.items()
                }
                self.rows = {id: row for id, row in self.rows.items() if id not in call.ids or not is_last[id]}
        _answer(call, result)
        self._drop_forgotten()
        self._begin(lane)

    def _rows_of(self, call: _Call) -> list[_KeptRow]:
        """The rows of a call, as far as they are here."""
        if call.kind == "vocoder":
            return [self.rows[id] for id in call.ids if id in self.rows]
        return [_kept(utterance) for utterance in call.utterances]

    def _result(self, call: _Call) -> tuple[Any, int, int]:
        """What a call answers, and the microseconds of both stages."""
        rows, acoustic = self._rows_of(call), 0
        if len(rows) < len(call.ids):
            return RowsLost("not all rows are here"), 0, 100
        if call.kind != "vocoder":
            acoustic = _microseconds(self._device, "acoustic", [len(row.durations) for row in rows])
        durations = [row.durations for row in rows]
        if call.kind == "acoustic":
            return Ran(durations), acoustic, 0
        spans = [_quiet_end(call.spans.get(id), row.n_frames) for id, row in zip(call.ids, rows, strict=True)]
        work = [_work(row.n_frames, *span) for row, span in zip(rows, spans, strict=True)]
        vocoder = _microseconds(self._device, "vocoder", work)
        if len(rows) > 1 and sum(work) > self._device.frames:
            return DeviceFull("too many frames"), acoustic, vocoder // 4
        if any(FAILS in row.tokens for row in rows):
            return ModelFailed("a row fails"), acoustic, vocoder
        samples = [_silence(end - start) for start, end in spans]
        return Ran(durations, samples), acoustic, vocoder

    def _drop_forgotten(self) -> None:
        """Forget rows after all calls that were sent before."""
        needed = {id for calls in self._calls.values() for call in calls for id in call.ids}
        for id in self._forgotten - needed:
            self.rows.pop(id, None)
        self._forgotten &= needed


def _kept(row: Utterance) -> _KeptRow:
    """A token takes 2 to 4 frames at speed 1."""
    durations = np.maximum(1, (2 + row.tokens % 3) * 100 // round(100 * row.speed))
    return _KeptRow(durations, frozenset(row.tokens.tolist()), int(durations.sum()))


def _quiet_end(span: FrameRange | None, n_frames: int) -> FrameRange:
    """A span ends a few frames earlier, unless it is the last one."""
    start, end = span or (0, n_frames)
    return (start, end) if end == n_frames else (start, end - min((7 * end) % 11, (end - start) // 2))


def _work(n_frames: int, start: int, end: int) -> int:
    """What a span costs, in frames of a row that is made whole."""
    return n_frames if (start, end) == (0, n_frames) else SPANS.cost(n_frames, start, end)


def _silence(n_frames: int) -> Samples:
    return np.broadcast_to(np.float32(0.0), n_frames * SAMPLES_PER_FRAME)


def _answer(call: _Call, result: Any) -> None:
    if call.future.done():
        return
    if isinstance(result, Exception):
        call.future.set_exception(result)
    else:
        call.future.set_result(result)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _us(seconds: float) -> int:
    return round(S * seconds)
