"""Kokoro's symbols and their ids."""

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import NDArray

# The ids are the model's and have gaps; 0 is the padding at both ends.
SYMBOLS: dict[str, int] = {
    **dict(zip(";:,.!?", range(1, 7), strict=True)),
    **dict(zip('—…"()“” \u0303ʣʥʦʨᵝ\uab67', range(9, 24), strict=True)),
    **{"A": 24, "I": 25, "O": 31, "Q": 33, "S": 35, "T": 36, "W": 39, "Y": 41, "ᵊ": 42},
    **dict(zip("abcdef", range(43, 49), strict=True)),
    **dict(zip("hijklmnopqrstuvwxyz", range(50, 69), strict=True)),
    **{"ɑ": 69, "ɐ": 70, "ɒ": 71, "æ": 72, "β": 75, "ɔ": 76, "ɕ": 77, "ç": 78, "ɖ": 80, "ð": 81, "ʤ": 82, "ə": 83},
    **{"ɚ": 85, "ɛ": 86, "ɜ": 87, "ɟ": 90, "ɡ": 92, "ɥ": 99, "ɨ": 101, "ɪ": 102, "ʝ": 103, "ɯ": 110, "ɰ": 111},
    **{"ŋ": 112, "ɳ": 113, "ɲ": 114, "ɴ": 115, "ø": 116, "ɸ": 118, "θ": 119, "œ": 120, "ɹ": 123, "ɾ": 125},
    **{"ɻ": 126, "ʁ": 128, "ɽ": 129, "ʂ": 130, "ʃ": 131, "ʈ": 132, "ʧ": 133, "ʊ": 135, "ʋ": 136, "ʌ": 138},
    **{"ɣ": 139, "ɤ": 140, "χ": 142, "ʎ": 143, "ʒ": 147, "ʔ": 148, "ˈ": 156, "ˌ": 157, "ː": 158, "ʰ": 162},
    **{"ʲ": 164, "↓": 169, "→": 171, "↗": 172, "↘": 173, "ᵻ": 177},
}

# Symbols that checkpoints of others may have, each with the nearest of Kokoro's for those that have not.
NEAREST = {"ʏ": "y", "ʉ": "u", "ɵ": "ʊ", "ʑ": "ʒ", "ʐ": "ʒ", "ɭ": "l", "ɫ": "l", "ɗ": "d", "ɓ": "b", "ħ": "h", "ʕ": "ʔ"}
# Kokoro 1.1 writes Chinese in bopomofo, characters for compound finals, tones as digits, and / between words.
BOPOMOFO = (
    "ㄅㄆㄇㄈㄉㄊㄋㄌㄍㄎㄏㄐㄑㄒㄓㄔㄕㄖㄗㄘㄙㄚㄛㄜㄝㄞㄟㄠㄡㄢㄣㄤㄥㄦㄧㄨㄩㄭ"
    "十月压言阳要阴应用又中穵外万王为文瓮我元云/12345R"
)
NEAREST |= dict.fromkeys(BOPOMOFO, "")
IDS = SYMBOLS | {symbol: id for id, symbol in enumerate(NEAREST, 178)}  # ours; a checkpoint has its own

_SYMBOL_SET = frozenset(SYMBOLS)
PUNCTUATION = frozenset(';:,.!?—…"()“”')


def split_known(phonemes: str, symbols: Mapping[str, int] = SYMBOLS) -> tuple[str, tuple[str, ...]]:
    """Split phonemes into Kokoro's symbols, or others that are known, and all others."""
    if _SYMBOL_SET.issuperset(phonemes):
        return phonemes, ()
    own = "".join(symbol for symbol in phonemes if symbol in symbols)
    return own, tuple(symbol for symbol in phonemes if symbol not in symbols)


def stand_ins(symbols: Container[str]) -> dict[str, str]:
    """Return what a checkpoint with these symbols gets for each that it lacks beyond Kokoro's."""
    return {symbol: near for symbol, near in NEAREST.items() if symbol not in symbols}


STAND_INS = stand_ins(SYMBOLS)  # of a checkpoint with Kokoro's


def encode(phonemes: str) -> NDArray[np.int64]:
    """Return token ids, padded by 0 at both ends. Every symbol must be known."""
    return np.array([0, *map(IDS.__getitem__, phonemes), 0], dtype=np.int64)
