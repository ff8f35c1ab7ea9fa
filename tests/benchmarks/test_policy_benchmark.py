"""The benchmark of policies: every policy speaks through its engine."""

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.policies import POLICIES, engine_with, play, random_texts
from tests.fakes import silent_voices
from tutti.engine.build import CHECKPOINT
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.speech import Model
from tutti.worker.thread import ThreadWorker


def tone_models() -> Mapping[str, Model]:
    return {CHECKPOINT: ToneModel()}


@pytest.mark.parametrize("rows", [32, 0])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_speaks_to_a_listener(policy: str, rows: int, tmp_path: Path) -> None:
    """The baselines with the rows of the requirement, or as many as `deadline` may have."""
    silent_voices(tmp_path)
    args = Namespace(voices=tmp_path, threads=2, target_ms=None, cost_file=None, rows=rows)

    async def run() -> None:
        worker = ThreadWorker(tone_models)
        await worker.start()
        try:
            async with engine_with(policy, worker, Choice("onnx", "cpu", "fp32"), args) as engine:
                results = [await play(engine, text) for text in islice(random_texts(seed=1), 4)]
                most_rows = engine.monitor.settings()["max_batch_size"]
                assert most_rows == (rows if rows and policy in ("window", "bypass") else 4)
                assert all(result.audio_s > 0 and not result.refused and not result.failed for result in results)
        finally:
            await worker.close()

    asyncio.run(run())
