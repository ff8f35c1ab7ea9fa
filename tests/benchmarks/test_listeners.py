"""The measuring of policies: its engines are whole, and its players count what a listener would notice."""

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.policies import POLICIES, listen, open_with, texts
from tests.fakes import silent_voices
from tutti.engine.build import CHECKPOINT
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.speech import Model
from tutti.worker.thread import ThreadWorker


def tones() -> Mapping[str, Model]:
    return {CHECKPOINT: ToneModel()}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_speaks_to_a_listener(policy: str, tmp_path: Path) -> None:
    silent_voices(tmp_path)
    args = Namespace(voices=tmp_path, threads=2, target_ms=None, costs=None)

    async def run() -> None:
        worker = ThreadWorker(tones)
        await worker.start()
        try:
            async with open_with(policy, worker, Choice("onnx", "cpu", "fp32"), args) as engine:
                heard = [await listen(engine, text) for text in islice(texts(seed=1), 4)]
                assert all(one.audio_s > 0 and not one.refused and not one.failed for one in heard)
        finally:
            await worker.close()

    asyncio.run(run())
