"""Build an engine from settings: fetch the model files, start a worker for each device, set up its queue."""

import logging
import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.admission.control import START_SHARE
from tutti.admission.loop_budget import LoopBudget
from tutti.admission.refusals import Refusals
from tutti.batching.cost import Coefficients, CostModel, file_name
from tutti.batching.job import STAGES, Key, StageName
from tutti.batching.layout import Layout, Regrouped, SideBySide
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.batcher import Batcher
from tutti.engine.checkpoints import CHECKPOINT as CHECKPOINT
from tutti.engine.checkpoints import (
    Checkpoints,
    checkpoint_folders,
    choose_checkpoints,
    cuda_index_of_workers,
    fetch_repositories,
    files_of,
    kernel_marker,
    log_folders,
    make_file_caches,
    only_checkpoint,
    open_voices,
    upgrade_choices,
)
from tutti.engine.device import MeasureSecond, WarmUp
from tutti.engine.engine import Engine, TextDefaults
from tutti.engine.playback import Pacing
from tutti.engine.stats import BatchStats
from tutti.model.buckets import MAX_PADDED_FRAMES, PLANS
from tutti.model.choice import Choice, n_cuda_devices
from tutti.model.spans import SPAN_RULES
from tutti.speech import Utterance
from tutti.text import vocab
from tutti.text.chunk import DEFAULT_PACE
from tutti.text.chunker import ENOUGH_SYMBOLS, ChunkSizes
from tutti.text.frontend import G2PPool, G2PThread, TextFrontend
from tutti.text.g2p import G2P
from tutti.text.options import TextOptions, find_pauses, parse_pauses
from tutti.text.user_lexicon import LexiconFile
from tutti.voices import Voices
from tutti.weights import FP32_MODEL, Store, show_progress, sources
from tutti.worker.base import Worker
from tutti.worker.messages import Progress, no_progress
from tutti.worker.process import ProcessWorker
from tutti.worker.thread import ThreadWorker
from tutti.worker.upgrading import UpgradingWorker

if TYPE_CHECKING:
    from tutti.settings import Settings

log = logging.getLogger(__name__)

TARGET_S = {"cuda": 0.2, "cpu": 1.5}  # to the first audio
CAP = 0.4  # share of the target that a batch may take, and so that a new request waits for one; larger: fuller batches
ROWS_PER_CORE = 2  # rows in a batch for each core; larger balances the cores better, but new requests wait longer
CUDA_ROWS = 64  # rows in a batch on CUDA: the most in one shape of model.buckets
SWEEP_ROWS = {"cuda": (1, 4, 16, 64), "cpu": (1, 2)}  # rows in each batch of the warm-up
FIRST_SWEEP_ROWS = (1, 16)  # for a worker that is replaced soon: each number takes half a second or more of the start
SENTENCE = "həlˈO ðˈɛɹ, wˈɜɹld."
WEIGHTS = FP32_MODEL.sha256

# Seconds of a batch, of a row, of a padded token or frame (CPU: of a lone row split over the cores), and of a token or
# frame of the longest row (CPU: on one core), until the first batches are seen. docs/log names the machines.
PRIORS: dict[tuple[str, str, str], Coefficients] = {
    ("onnx", "cpu", "acoustic"): (0.01, 0.002, 0.0, 0.0008),
    ("onnx", "cpu", "vocoder"): (0.01, 0.002, 0.001, 0.017),
    ("onnx", "cpu", "light"): (0.005, 0.001, 0.0004, 0.0019),
    ("onnx", "cpu", "nano"): (0.005, 0.001, 0.0002, 0.0006),
    ("torch", "cpu", "acoustic"): (0.02, 0.005, 0.002, 0.0),
    ("torch", "cpu", "vocoder"): (0.05, 0.01, 0.03, 0.0),
    ("torch", "cpu", "light"): (0.02, 0.005, 0.005, 0.0),
    ("torch", "cpu", "nano"): (0.02, 0.005, 0.001, 0.0),
    ("torch", "cuda", "acoustic"): (0.002, 0.0, 4e-6, 2.2e-5),
    ("torch", "cuda", "vocoder"): (0.002, 0.0, 4.8e-6, 0.0),
    ("torch", "cuda", "light"): (0.002, 0.0, 2.2e-6, 0.0),
    ("torch", "cuda", "nano"): (0.002, 0.0, 1e-6, 0.0),
}


def open_engine(
    settings: "Settings",
    *,
    for_server: bool = False,
    progress: Progress = no_progress,
    model: str | None = None,
    g2p_processes: int = 0,
) -> Engine:
    """Build an engine for this machine, and download its model files if they are missing; enter it to start it.

    `model`: load only this checkpoint; "" is the default one.
    `for_server`: the model runs in a supervised process of its own, and batches are short enough for new requests.
    `g2p_processes`: how many prepare texts; 0: one in the server, else a thread of this process.
    """
    fetch_repositories(settings)
    served = choose_checkpoints(settings)
    choices = served if model is None else only_checkpoint(served, model, settings)
    with show_progress() as bars:
        files = files_of(choices.values())
        Store(settings.home).ensure(files, sources=sources(offline=settings.offline), progress=bars)
    make_file_caches(settings.home, choices.values())
    n_devices = n_cuda_devices() if any(choice.device == "cuda" for choice in choices.values()) else 0
    indices = cuda_index_of_workers(choices.values(), settings.workers, n_devices, settings.threads)
    if n_devices == 0:  # the workers share the cores
        settings = settings.model_copy(update={"threads": max(1, settings.threads // len(indices))})
    marker = kernel_marker(settings.home)
    compile = settings.compile if for_server else "off"
    first, second = upgrade_choices(choices, compile, kernels_ready=marker.exists())
    workers = [_worker(settings, first, second, index, progress, for_server=for_server) for index in indices]
    voices = open_voices(settings)
    log_folders(settings, served, voices)
    costs = cost_file(settings, first) if for_server else None
    frontend = make_frontend(settings, g2p_processes or int(for_server))
    engine = assemble(workers, first, voices, frontend, settings, capped=for_server, cost_file=costs)
    for batcher in engine.batchers:
        if second and isinstance(batcher.worker, UpgradingWorker) and batcher.warm_up:
            path = cost_file(settings, second)
            fresh = prior_costs(second, settings.threads)
            batcher.worker.before_change = MeasureSecond(batcher.warm_up, fresh, path, marker)
            # The first worker serves for a minute, so only the default checkpoint is worth a later start.
            batcher.warm_up = replace(batcher.warm_up, only=next(iter(first)), n_rows=FIRST_SWEEP_ROWS)
    return engine


def _worker(
    settings: "Settings",
    choices: Mapping[str, Choice],
    second: Mapping[str, Choice] | None,
    index: int | None,
    progress: Progress,
    *,
    for_server: bool,
) -> Worker:
    """A worker for one device; in the server a process, with a second one where it is faster but needs preparation."""
    make = Checkpoints(settings.home, tuple(choices.items()), settings.threads, index)
    if not for_server:
        return ThreadWorker(make, progress=progress)
    max_bytes = None if settings.worker_memory_mb is None else 1e6 * settings.worker_memory_mb
    worker = ProcessWorker(make, progress=progress, max_bytes=max_bytes)
    if second is None:
        return worker
    make_second = Checkpoints(settings.home, tuple(second.items()), settings.threads, index)
    return UpgradingWorker(worker, ProcessWorker(make_second, max_bytes=max_bytes))


def assemble(
    workers: Sequence[Worker],
    choices: Mapping[str, Choice],
    voices: Voices,
    frontend: TextFrontend,
    settings: "Settings",
    *,
    capped: bool,
    cost_file: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Engine:
    """Build an engine from its parts.

    `capped`: batches are short enough for new requests. With `cost_file`, costs are measured at the start, and stored.
    """
    first = next(iter(choices.values()))
    target_s = TARGET_S[first.device] if settings.first_audio_ms is None else settings.first_audio_ms / 1000
    rows = settings.max_batch_size or (CUDA_ROWS if first.device == "cuda" else ROWS_PER_CORE * settings.threads)
    limits = Limits(
        max_rows=rows if settings.batching else 1,
        max_padded={} if settings.max_batch_frames is None else {"vocoder": settings.max_batch_frames},
        max_text=settings.max_batch_text,
        max_waiting=settings.max_queue,
        cap_s=CAP * target_s if capped else inf,
        max_start_s=settings.max_start_s if capped else inf,
        timeout_s=settings.timeout_s if capped else inf,
    )
    policies = _policies(settings, limits, can_prefetch=first.device == "cuda")
    stats = BatchStats()
    batchers, refusals, loop_budget = [], Refusals(), LoopBudget()
    for number, worker in enumerate(workers):
        costs = prior_costs(choices, settings.threads)
        scheduler = Scheduler(limits, costs.__getitem__, policies[settings.policy], refusals)
        rows_to_sweep = _warm_up_rows(voices, settings.voice) if cost_file else ()
        warm_up = WarmUp(cost_file, costs, rows_to_sweep, SWEEP_ROWS[first.device]) if cost_file else None
        batchers.append(Batcher(worker, scheduler, stats, warm_up, str(number), clock, loop_budget))
    pacing = Pacing(
        target_s=target_s,
        whole_ahead=max(2, 2 * limits.max_rows),
        whole_max_start_s=START_SHARE * settings.timeout_s,
        first_chunks=settings.stream_bypass_chunks,
        idle_unload_s=settings.idle_unload_s,
        # A batch that has begun cannot be interrupted: on a processor others would wait for a longer one for seconds.
        joined_symbols=ENOUGH_SYMBOLS if first.device == "cpu" else DEFAULT_PACE.joined_symbols,
        span_rules={
            name: SPAN_RULES[choice.vocoder] for name, choice in choices.items() if choice.vocoder in SPAN_RULES
        },
    )
    folders = checkpoint_folders(settings)
    missing = {name: folder.missing for name, folder in folders.items()}
    stand_ins = {name: folder.stand_ins for name, folder in folders.items()}
    languages = {name: folder.language for name, folder in folders.items() if folder.language}
    lexicon = LexiconFile(settings.lexicon).words if settings.lexicon else None
    log.info(
        "engine batching=%s policy=%s max_rows=%d bypass_chunks=%d first_audio=%.0fms workers=%d models=%s",
        "on" if settings.batching else "off", settings.policy, limits.max_rows, settings.stream_bypass_chunks,
        1000 * target_s, len(workers),
        ",".join(f"{name}({c.backend} device={c.device} precision={c.precision})" for name, c in choices.items()),
    )  # fmt: skip
    return Engine(
        batchers, voices, frontend, stats,
        checkpoints=tuple(choices), pacing=pacing, policies=policies,
        text_defaults=TextDefaults(lexicon, text_options(settings), missing, stand_ins, languages),
    )  # fmt: skip


def text_options(settings: "Settings") -> TextOptions:
    """How texts are read where a request says nothing."""
    return TextOptions(settings.code_blocks, pauses=find_pauses(parse_pauses(settings.pauses)))


def prior_costs(choices: Mapping[str, Choice], threads: int) -> dict[Key, CostModel]:
    """A cost model for each checkpoint and stage, before anything ran."""
    return {
        Key(name, stage): CostModel(_layout(choice, stage, threads), _prior(choice, stage))
        for name, choice in choices.items()
        for stage in STAGES
    }


def _prior(choice: Choice, stage: StageName) -> Coefficients:
    kind = choice.vocoder if stage == "vocoder" and choice.vocoder != "exact" else stage
    return PRIORS[choice.backend, choice.device, kind]


def _layout(choice: Choice, stage: StageName, threads: int) -> Layout:
    """How this backend arranges the rows of a batch."""
    if choice.backend == "onnx":
        return SideBySide(threads if stage == "vocoder" else 1)
    plan = PLANS[choice.compile if choice.device == "cuda" else "cpu"]
    shapes = plan.tokens if stage == "acoustic" else plan.frames
    # Cached: the monitor needs the groups that the scheduler has just computed.
    group = lru_cache(128)(lambda sizes: shapes.group(sizes, MAX_PADDED_FRAMES[choice.device]))
    return Regrouped(lambda sizes: group(tuple(sizes)))


def _warm_up_rows(voices: Voices, name: str) -> tuple[Utterance, ...]:
    """Two utterances of different length for the warm-up sweep."""
    voice = voices.get(name)
    rows = [vocab.encode(" ".join([SENTENCE] * n)) for n in (1, 3)]
    return tuple(Utterance(tokens, voice.style(len(tokens) - 2)) for tokens in rows)


def cost_file(settings: "Settings", choices: Mapping[str, Choice]) -> Path:
    """Where a server on this machine stores what its batches cost."""
    return settings.home / file_name(_device(choices, settings.threads), WEIGHTS)


def _device(choices: Mapping[str, Choice], threads: int) -> str:
    """What the costs depend on besides the weights, as text."""
    facts = [f"{name} {replace(choice, path=None)}" for name, choice in choices.items()]
    for path in (*Path("/proc/driver/nvidia/gpus").glob("*/information"), Path("/proc/cpuinfo")):
        with suppress(OSError):
            facts += re.findall(r"(?mi)^(?:model(?: name)?|cpu part)\s*:\s*(.+)$", path.read_text())
    return f"{platform.machine()} {threads} of {os.cpu_count()} {' '.join(sorted(set(facts)))}"


def _policies(settings: "Settings", limits: Limits, can_prefetch: bool) -> dict[str, Policy]:
    early_rows = max(1, int(settings.early_fire * limits.max_rows))
    max_wait_s, min_wait_s = settings.max_wait_ms / 1000, settings.min_wait_ms / 1000
    return {
        "deadline": Deadline(limits.cap_s, can_prefetch),
        "fifo": Fifo(),
        "window": Window(max_wait_s=max_wait_s, min_wait_s=min_wait_s, early_rows=early_rows),
        "bypass": Bypass(max_wait_s=max_wait_s, min_wait_s=min_wait_s, early_rows=early_rows),
    }


def make_frontend(settings: "Settings", processes: int) -> TextFrontend:
    """Return the G2P in this number of child processes or, if it is 0, in a thread; or that of a service."""
    sizes = chunk_sizes(settings)
    if settings.g2p_url is None:
        pronounce = G2P(settings.home).pronounce
        return G2PPool(pronounce, processes, sizes=sizes) if processes else G2PThread(pronounce, sizes=sizes)
    from tutti.text.g2p.remote import MAX_CALLS, RemoteG2P

    return G2PThread(RemoteG2P(settings.g2p_url, settings.g2p_timeout_s).pronounce, workers=MAX_CALLS, sizes=sizes)


def chunk_sizes(settings: "Settings") -> ChunkSizes:
    return ChunkSizes(settings.min_chunk_tokens, settings.max_chunk_tokens)
