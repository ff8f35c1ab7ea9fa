"""From any text to chunks of phonemes, each tied to its place in the original."""

from collections.abc import Callable, Iterator, Mapping

from tutti.text.chunk import Chunk, Reading
from tutti.text.spoken import Spoken

Pronounce = Callable[[Spoken, str, Mapping[int, str]], Reading]


def chunks(text: str, code: str, pronounce: Pronounce) -> Iterator[Chunk]:
    """The chunks of a text in order, each made only when it is asked for.

    A mark that is wrong raises InvalidInput with the first chunk, before anything was pronounced.
    """
    from tutti.text.pack import pack

    return pack(_readings(text, code, pronounce))


def _readings(text: str, code: str, pronounce: Pronounce) -> Iterator[tuple[Reading, float]]:
    """Sentences as they will be said, each with the pause after it in seconds."""
    from tutti.text.clean import clean
    from tutti.text.marks import parse
    from tutti.text.normalize import normalize
    from tutti.text.pack import PARAGRAPH_PAUSE_S
    from tutti.text.split import Sentence, sentences

    def said(sentence: Sentence, given: Mapping[int, str]) -> Reading:
        return pronounce(normalize(sentence.spoken, code), code, given)

    cleaned = clean(text)
    yield Reading((), cleaned.dropped), 0.0
    for passage in parse(cleaned.spoken):
        last: Sentence | None = None
        for sentence in sentences(passage.spoken):
            if last:
                yield said(last, passage.given), PARAGRAPH_PAUSE_S if last.paragraph_end else 0.0
            last = sentence
        yield said(last, passage.given) if last else Reading(()), passage.pause_s
