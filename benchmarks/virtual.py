"""The real engine on a virtual clock: overload and listeners on two cores in a minute, without a device or waiting.

python -m benchmarks.virtual                     every case, two seeds
python -m benchmarks.virtual --only flood        one of flood, strict, light and clients

The event loop jumps to its next timer, and the device takes seconds of that clock, so that the speed of this machine
and other work on it change nothing. Text front end and HTTP are left out, and so is what they cost. For questions
about the scheduler; what it answers has to hold on a real server (`benchmarks.flood`, `benchmarks.two_cores`).

flood:   the device of `benchmarks.flood` at 0.8, 0.9 and 2 C, and at 2 C with clients that try again three times.
strict:  2 C on a server that refuses what would start late.
light:   8 and 16 listeners of `kokoro-light` on two cores, who name their timeout.
clients: 2, 4 and 8 clients of the exact vocoder, two texts each, who name their timeout: up to four times what the
         device can speak.
"""

import asyncio
import logging
import random
import selectors
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.flood import CALL_S, FRAME_S, GAP_S, MAX_START_S, TARGET_S
from benchmarks.http_load import MAX_SENTENCES, SENTENCES
from tests.fakes import Spelling, silent_voices, spoken_with
from tutti.admission.ticket import Ticket
from tutti.client.bench import TEXTS
from tutti.engine.build import CHECKPOINT, assemble, chunk_sizes
from tutti.engine.engine import Engine
from tutti.engine.request import StreamRequest
from tutti.errors import QueueFull, TuttiError
from tutti.model.choice import Choice
from tutti.model.spans import LIGHT_SPANS, SpanRules
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Frames, Span
from tutti.text.chunk import Chunk
from tutti.text.frontend import DueTime, never
from tutti.text.g2p_messages import OpenText
from tutti.worker.base import BaseWorker, PendingCall
from tutti.worker.messages import Forget, no_progress
from tutti.worker.stage_runner import StageRunner

LIGHT = "kokoro-light"
Measure = Callable[[Engine, random.Random], Awaitable[list[list[str]]]]  # the lines of the table of one case
PATIENCE_S = 480.0  # 0.8 of the 600 s that OpenAI's SDK waits
ON_ONE_CORE = 1.75  # times the seconds of a row alone on both cores


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("nothing is left to wait for")
        self._loop.now_s += max(0.0, timeout)
        return super().select(0)


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Device:
    """Seconds of a call, of each token, and of each frame of a row alone; rows in parallel or one after the other."""

    call_s: float
    token_s: float
    frame_s: float
    span_rules: SpanRules | None = None
    n_cores: int = 1

    def acoustic_s(self, n_tokens: Sequence[int]) -> float:
        return sum(self.call_s + self.token_s * n for n in n_tokens)

    def vocoder_s(self, n_frames: Sequence[int]) -> float:
        rows_s = sorted((self.frame_s * n for n in n_frames), reverse=True)
        if self.n_cores == 1 or len(rows_s) == 1:
            return self.call_s + sum(rows_s)
        cores_s = [0.0] * self.n_cores
        for row_s in rows_s:  # the longest first, each on the core that is free first
            cores_s[cores_s.index(min(cores_s))] += ON_ONE_CORE * row_s
        return self.call_s + max(cores_s)

    def n_frames(self, row: Frames) -> int:
        """What a row or a span of it costs, in frames of a whole row."""
        if isinstance(row, Span) and self.span_rules is not None:
            return self.span_rules.cost(row.n_frames, row.start, row.end)
        return row.n_frames


# Of the log: the flood's device, and two Neoverse-N1 cores with int8 weights (0.07 and 0.47 s for a second of speech).
FLOOD = Device(CALL_S, 0.0, FRAME_S, LIGHT_SPANS)
LIGHT_ON_TWO_CORES = Device(0.004, 0.00145, 0.0013, LIGHT_SPANS, n_cores=2)
EXACT_ON_TWO_CORES = Device(0.004, 0.00145, 0.011, n_cores=2)


class VirtualWorker(BaseWorker):
    """Computes tones at once, and hands them over when its device would have made them."""

    def __init__(self, devices: dict[str, Device]) -> None:
        super().__init__(no_progress)
        self._devices = devices
        self._free_s = 0.0

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._runner = StageRunner(lambda: {name: ToneModel() for name in self._devices}, no_progress)
        self._set_status("ready")

    async def unload(self) -> bool:
        return False

    async def wake(self) -> None:
        pass

    async def close(self) -> None:
        self._closing = True

    def _enqueue(self, item: PendingCall | Forget) -> None:
        if isinstance(item, Forget):
            self._runner.forget(item.ids)
            return
        run, device = item.run, self._devices[item.run.checkpoint]
        acoustic_s = vocoder_s = 0.0
        if run.stages == "vocoder":
            rows = [self._runner.row(id, run.spans.get(id)) for id in run.ids]
            vocoder_s = device.vocoder_s([device.n_frames(row) for row in rows])
        else:
            acoustic_s = device.acoustic_s([len(utterance.tokens) for utterance in run.utterances])
        ran = self._runner.run(run)
        if run.stages == "both":
            vocoder_s = device.vocoder_s([int(durations.sum()) for durations in ran.durations])
        result = ran._replace(acoustic_s=acoustic_s, vocoder_s=vocoder_s)
        self._runner.forget_finished(run)
        self._free_s = max(self._loop.time(), self._free_s) + acoustic_s + vocoder_s
        self._loop.call_at(self._free_s, lambda: item.future.done() or item.future.set_result(result))


class TextsAtOnce:
    """A text front end that takes a millisecond of the virtual clock for each chunk."""

    ready = True

    def __init__(self, settings: Settings) -> None:
        self._sizes = chunk_sizes(settings)

    async def start(self) -> None:
        pass

    async def chunks(self, text: OpenText, due_s: DueTime = never) -> AsyncGenerator[Chunk]:
        for chunk in text.chunks(Spelling().pronounce, self._sizes):
            await asyncio.sleep(0.001)
            yield chunk

    async def close(self) -> None:
        pass


@dataclass(slots=True)
class Heard:
    """One request as its listener heard it."""

    asked_s: float
    status: int = 200
    first_s: float = inf
    gap_s: float = 0.0
    plays_until_s: float = 0.0

    def starts_within(self, seconds: float) -> bool:
        return self.status == 200 and self.first_s <= seconds + GAP_S and self.gap_s <= GAP_S


async def listen(engine: Engine, text: str, *, model: str | None = None, max_start_s: float | None = None) -> Heard:
    heard = Heard(now())
    try:
        request = StreamRequest(text, spoken_with(model=model), Ticket(max_start_s=max_start_s))
        async for speech in engine.stream(request):
            if heard.first_s == inf:
                heard.first_s, heard.plays_until_s = now() - heard.asked_s, now()
            heard.gap_s += max(0.0, now() - heard.plays_until_s)
            heard.plays_until_s = max(now(), heard.plays_until_s) + len(speech.samples) / SAMPLE_RATE
    except TuttiError as error:
        heard.status = 429 if isinstance(error, QueueFull) else 503
    return heard


def row(name: str, heard: Sequence[Heard], limit_s: float = inf) -> list[str]:
    served = [one for one in heard if one.status == 200]
    firsts_s = [one.first_s for one in served] or [0.0]
    n_heard = sum(one.starts_within(limit_s) for one in served)
    return [
        name, str(len(heard)), *(str(sum(one.status == status for one in heard)) for status in (429, 503)),
        f"{100 * n_heard / max(1, len(served)):.1f}",
        *(f"{np.percentile(firsts_s, q):.2f}" for q in (50, 99)),
        str(sum(one.gap_s > GAP_S for one in served)), f"{max((one.gap_s for one in served), default=0.0):.2f}",
    ]  # fmt: skip


async def capacity(engine: Engine, rng: random.Random, n_clients: int = 24, seconds: float = 8.0) -> float:
    """Requests a second when there is always another one, as `benchmarks.flood` measures it."""
    n_served = 0

    async def ask_on(until_s: float) -> None:
        nonlocal n_served
        while now() < until_s:
            heard = await listen(engine, rng.choice(TEXTS))
            n_served += heard.status == 200
            await asyncio.sleep(0.0 if heard.status == 200 else 0.1)

    for n in (1, n_clients, n_clients):
        n_served, until_s = 0, now() + seconds
        await asyncio.gather(*(ask_on(until_s) for _ in range(n)))
    return n_served / seconds


async def open_load(engine: Engine, rng: random.Random, rate: float, seconds: float, tries: int = 1) -> list[Heard]:
    async def ask(text: str) -> Heard:
        for n in range(1, tries + 1):
            heard = await listen(engine, text)
            if heard.status != 429 or n == tries:
                break
            await asyncio.sleep(0.5 * n * (0.5 + rng.random()))
        return heard

    tasks, until_s = [], now() + seconds
    while now() < until_s:
        await asyncio.sleep(rng.expovariate(rate))
        tasks.append(asyncio.create_task(ask(rng.choice(TEXTS))))
    return list(await asyncio.gather(*tasks))


async def flood(engine: Engine, rng: random.Random) -> list[list[str]]:
    c = await capacity(engine, rng)
    rows = [row(f"{load:g} C", await open_load(engine, rng, load * c, 30.0), MAX_START_S) for load in (0.8, 0.9, 2.0)]
    return [*rows, row("2 C, retried 3x", await open_load(engine, rng, 2 * c, 20.0, tries=4), MAX_START_S)]


async def strict(engine: Engine, rng: random.Random) -> list[list[str]]:
    c = await capacity(engine, rng)
    return [row("2 C, strict", await open_load(engine, rng, 2 * c, 30.0), TARGET_S)]


async def at_once(n: int, does: Callable[[], Awaitable[list[Heard]]]) -> list[Heard]:
    return [heard for each in await asyncio.gather(*(does() for _ in range(n))) for heard in each]


def random_text(rng: random.Random) -> str:
    return " ".join(rng.sample(SENTENCES, rng.randint(1, MAX_SENTENCES)))


def playing(n: int) -> Measure:
    """Listeners who ask for the next text when they have heard the last one."""

    async def measure(engine: Engine, rng: random.Random) -> list[list[str]]:
        until_s = now() + 60.0

        async def play() -> list[Heard]:
            heard: list[Heard] = []
            while now() < until_s:
                heard.append(one := await listen(engine, random_text(rng), model=LIGHT, max_start_s=PATIENCE_S))
                await asyncio.sleep(max(0.5, min(one.plays_until_s, until_s) - now()))
            return heard

        return [row(f"{n} listeners, light", await at_once(n, play))]

    return measure


def asking(n: int) -> Measure:
    """Clients who ask for two texts, one after the other."""

    async def measure(engine: Engine, rng: random.Random) -> list[list[str]]:
        async def ask() -> list[Heard]:
            return [await listen(engine, random_text(rng), max_start_s=PATIENCE_S) for _ in range(2)]

        return [row(f"{n} clients, exact", await at_once(n, ask))]

    return measure


def on_flood_device(measure: Measure, seed: int, **chosen: Any) -> list[list[str]]:
    settings = Settings(**{"threads": 2, "first_audio_ms": 1000 * TARGET_S, "max_batch_size": 16, **chosen})
    return run(
        {CHECKPOINT: FLOOD}, {CHECKPOINT: Choice("onnx", "cpu", "fp32", vocoder="light")}, settings, measure, seed
    )


def on_two_cores(measure: Measure, seed: int) -> list[list[str]]:
    devices = {CHECKPOINT: EXACT_ON_TWO_CORES, LIGHT: LIGHT_ON_TWO_CORES}
    choices = {CHECKPOINT: Choice("onnx", "cpu", "int8"), LIGHT: Choice("onnx", "cpu", "int8", vocoder="light")}
    return run(devices, choices, Settings(threads=2), measure, seed)


def run(
    devices: dict[str, Device],
    choices: dict[str, Choice],
    settings: Settings,
    measure: Measure,
    seed: int,
) -> list[list[str]]:
    """Run a case with an engine of its own; it learns the costs of its device first."""
    loop = VirtualLoop()
    real, time.monotonic = time.monotonic, loop.time

    async def with_engine() -> list[list[str]]:
        worker = VirtualWorker(devices)
        frontend: Any = TextsAtOnce(settings)
        voices = silent_voices(Path(folder))
        engine = assemble([worker], choices, voices, frontend, settings, capped=True, clock=loop.time)
        async with engine:
            for model in [*choices] * 3:
                await listen(engine, "This one is not measured.", model=model)
            return await measure(engine, random.Random(seed))

    try:
        with tempfile.TemporaryDirectory() as folder:
            return loop.run_until_complete(with_engine())
    finally:
        time.monotonic = real
        loop.close()


def main(
    only: Annotated[list[str] | None, typer.Option(help="A case; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each case.")] = 2,
) -> None:
    """Print a table."""
    logging.disable(logging.WARNING)
    cases: dict[str, Callable[[int], list[list[str]]]] = {
        "flood": lambda seed: on_flood_device(flood, seed),
        "strict": lambda seed: on_flood_device(strict, seed, max_start_s=0.0),
        "light": lambda seed: on_two_cores(playing(8), seed) + on_two_cores(playing(16), seed),
        "clients": lambda seed: [line for n in (2, 4, 8) for line in on_two_cores(asking(n), seed)],
    }
    columns = ("case", "asked", "429", "503", "heard, %", "first p50, s", "p99", "with gaps", "longest, s")
    table = Table(*columns, title="heard: of the served, in time and without a gap")
    for name in only or cases:
        for seed in range(1, seeds + 1):
            for line in cases[name](seed):
                table.add_row(*line)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
