"""Speak all missing shards with the devices of a Ray cluster: one actor for each, all writing into one folder."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tutti.bulk.local_run import SHARDS_AT_ONCE, OnProgress
from tutti.bulk.output import OutputFolder, RunSummary
from tutti.bulk.shards import Shard
from tutti.bulk.speaking import BulkOptions, DeviceQueue, ShardSpeaker
from tutti.engine.engine import Engine
from tutti.errors import InvalidInput, MissingExtra, TuttiError
from tutti_ray import NEEDS

MakeEngine = Callable[[], Engine]
LOCAL = "local"  # a cluster of this machine alone, that ends with the run


class ShardActor:
    """Owns one device. A shard that it did when it died is done again by its successor, with the same bytes."""

    def __init__(self, make_engine: MakeEngine, options: BulkOptions, folder: OutputFolder) -> None:
        self._make_engine = make_engine
        self._options = options
        self._folder = folder
        self._starting = asyncio.Lock()
        self._speaker: ShardSpeaker | None = None
        self._pool = ThreadPoolExecutor(2, "bulk")

    async def speak(self, shard: Shard) -> RunSummary:
        """Store one shard, and tell how it went."""
        async with self._starting:
            if self._speaker is None:
                engine = await asyncio.to_thread(self._make_engine)
                await engine.start()
                device = DeviceQueue(engine.batchers[0].worker)
                self._speaker = ShardSpeaker(engine, device, self._options, self._pool)
        rows = await self._speaker.speak(shard)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._folder.write_shard, shard.name, rows)


def speak_shards_with_ray(
    make_engine: MakeEngine,
    shards: Iterator[Shard],
    options: BulkOptions,
    folder: OutputFolder,
    on_progress: OnProgress,
    *,
    address: str = LOCAL,
    n_devices: int | None = None,
) -> None:
    """Like `speak_shards`, with one actor for each GPU of the cluster, or for `n_devices` equal parts of its cores."""
    ray = _ray()
    _connect(ray, address)
    try:
        resources = ray.cluster_resources()
        on_gpu, n_actors = actors_of(resources, n_devices)
        needs: dict[str, Any] = {"num_gpus": 1, "num_cpus": 1}
        if not on_gpu:
            needs = {"num_cpus": max(1, int(resources.get("CPU", 1)) // n_actors)}
        remote = ray.remote(ShardActor).options(
            **needs, max_restarts=-1, max_task_retries=-1, max_concurrency=SHARDS_AT_ONCE
        )
        actors = [remote.remote(make_engine, options, folder) for _ in range(n_actors)]
        running: dict[Any, Any] = {}  # the call: its actor
        for _ in range(SHARDS_AT_ONCE):
            for actor in actors:
                _feed(actor, shards, running)
        while running:
            (done,), _ = ray.wait(list(running))
            actor = running.pop(done)
            on_progress(_result(ray, done))
            _feed(actor, shards, running)
    finally:
        ray.shutdown()


def actors_of(resources: dict[str, float], n_devices: int | None) -> tuple[bool, int]:
    """Whether the actors use GPUs, and how many there are."""
    n_gpus = int(resources.get("GPU", 0))
    if n_gpus and n_devices is not None and n_devices > n_gpus:
        raise InvalidInput(f"--devices {n_devices}: the cluster has {n_gpus} GPUs", param="devices")
    return bool(n_gpus), n_devices or n_gpus or 1


def _feed(actor: Any, shards: Iterator[Shard], running: dict[Any, Any]) -> None:
    if (shard := next(shards, None)) is not None:
        running[actor.speak.remote(shard)] = actor


def _result(ray: Any, call: Any) -> RunSummary:
    try:
        summary: RunSummary = ray.get(call)
    except ray.exceptions.RayTaskError as exc:
        if isinstance(exc.cause, TuttiError):
            raise exc.cause from None
        raise
    return summary


def _ray() -> Any:
    # Before the import: its processes would run at a low priority.
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtra(f"--ray {NEEDS}") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    if address == LOCAL:
        ray.init(address=LOCAL, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except ConnectionError as exc:
        raise InvalidInput(f"--ray {address}: no cluster answers there: {exc}", param="ray") from exc
