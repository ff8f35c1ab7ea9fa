"""From settings to an engine: model files fetched, a worker for each device, its queue and its rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path

from tutti.batching.batcher import Batcher
from tutti.batching.cost import Coefficients, Cost, Padded, Shape, SideBySide
from tutti.batching.job import Key
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.batching.stats import Stats
from tutti.batching.worker import ProcessWorker, Progress, ThreadWorker, Worker
from tutti.engine import Engine, Pace
from tutti.model import Choice, buckets, choose, load
from tutti.settings import Settings
from tutti.speech import Model
from tutti.text.g2p import G2P
from tutti.text.pool import G2PPool, G2PThread, Reader
from tutti.voices import Voices
from tutti.weights import FP32_MODEL, INT8_MODEL, Store, shown, sources, wanted

CHECKPOINT = "kokoro"
TARGET_S = {"cuda": 0.2, "cpu": 1.5}
CAP = 0.4  # of the target: the longest that a batch may keep a newcomer waiting
ROWS_PER_LANE = 2  # a lane that is done early takes the next row
CUDA_ROWS = 64

# Seconds as (at all, a row, a frame or token alone or padded, one in a lane or in the longest row), until the first
# batches are seen. Of the two machines that docs/log.md speaks of.
PRIORS: dict[tuple[str, str, str], Coefficients] = {
    ("onnx", "cpu", "acoustic"): (0.004, 0.001, 0.0006, 0.001),
    ("onnx", "cpu", "vocoder"): (0.01, 0.002, 0.0095, 0.017),
    ("torch", "cpu", "acoustic"): (0.02, 0.005, 0.002, 0.0),
    ("torch", "cpu", "vocoder"): (0.05, 0.01, 0.03, 0.0),
    ("torch", "cuda", "acoustic"): (0.003, 0.0, 3e-6, 0.0),
    ("torch", "cuda", "vocoder"): (0.002, 0.0, 6e-6, 0.0),
}


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Loads every checkpoint of one worker. A value, so that it can be sent to the worker's process."""

    home: Path
    choices: tuple[tuple[str, Choice], ...]  # by name
    threads: int

    def __call__(self) -> Mapping[str, Model]:
        store = Store(self.home)
        return {
            name: load(store.path(FP32_MODEL if choice.weights == "fp32" else INT8_MODEL), choice, self.threads)
            for name, choice in self.choices
        }


def open_engine(
    settings: Settings, *, apart: bool = False, progress: Progress = lambda _what, _done, _steps: None
) -> Engine:
    """An engine on this machine, its model files fetched first where they are missing; enter it to start it.

    `apart`: for a server. The model runs in a process of its own, which is watched, and no batch runs so long that a
    newcomer would wait for it.
    """
    choices = _choices(settings)
    store = Store(settings.home)
    with shown() as bars:
        for _, choice in choices:
            store.ensure(wanted(choice.weights), sources=sources(offline=settings.offline), progress=bars)
    make = Checkpoints(settings.home, choices, settings.threads)
    kind = ProcessWorker if apart else ThreadWorker
    workers = [kind(make, progress=progress) for _ in range(settings.workers or 1)]
    voices = Voices(settings.home / "voices")
    return assemble(workers, dict(choices), voices, _reader(settings, apart), settings, capped=apart)


def assemble(
    workers: Sequence[Worker],
    choices: Mapping[str, Choice],
    voices: Voices,
    reader: Reader,
    settings: Settings,
    *,
    capped: bool,
) -> Engine:
    """The parts, put together."""
    first = next(iter(choices.values()))
    target_s = TARGET_S[first.device] if settings.first_audio_ms is None else settings.first_audio_ms / 1000
    rows = settings.max_batch_size or (CUDA_ROWS if first.device == "cuda" else ROWS_PER_LANE * settings.threads)
    limits = Limits(
        max_rows=rows if settings.batching else 1,
        max_padded={} if settings.max_batch_frames is None else {"vocoder": settings.max_batch_frames},
        max_text=settings.max_batch_text,
        max_waiting=settings.max_queue,
        cap_s=CAP * target_s if capped else inf,
    )
    books = Stats()
    batchers = [
        Batcher(worker, Scheduler(limits, _costs(choices, settings.threads), _policy(settings, limits)), books)
        for worker in workers
    ]
    pace = Pace(target_s=target_s, whole_ahead=max(2, limits.max_rows), first_chunks=settings.stream_bypass_chunks)
    return Engine(batchers, voices, reader, books, checkpoints=tuple(choices), pace=pace)


def _choices(settings: Settings) -> tuple[tuple[str, Choice], ...]:
    chosen = choose(settings.backend, settings.device, settings.precision, settings.compile)
    extra = [choose("auto", settings.device, name, "off") for name in settings.extra_precisions]  # type: ignore[arg-type]
    return ((CHECKPOINT, chosen), *((f"{CHECKPOINT}-{choice.precision}", choice) for choice in extra))


def _costs(choices: Mapping[str, Choice], threads: int) -> Callable[[Key], Cost]:
    """One for each checkpoint and stage, made when first asked for."""
    costs: dict[Key, Cost] = {}

    def cost(key: Key) -> Cost:
        if key not in costs:
            choice = choices[key.checkpoint]
            shape: Shape = SideBySide(threads)
            if choice.backend == "torch":
                plan = buckets.PLANS[choice.compile]
                shapes = plan.tokens if key.stage == "acoustic" else plan.frames
                shape = Padded(shapes.ladder.fit, shapes.rows)
            costs[key] = Cost(shape, PRIORS[choice.backend, choice.device, key.stage])
        return costs[key]

    return cost


def _policy(settings: Settings, limits: Limits) -> Policy:
    early_rows = max(1, ceil(settings.early_fire * limits.max_rows))
    max_wait_s, min_wait_s = settings.max_wait_ms / 1000, settings.min_wait_ms / 1000
    match settings.policy:
        case "deadline":
            return Deadline(limits.cap_s)
        case "fifo":
            return Fifo()
        case "window":
            return Window(max_wait_s=max_wait_s, min_wait_s=min_wait_s, early_rows=early_rows)
        case "bypass":
            return Bypass(max_wait_s=max_wait_s, min_wait_s=min_wait_s, early_rows=early_rows)


def _reader(settings: Settings, apart: bool) -> Reader:
    if settings.g2p_url is None:
        pronounce = G2P(settings.home).pronounce
        return G2PPool(pronounce) if apart else G2PThread(pronounce)
    from tutti.text.g2p.remote import RemoteG2P

    return G2PThread(RemoteG2P(settings.g2p_url, settings.g2p_timeout_s).pronounce)
