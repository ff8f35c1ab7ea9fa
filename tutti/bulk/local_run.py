"""Speak all missing shards with the devices of this machine."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from tutti.bulk.output import FinishedRow, OutputFolder, RunSummary
from tutti.bulk.shards import Shard
from tutti.bulk.speaking import BulkOptions, DeviceQueue, ShardSpeaker
from tutti.engine.engine import Engine
from tutti.tasks import cause

SHARDS_AT_ONCE = 2  # of a device: the texts and the files of one are made while the other runs
MAX_ENCODERS = 8  # threads; more only helps devices that make more than an hour of audio in a second
OnProgress = Callable[[RunSummary], None]  # what has been spoken since the last call


async def speak_shards(
    engine: Engine, shards: Iterator[Shard], options: BulkOptions, folder: OutputFolder, on_progress: OnProgress
) -> None:
    """Take shards until there are no more."""
    taking = asyncio.Lock()

    async def next_shard() -> Shard | None:
        async with taking:
            return await asyncio.to_thread(next, shards, None)

    async def lane(speaker: ShardSpeaker, pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while shard := await next_shard():
            rows = await speaker.speak(shard)
            await loop.run_in_executor(pool, folder.write_shard, shard.name, rows)

    def on_row(row: FinishedRow) -> None:
        on_progress(RunSummary(1, bool(row.error), row.seconds))

    with ThreadPoolExecutor(min(MAX_ENCODERS, os.cpu_count() or 1), "bulk") as pool:
        try:
            async with engine, asyncio.TaskGroup() as lanes:
                for batcher in engine.batchers:
                    speaker = ShardSpeaker(engine, DeviceQueue(batcher.worker), options, pool, on_row)
                    for _ in range(SHARDS_AT_ONCE):
                        lanes.create_task(lane(speaker, pool))
        except BaseExceptionGroup as group:
            raise cause(group) from None
