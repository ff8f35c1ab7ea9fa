"""mu-law and A-law against the decision values of G.711 and FFmpeg's decoder."""

from itertools import pairwise

import numpy as np
import pytest

from tests.audio.decoding import decode, encode
from tutti.audio import pcm

# Where the eight segments of 16 steps begin and end, in the laws' own units (14 bits and 13 bits).
MULAW_EDGES = [0, 31, 95, 223, 479, 991, 2015, 4063, 8159]
ALAW_EDGES = [0, 32, 64, 128, 256, 512, 1024, 2048, 4096]

every_sample = np.arange(-32768, 32768, dtype=np.int64)


def codes(law: str) -> np.ndarray:
    table = {"mulaw": pcm.mulaw_table, "alaw": pcm.alaw_table}[law]()
    return table[every_sample.astype(np.int16).view(np.uint16)]


def decode_levels(law: str, data: bytes) -> np.ndarray:
    return np.rint(decode(law, data, 8_000)[0] * 32768).astype(np.int64)


@pytest.mark.parametrize("law", ["mulaw", "alaw"])
def test_decoded_levels_encode_to_the_same_code(law):
    every_code = bytes(range(256))
    levels = decode_levels(law, every_code)
    again = codes(law)[levels + 32768]
    different = [code for code in range(256) if again[code] != code]
    assert different == ([0x7F] if law == "mulaw" else [])  # mu-law has two zeros; silence is the positive one


@pytest.mark.parametrize("law", ["mulaw", "alaw"])
def test_louder_never_decodes_as_quieter(law):
    assert np.all(np.diff(decode_levels(law, codes(law).tobytes())) >= 0)


@pytest.mark.parametrize("law", ["mulaw", "alaw"])
def test_both_signs_are_treated_alike(law):
    assert np.array_equal(codes(law)[:32768][::-1] ^ 0x80, codes(law)[32768:])


@pytest.mark.parametrize(("law", "edges", "scale"), [("mulaw", MULAW_EDGES, 4), ("alaw", ALAW_EDGES, 8)])
def test_codes_change_at_the_decision_values_of_g711(law, edges, scale):
    decisions = [low + (high - low) * step / 16 for low, high in pairwise(edges) for step in range(16)]
    if law == "mulaw":  # the first segment has a half step at zero: 0, 1, 3, 5 ... 31
        decisions[:16] = [0, *range(1, 31, 2)]
    positive = codes(law)[32768:]
    changes = np.flatnonzero(np.diff(positive)) + 1
    assert changes.tolist() == [int(decision * scale) for decision in decisions[1:]]


def test_silence_is_the_standard_byte():
    silence = [np.zeros(240, np.float32)]
    assert encode("mulaw", silence) == b"\xff" * 80
    assert encode("alaw", silence) == b"\xd5" * 80
