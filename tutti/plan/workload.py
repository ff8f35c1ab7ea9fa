"""Requests that arrive at random, and the chunks that the engine would make of them. Pure: a seed decides."""

import itertools
import random
from collections.abc import Iterator

from tutti.plan.simulation import TOKENS_PER_S, SimulatedStream
from tutti.text.chunk import ChunkPace, PhonemeWord, Pronunciation
from tutti.text.chunker import Chunker

WORD_SYMBOLS = 6  # of a word and the space after it
SENTENCE_WORDS = 10  # about 4 s
SPREAD = 0.5  # requests are shorter and longer than the mean by up to this share of it, all lengths alike
CHARACTERS_PER_S = 15  # of English at speed 1


def chunk_lengths(seconds: float, pace: ChunkPace) -> list[float]:
    """Seconds of audio of each chunk of a text of about so many seconds, as the engine's own chunker cuts it."""
    n_words = max(1, round(seconds * TOKENS_PER_S / WORD_SYMBOLS))
    chunks = Chunker(pace=pace).chunks((sentence, 0.0) for sentence in _sentences(n_words))
    return [len(chunk.phonemes) / TOKENS_PER_S for chunk in chunks]


def arrivals(rate: float, n: int, seconds: float, pace: ChunkPace, seed: int = 1) -> list[SimulatedStream]:
    """Streams at this rate (Poisson), `seconds` long on average."""
    rng = random.Random(seed)
    times_s = itertools.accumulate(rng.expovariate(rate) for _ in range(n))
    lengths = (seconds * rng.uniform(1 - SPREAD, 1 + SPREAD) for _ in itertools.count())
    return [
        SimulatedStream(number, at_s, chunk_lengths(length, pace))
        for number, (at_s, length) in enumerate(zip(times_s, lengths, strict=False))
    ]


def _sentences(n_words: int) -> Iterator[Pronunciation]:
    for start in range(0, n_words, SENTENCE_WORDS):
        n = min(SENTENCE_WORDS, n_words - start)
        words = [PhonemeWord("a" * (WORD_SYMBOLS - 1), (0, 0)) for _ in range(n - 1)]
        yield Pronunciation((*words, PhonemeWord("a" * (WORD_SYMBOLS - 1), (0, 0), after=". ")))
