"""How marks in the text change the words of a row, as numbers of its tokens."""

import numpy as np
from numpy.typing import NDArray

from tutti.model.inflection import EMPHASES
from tutti.model.prosody import clamp_speed
from tutti.speech import NO_INFLECTION, SAMPLE_RATE, SAMPLES_PER_FRAME, Inflection
from tutti.text.chunk import Chunk, WordStyle

COMMAS = frozenset(",;:—")
PAUSE = Inflection._fields.index("pause")
FRAME_MS = 1000 * SAMPLES_PER_FRAME / SAMPLE_RATE


def token_inflection(chunk: Chunk, speed: float, comma_ms: int = 0) -> NDArray[np.float32] | None:  # [n + 2, 6]
    """The inflection of each token of a row that is spoken at this speed, with these pauses at commas; none if none is.

    A word is heard from the space before it on. A space or sign between two words of one style has that style.
    """
    pauses = [i for i, symbol in enumerate(chunk.phonemes, 1) if symbol in COMMAS] if comma_ms else []
    if not pauses and not any(word.style for word in chunk.words):
        return None
    tokens = np.tile(np.array(NO_INFLECTION, np.float32), (len(chunk.phonemes) + 2, 1))
    start, has_space = 1, False
    for word, following in zip(chunk.words, (*chunk.words[1:], None), strict=True):
        end = start + word.n_symbols
        if word.style:
            is_same = following is not None and following.style == word.style
            tokens[start - has_space : end if is_same else end - len(word.after)] = _inflection(word.style, speed)
        start, has_space = end, word.after.endswith(" ")
    tokens[pauses, PAUSE] = round(comma_ms / FRAME_MS)
    return tokens


def _inflection(style: WordStyle, speed: float) -> Inflection:
    emphasis = EMPHASES[style.emphasis] if style.emphasis else NO_INFLECTION
    rate = clamp_speed(speed * style.rate * emphasis.rate) / speed
    pitch, volume = style.pitch + emphasis.pitch, style.volume * emphasis.volume
    return Inflection(rate, pitch, emphasis.energy, volume, emphasis.voiced)
