"""From any text to chunks of phonemes, each word with its source in the original text."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import DEFAULT_PACE, Chunk, ChunkPace, Pronunciation
from tutti.text.options import DEFAULT_OPTIONS, TextOptions

if TYPE_CHECKING:
    from tutti.text.chunker import ChunkSizes
    from tutti.text.user_lexicon import UserLexicon

# A sentence of plain words, its language code, and the IPA given by the caller, keyed by its offset in the original.
Pronounce = Callable[[AlignedText, str, Mapping[int, str]], Pronunciation]


def chunks(
    text: str,
    code: str,
    pronounce: Pronounce,
    user_lexicon: "UserLexicon | None" = None,
    *,
    whole_text: bool = False,
    sizes: "ChunkSizes | None" = None,
    pace: ChunkPace = DEFAULT_PACE,
    options: TextOptions = DEFAULT_OPTIONS,
) -> Iterator[Chunk]:
    """Yield the chunks of a text in order, each computed only when it is requested.

    With `whole_text`, for callers that need all of the audio, the first chunk is not kept short; else `pace` says how
    short. `sizes` are those of the other chunks.

    A wrong mark raises InvalidInput with the first chunk, before anything is pronounced. Long texts are processed in
    segments of a few pages, so that memory and the time to the first chunk do not grow with their length.
    """
    from tutti.text.chunker import Chunker, ChunkSizes

    sizes = sizes or ChunkSizes()
    chunker = Chunker(whole_text=whole_text, pace=pace, enough_symbols=sizes.enough, target_symbols=sizes.target)
    all_chunks = chunker.chunks(_sentences(text, code, pronounce, user_lexicon, options))
    return all_chunks if options.with_words else (chunk.joined() for chunk in all_chunks)


def _sentences(
    text: str, code: str, pronounce: Pronounce, user_lexicon: "UserLexicon | None", options: TextOptions
) -> Iterator[tuple[Pronunciation, float]]:
    """Yield the pronounced sentences, each with the pause after it in seconds."""
    from tutti.text import ssml
    from tutti.text.clean import clean
    from tutti.text.code_blocks import SKIP_NOTICE, has_block
    from tutti.text.incremental import split_text
    from tutti.text.language import check_spoken
    from tutti.text.marks import parse_marks
    from tutti.text.sentence_reader import SentenceReader
    from tutti.text.split import AlignedSentence, is_silent, pause_after, sentences
    from tutti.text.tags import tag_notices

    reader = SentenceReader(code, pronounce, user_lexicon, options)
    has_skipped, noticed = False, set[str]()
    document: ssml.SsmlText | None = None
    if ssml.is_ssml(text):
        parser = ssml.SsmlParser(text, code, options.voice_names)
        while parser.parse_some():
            yield Pronunciation(()), 0.0  # the caller may stop here: a document may have twenty thousand tags
        document = parser.document()
    notices = document.notices if document else ()
    for segment in split_text(document.aligned.text if document else text):
        if not segment.text or segment.text.isspace():
            yield Pronunciation((), notices=notices), 0.0  # the caller may stop here: a million blank lines may follow
            notices = ()
            continue
        if document:
            aligned = _part(document.aligned, segment.at, len(segment.text), segment.marks)
        else:
            aligned = AlignedText.of(segment.marked_text, segment.offset)
        if options.code_blocks == "skip" and not has_skipped and has_block(aligned.text):
            has_skipped = True
            notices = (*notices, SKIP_NOTICE)
        emoji_names = options.normalization.emoji_normalization
        cleaned = clean(aligned, code, options.code_blocks, emoji_names=emoji_names)
        new = [notice for notice in tag_notices(aligned.text) if notice not in noticed]
        noticed.update(new)
        yield Pronunciation((), cleaned.dropped, notices=(*notices, *new)), 0.0
        notices = ()
        styled_texts = parse_marks(cleaned.aligned)
        for styled in styled_texts:
            if styled.style.language:
                check_spoken(styled.style.language, "of this text", {"of this text": options.model_language or code})
        for styled in styled_texts:
            previous: AlignedSentence | None = None
            silent = user_lexicon is None and is_silent(styled.aligned.text)  # a lexicon may speak any sign
            for sentence in () if silent else sentences(styled.aligned):
                if previous:
                    pause_s = pause_after(previous.aligned.text, options.pauses, paragraph_end=previous.paragraph_end)
                    yield reader.read(previous, styled), pause_s
                previous = sentence
            pause_s = styled.pause_s
            more_follows = segment.has_more or styled is not styled_texts[-1]
            if not pause_s and more_follows:
                pause_s = pause_after(styled.aligned.text, options.pauses)
            yield reader.read(previous, styled) if previous else Pronunciation(()), pause_s


def _part(aligned: AlignedText, at: int, n_characters: int, marks: str) -> AlignedText:
    """Return a part of a text behind the marks that are in force there."""
    part = aligned[at : at + n_characters]
    if not marks:
        return part
    start = part.starts[0]
    return AlignedText(marks, (start,) * len(marks), (start,) * len(marks)) + part
