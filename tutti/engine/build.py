"""From settings to an engine: model files fetched, a worker for each device, its queue and its rules."""

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.batching.cost import Coefficients, CostModel, file_name
from tutti.batching.job import Key, StageName
from tutti.batching.layout import Layout, Regrouped, SideBySide
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import PATIENCE, Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.engine import Engine
from tutti.engine.request import Pacing
from tutti.engine.stats import BatchStats
from tutti.engine.warmup import WarmUp
from tutti.model import buckets
from tutti.model.choice import Choice, choose, load
from tutti.model.onnx.incremental.spans import INCREMENTAL_PRECISIONS
from tutti.speech import Model, Utterance
from tutti.text import vocab
from tutti.text.frontend import G2PPool, G2PThread, TextFrontend
from tutti.text.g2p import G2P
from tutti.text.lexicon_file import LexiconFile
from tutti.voices import Voices
from tutti.weights import FP32_MODEL, MODELS, Store, required_files, show_progress, sources
from tutti.worker.base import Worker
from tutti.worker.messages import Progress
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker

if TYPE_CHECKING:
    from tutti.settings import Settings

CHECKPOINT = "kokoro"
TARGET_S = {"cuda": 0.2, "cpu": 1.5}
CAP = 0.4  # of the target: the longest that a batch may keep a newcomer waiting
ROWS_PER_LANE = 2  # a lane that is done early takes the next row
CUDA_ROWS = 64
MAX_PADDED = 120_000  # frames: beyond this the PyTorch backend would cut on its own
SWEEPS = {"cuda": (1, 4, 16, 64), "cpu": (1, 2)}  # rows together in the warm-up
SENTENCE = "həlˈO ðˈɛɹ, wˈɜɹld."
WEIGHTS = FP32_MODEL.sha256

# Seconds as (at all, a row, a frame or token padded or cut up for all lanes, one in a lane or in the longest row),
# until the first batches are seen. Of the two machines that docs/log.md speaks of.
PRIORS: dict[tuple[str, str, str], Coefficients] = {
    ("onnx", "cpu", "acoustic"): (0.01, 0.002, 0.0, 0.0008),
    ("onnx", "cpu", "vocoder"): (0.01, 0.002, 0.001, 0.017),
    ("torch", "cpu", "acoustic"): (0.02, 0.005, 0.002, 0.0),
    ("torch", "cpu", "vocoder"): (0.05, 0.01, 0.03, 0.0),
    ("torch", "cuda", "acoustic"): (0.002, 0.0, 4e-6, 2.2e-5),
    ("torch", "cuda", "vocoder"): (0.002, 0.0, 4.8e-6, 0.0),
}


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Loads every checkpoint of one worker. A value, so that it can be sent to the worker's process."""

    home: Path
    choices: tuple[tuple[str, Choice], ...]  # by name
    threads: int

    def __call__(self) -> Mapping[str, Model]:
        store = Store(self.home)
        return {name: load(store.path(MODELS[choice.weights]), choice, self.threads) for name, choice in self.choices}


def open_engine(
    settings: "Settings", *, apart: bool = False, progress: Progress = lambda _what, _done, _steps: None
) -> Engine:
    """An engine on this machine, its model files fetched first where they are missing; enter it to start it.

    `apart`: for a server. The model runs in a process of its own, which is watched, and no batch runs so long that a
    newcomer would wait for it.
    """
    choices = _choices(settings)
    store = Store(settings.home)
    with show_progress() as bars:
        for _, choice in choices:
            store.ensure(required_files(choice.weights), sources=sources(offline=settings.offline), progress=bars)
    make = Checkpoints(settings.home, choices, settings.threads)
    kind = ProcessWorker if apart else ThreadWorker
    workers = [kind(make, progress=progress) for _ in range(settings.workers or 1)]
    voices = Voices(settings.home / "voices")
    kept = settings.home / file_name(_device(choices, settings.threads), WEIGHTS) if apart else None
    return assemble(workers, dict(choices), voices, _reader(settings, apart), settings, capped=apart, kept=kept)


def assemble(
    workers: Sequence[Worker],
    choices: Mapping[str, Choice],
    voices: Voices,
    frontend: TextFrontend,
    settings: "Settings",
    *,
    capped: bool,
    kept: Path | None = None,
) -> Engine:
    """The parts, put together. With `kept`, what batches cost is found before the first request, and kept there."""
    first = next(iter(choices.values()))
    target_s = TARGET_S[first.device] if settings.first_audio_ms is None else settings.first_audio_ms / 1000
    rows = settings.max_batch_size or (CUDA_ROWS if first.device == "cuda" else ROWS_PER_LANE * settings.threads)
    limits = Limits(
        max_rows=rows if settings.batching else 1,
        max_padded={} if settings.max_batch_frames is None else {"vocoder": settings.max_batch_frames},
        max_text=settings.max_batch_text,
        max_waiting=settings.max_queue,
        cap_s=CAP * target_s if capped else inf,
        patience=PATIENCE if capped else inf,
    )
    policies = _policies(settings, limits, foresees=first.device == "cuda")
    batch_stats = BatchStats()
    batchers = []
    for number, worker in enumerate(workers):
        costs = first_costs(choices, settings.threads)
        scheduler = Scheduler(limits, costs.__getitem__, policies[settings.policy])
        warm_up = WarmUp(kept, costs, _sentences(voices, settings.voice), SWEEPS[first.device]) if kept else None
        batchers.append(Batcher(worker, scheduler, batch_stats, warm_up, str(number)))
    own = LexiconFile(settings.lexicon).words if settings.lexicon else None
    # A CUDA device makes a whole chunk sooner than anyone notices; stretches would only cost it time.
    pacing = Pacing(
        target_s=target_s,
        whole_ahead=max(2, 2 * limits.max_rows),
        first_chunks=settings.stream_bypass_chunks,
        early=frozenset(
            name for name, one in choices.items() if one.backend == "onnx" and one.precision in INCREMENTAL_PRECISIONS
        ),
    )
    return Engine(
        batchers, voices, frontend, batch_stats, checkpoints=tuple(choices), pacing=pacing, own=own, policies=policies
    )


def _choices(settings: "Settings") -> tuple[tuple[str, Choice], ...]:
    chosen = choose(settings.backend, settings.device, settings.precision, settings.compile)
    extra = [choose("auto", settings.device, name, "off") for name in settings.extra_precisions]  # type: ignore[arg-type]
    return ((CHECKPOINT, chosen), *((f"{CHECKPOINT}-{choice.precision}", choice) for choice in extra))


def first_costs(choices: Mapping[str, Choice], threads: int) -> dict[Key, CostModel]:
    """One for each checkpoint and stage, before anything ran."""
    stages: tuple[StageName, ...] = ("acoustic", "vocoder")
    return {
        Key(name, stage): CostModel(_shape(choice, stage, threads), PRIORS[choice.backend, choice.device, stage])
        for name, choice in choices.items()
        for stage in stages
    }


def _shape(choice: Choice, stage: StageName, threads: int) -> Layout:
    """How this backend lays rows out."""
    if choice.backend == "onnx":
        return SideBySide(threads if stage == "vocoder" else 1)
    plan = buckets.PLANS[choice.compile if choice.device == "cuda" else "cpu"]
    shapes = plan.tokens if stage == "acoustic" else plan.frames
    # Who watches asks again for what was just found for the scheduler.
    group = lru_cache(128)(lambda sizes: shapes.group(sizes, MAX_PADDED))
    return Regrouped(lambda sizes: group(tuple(sizes)))


def _sentences(voices: Voices, voice: str) -> tuple[Utterance, ...]:
    """A greeting, once and three times over, for the warm-up."""
    speaker = voices.get(voice)
    rows = [vocab.encode(" ".join([SENTENCE] * n)) for n in (1, 3)]
    return tuple(Utterance(tokens, speaker.style(len(tokens) - 2)) for tokens in rows)


def _device(choices: Iterable[tuple[str, Choice]], threads: int) -> str:
    """What the costs depend on besides the weights, in words."""
    described = [f"{name} {choice}" for name, choice in choices]
    for path in (*Path("/proc/driver/nvidia/gpus").glob("*/information"), Path("/proc/cpuinfo")):
        with suppress(OSError):
            described += re.findall(r"(?mi)^(?:model(?: name)?|cpu part)\s*:\s*(.+)$", path.read_text())
    return f"{platform.machine()} {threads} of {os.cpu_count()} {' '.join(sorted(set(described)))}"


def _policies(settings: "Settings", limits: Limits, foresees: bool) -> dict[str, Policy]:
    early_rows = max(1, int(settings.early_fire * limits.max_rows))
    max_wait_s, min_wait_s = settings.max_wait_ms / 1000, settings.min_wait_ms / 1000
    return {
        # Where only the end counts, full batches do: what they cost is not learned from a few of them.
        "deadline": Deadline(limits.cap_s, thrift=1.0 if isfinite(limits.cap_s) else inf, foresees=foresees),
        "fifo": Fifo(),
        "window": Window(max_wait_s=max_wait_s, min_wait_s=min_wait_s, early_rows=early_rows),
        "bypass": Bypass(max_wait_s=max_wait_s, min_wait_s=min_wait_s, early_rows=early_rows),
    }


def _reader(settings: "Settings", apart: bool) -> TextFrontend:
    if settings.g2p_url is None:
        pronounce = G2P(settings.home).pronounce
        return G2PPool(pronounce) if apart else G2PThread(pronounce)
    from tutti.text.g2p.remote import RemoteG2P

    return G2PThread(RemoteG2P(settings.g2p_url, settings.g2p_timeout_s).pronounce)
