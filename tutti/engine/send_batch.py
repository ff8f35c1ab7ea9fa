"""Send a batch to its worker, as the call that its stage needs."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tutti.batching.job import Batch
from tutti.engine.row import Row
from tutti.worker.base import Worker

HANG_FACTOR = 10.0  # a batch that takes this many times its predicted seconds hangs
MIN_HANG_S = 30.0  # but no batch hangs sooner: the machine may be busy


def send_batch(worker: Worker, batch: Batch, rows: Sequence[Row], *, both_stages: bool) -> asyncio.Future[Any]:
    """Enqueue a batch and return the future of its result. `both_stages`: after the acoustic stage run the vocoder."""
    timeout_s = max(MIN_HANG_S, HANG_FACTOR * (batch.predicted_s + sum(job.later_s for job in batch.jobs)))
    checkpoint = batch.key.checkpoint
    if batch.key.stage == "vocoder":
        spans = {row.id: row.span for row in rows if row.span}
        return worker.vocoder(checkpoint, [row.id for row in rows], timeout_s, spans)
    utterances = [(row.id, row.utterance) for row in rows]
    if not both_stages:
        return worker.acoustic(checkpoint, utterances, timeout_s)
    for row in rows:
        row.span_rules = None  # it comes back whole
    return worker.both_stages(checkpoint, utterances, timeout_s)
