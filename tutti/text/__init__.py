"""From any text to chunks of phonemes, each tied to its place in the original."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tutti.text.chunk import Chunk, Reading
from tutti.text.spoken import Spoken

if TYPE_CHECKING:
    from tutti.text.pack import Pause

Pronounce = Callable[[Spoken, str, Mapping[int, str]], Reading]


def chunks(text: str, code: str, pronounce: Pronounce) -> Iterator[Chunk]:
    """The chunks of a text in order, each made only when it is asked for.

    A mark that is wrong raises InvalidInput with the first chunk, before anything was pronounced.
    """
    from tutti.text.pack import pack

    return pack(_readings(text, code, pronounce))


def _readings(text: str, code: str, pronounce: Pronounce) -> "Iterator[Reading | Pause]":
    from tutti.text.clean import clean
    from tutti.text.marks import parse
    from tutti.text.normalize import normalize
    from tutti.text.pack import PARAGRAPH_PAUSE_S, Pause
    from tutti.text.split import sentences

    cleaned = clean(text)
    yield Reading((), cleaned.dropped)
    for passage in parse(cleaned.spoken):
        for sentence in sentences(passage.spoken):
            yield pronounce(normalize(sentence.spoken, code), code, passage.given)
            if sentence.paragraph_end:
                yield Pause(PARAGRAPH_PAUSE_S)
        if passage.pause_s:
            yield Pause(passage.pause_s)
