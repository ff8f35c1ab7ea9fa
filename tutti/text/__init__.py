"""From any text to chunks of phonemes, each tied to its place in the original."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Reading

if TYPE_CHECKING:
    from tutti.text.user_lexicon import UserLexicon

Pronounce = Callable[[AlignedText, str, Mapping[int, str]], Reading]


def chunks(
    text: str, code: str, pronounce: Pronounce, own: "UserLexicon | None" = None, *, patient: bool = False
) -> Iterator[Chunk]:
    """The chunks of a text in order, each made only when it is asked for; `own` words sound as their author says.

    One who is `patient` does not wait for the first: it is filled like the others.

    A mark that is wrong raises InvalidInput with the first chunk, before anything was pronounced. A book is read
    stretch by stretch, so that it takes no more memory, and its first chunk no more time, than a few pages.
    """
    from tutti.text.chunker import pack

    return pack(_readings(text, code, pronounce, own), patient=patient)


def _readings(text: str, code: str, pronounce: Pronounce, own: "UserLexicon | None") -> Iterator[tuple[Reading, float]]:
    """Sentences as they will be said, each with the pause after it in seconds."""
    from dataclasses import replace

    from tutti.text import ssml
    from tutti.text.chunker import PARAGRAPH_PAUSE_S
    from tutti.text.clean import clean
    from tutti.text.incremental import parted
    from tutti.text.marks import Passage, parse
    from tutti.text.normalize import normalize
    from tutti.text.split import Sentence, ends_paragraph, sentences

    def said(sentence: Sentence, passage: Passage) -> Reading:
        spoken, given = sentence.spoken, passage.given
        if own is not None:
            spoken, found = own.put(spoken)
            given = {**given, **found}
        language = passage.manner.language or code
        return replace(pronounce(normalize(spoken, language), language, given), manner=passage.manner)

    for stretch in parted(text):
        cleaned = clean(ssml.marked(text) if ssml.is_ssml(text) else AlignedText.of(stretch.said, stretch.shift))
        yield Reading((), cleaned.dropped), 0.0
        passages = parse(cleaned.spoken)
        for passage in passages:
            last: Sentence | None = None
            for sentence in sentences(passage.spoken):
                if last:
                    yield said(last, passage), PARAGRAPH_PAUSE_S if last.paragraph_end else 0.0
                last = sentence
            pause_s = passage.pause_s
            more = stretch.more or passage is not passages[-1]
            if not pause_s and more and ends_paragraph(passage.spoken):
                pause_s = PARAGRAPH_PAUSE_S
            yield said(last, passage) if last else Reading(()), pause_s
