"""Cut chapters into passages of a few sentences: the unit that is spoken, stored and resumed from."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tutti.audiobook.book import Chapter, check_number
from tutti.errors import InvalidInput
from tutti.text.aligned_text import AlignedText
from tutti.text.clean import clean
from tutti.text.code_blocks import update_code_mark
from tutti.text.marks import parse_marks, pause_marks, update_marks, voices_named
from tutti.text.options import DEFAULT_PAUSES, Pauses
from tutti.text.split import pause_after, sentences
from tutti.text.ssml import is_ssml, ssml_to_marks
from tutti.voices import parse_blend, resolve_aliases

MIN_CHARACTERS = 400  # a passage ends with the paragraph that reaches this; larger loses more work in a crash
MAX_CHARACTERS = 1000  # a longer paragraph is cut between sentences
WINDOW = 20_000  # characters of an endless paragraph that are split into sentences at once
MAX_PASSAGE_PAUSE_S = 60.0  # of written pauses, after which a passage ends; more takes more memory
MAX_SSML_PAUSE_S = 600.0  # of a chapter in SSML, which is one passage
MAX_PASSAGES = 100_000  # of a book; the longest has about half as many, unless its pauses cut it into more


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a chapter, the marks still in force where it begins, and the silence after it."""

    chapter: int
    start: int  # in the chapter's text
    end: int
    marks: str = ""
    pause_s: float = 0.0

    def text(self, chapters: Sequence[Chapter]) -> str:
        """The text for the engine: the marks in force, then the passage."""
        return self.marks + chapters[self.chapter].text[self.start : self.end]


def passages(chapters: Sequence[Chapter], pauses: Pauses = DEFAULT_PAUSES) -> Iterator[Passage]:
    """Every passage of a book in order; together they are the whole text except white space between them.

    Raise InvalidInput after MAX_PASSAGES.
    """
    n_passages = 0
    for n, chapter in enumerate(chapters):
        marks: dict[str, str] = {}
        cuts = list(islice(_cut_at_pauses(chapter.text, _cuts(chapter.text)), MAX_PASSAGES + 1))
        n_passages += len(cuts)
        check_number(n_passages, MAX_PASSAGES, "passages")
        for i, (start, end, paragraph_end) in enumerate(cuts):
            pause_s = pause_after(chapter.text[start:end], pauses, paragraph_end=paragraph_end)
            pause_s = pauses.chapter / 1000 if i == len(cuts) - 1 else pause_s
            yield Passage(n, start, end, "".join(marks.values()), pause_s)
            update_code_mark(marks, chapter.text[start:end])
            update_marks(marks, chapter.text[start:end])


def check_chapter_marks(chapters: Sequence[Chapter], names: Mapping[str, str], voices: Collection[str]) -> float:
    """Raise InvalidInput, with the chapter, for the first wrong mark, before hours of speech are made.

    `names`: of the caller's, for voices. Return the seconds of all pauses that are written in the text.
    """
    pause_s = 0.0
    for n, chapter in enumerate(chapters):
        if "[" not in chapter.text and "<" not in chapter.text:
            continue
        try:
            as_ssml = is_ssml(chapter.text)
            styled_texts = parse_marks(clean(ssml_to_marks(chapter.text) if as_ssml else chapter.text).aligned)
            chapter_pause_s = sum(styled.pause_s for styled in styled_texts)
            if as_ssml and chapter_pause_s > MAX_SSML_PAUSE_S:
                raise InvalidInput(
                    f"the pauses of a chapter in SSML may have {MAX_SSML_PAUSE_S:.0f} seconds together", param="book"
                )
            pause_s += chapter_pause_s
            for name in voices_named(chapter.text):
                parse_blend(resolve_aliases(name, names), voices)
        except InvalidInput as exc:
            exc.message = f"chapter {n + 1} ({chapter.title}): {exc.message}"
            raise
    return pause_s


def _cuts(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start and end of each passage, and whether a paragraph ends with it."""
    if is_ssml(text):  # its elements may span paragraphs
        yield 0, len(text), True
        return
    start: int | None = None
    for a, b in _paragraphs(text):
        if b - a <= MAX_CHARACTERS:
            start = a if start is None else start
            if b - start >= MIN_CHARACTERS:
                yield start, b, True
                start = None
            continue
        if start is not None:
            yield start, _end_before(text, a), True
            start = None
        pieces = list(_pieces(text, a, b))
        for i, (c, d) in enumerate(pieces):
            yield c, d, i == len(pieces) - 1
    if start is not None:
        yield start, len(text.rstrip()), True


def _cut_at_pauses(text: str, cuts: Iterable[tuple[int, int, bool]]) -> Iterator[tuple[int, int, bool]]:
    """Cut passages again after long pauses, so that none is much longer than MAX_PAUSE_S: it is held in memory."""
    for start, end, paragraph_end in cuts:
        pause_s = 0.0
        for mark in pause_marks(text, start, end):
            pause_s += mark.seconds
            if pause_s >= MAX_PASSAGE_PAUSE_S and text[mark.end : end].strip():
                yield start, mark.end, False
                start, pause_s = mark.end, 0.0
        yield start, end, paragraph_end


_BLANK = re.compile(r"\n(?:[ \t]*+\n)++")


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for gap in _BLANK.finditer(text):
        if text[at : gap.start()].strip():
            yield at, gap.start()
        at = gap.end()
    if text[at:].strip():
        yield at, len(text)


def _end_before(text: str, at: int) -> int:
    return len(text[:at].rstrip()) if at < WINDOW else at - WINDOW + len(text[at - WINDOW : at].rstrip())


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a long paragraph between sentences; inside square brackets only if there is no other place."""
    piece_start = at = start
    while at < end:
        stop = end if end - at <= WINDOW else max(text.rfind(" ", at + 1, at + WINDOW), at + MAX_CHARACTERS)
        for n, sentence in enumerate(sentences(AlignedText.of(text[at:stop]))):
            begins = at + sentence.aligned.starts[0]
            piece = text[piece_start:begins]
            whole = (n > 0 or at == start) and piece.count("[") == piece.count("]")
            if len(piece) >= (MIN_CHARACTERS if whole else 4 * MAX_CHARACTERS):
                yield piece_start, piece_start + len(piece.rstrip())
                piece_start = begins
        at = stop
    if text[piece_start:end].strip():
        yield piece_start, end
