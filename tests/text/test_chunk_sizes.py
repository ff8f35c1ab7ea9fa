"""MIN_TOKENS_PER_CHUNK and MAX_TOKENS_PER_CHUNK reach the chunker, in threads and in processes."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes import RecordingModel, Spelling, running, tone_engine
from tests.text.scripted_g2p import ScriptedG2P
from tutti import text as front
from tutti.settings import load
from tutti.text.chunker import ChunkSizes
from tutti.text.frontend import G2PPool, G2PThread
from tutti.text.g2p_messages import OpenText
from tutti.voices import Voices

TEXT = "The old bridge stands still. " * 40
SIZES = ChunkSizes(enough=40, target=60)


def lengths(sizes: ChunkSizes) -> list[int]:
    chunks = front.chunks(TEXT, "en-us", Spelling().pronounce, whole_text=True, sizes=sizes)
    return [len(chunk.phonemes) for chunk in chunks]


def test_the_maximum_bounds_a_chunk_and_the_minimum_fills_it() -> None:
    assert max(lengths(SIZES)) <= 60 < max(lengths(ChunkSizes()))
    assert 250 <= max(lengths(ChunkSizes(enough=400, target=400))) <= 400
    assert all(length >= 250 for length in lengths(ChunkSizes(enough=250, target=400))[:-1])
    assert len(lengths(ChunkSizes(enough=20, target=400))) == 40  # each sentence is enough


def test_the_variables_of_other_servers_set_them(voices: Voices) -> None:
    variables = {"MAX_TOKENS_PER_CHUNK": "60", "MIN_TOKENS_PER_CHUNK": "40"}
    chosen, _ = load({}, variables, Path("/nonexistent/.env"))
    model = RecordingModel()
    sizes = {"max_chunk_tokens": chosen.max_chunk_tokens, "min_chunk_tokens": chosen.min_chunk_tokens}
    with running(tone_engine(voices, lambda: model, **sizes)) as engine:
        engine.speak(TEXT)
    spoken = [len(row.tokens) - 2 for rows in model.acoustic_calls for row in rows]
    assert sorted(spoken) == sorted(lengths(SIZES))


@pytest.mark.process
@pytest.mark.parametrize("kind", [G2PThread, G2PPool])
def test_both_front_ends_use_them(kind: type[G2PThread | G2PPool], tmp_path: Path) -> None:
    reciter = ScriptedG2P(tmp_path)

    async def read() -> list[object]:
        frontend = kind(reciter.pronounce, sizes=SIZES)
        await frontend.start()
        try:
            return [chunk async for chunk in frontend.chunks(OpenText(TEXT, "en-us"))]
        finally:
            await frontend.close()

    assert asyncio.run(read()) == list(front.chunks(TEXT, "en-us", reciter.pronounce, sizes=SIZES))
