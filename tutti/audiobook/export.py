"""Write the audiobook from its journal: audio with chapters and cover, and captions beside it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from tutti.audio.loudness import SILENT, Finisher, Loudness, measure_lufs
from tutti.audio.tagged import ChapterMark, Container, FinishingWriter, Tags, Writer, writer
from tutti.audiobook.about import split_series
from tutti.audiobook.book import Book
from tutti.audiobook.journal import Journal
from tutti.audiobook.passages import Passage
from tutti.captions import CaptionFormat, Cue, cues, render
from tutti.engine.word_times import shift_source, shift_time, silence
from tutti.errors import NothingToSpeak
from tutti.files import atomic_write, write_error
from tutti.speech import SAMPLE_RATE, Samples, WordTime


@dataclass(frozen=True, slots=True)
class CaptionFile:
    """Where captions are written, and in which format."""

    path: Path
    kind: CaptionFormat
    by_word: bool = False


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The length of an audiobook, its chapters, and notes on what its file format cannot hold."""

    duration_s: float
    chapters: tuple[ChapterMark, ...]
    notes: tuple[str, ...]


OnWritten = Callable[[int], None]  # called with the number of passages written so far


def export_book(
    book: Book,
    plan: Sequence[Passage],
    journal: Journal,
    path: Path,
    kind: Container,
    captions: CaptionFile | None = None,
    on_written: OnWritten = lambda _: None,
    loudness: Loudness | None = None,
) -> ExportResult:
    """Write the files, each complete or not at all. An error raised by `on_written` stops it.

    `loudness`: of the whole book, which is measured before; none: as it was spoken.
    """
    marks = _chapter_marks(book, plan, journal)
    n_samples = sum(journal.n_samples.values()) + sum(len(silence(passage.pause_s)) for passage in plan)
    if not any(journal.n_samples.values()):
        raise NothingToSpeak("the book contains nothing that can be spoken", param="book")
    words: list[list[WordTime]] = [[] for _ in book.chapters] if captions else []
    lufs = SILENT if loudness is None else measure_lufs(_audio(plan, journal, on_written))
    with _file(path) as file:
        out: Writer = writer(kind, file, _tags(book, marks), n_samples)
        if loudness is not None:
            out = FinishingWriter(out, Finisher(lufs, loudness))
        try:
            at = 0
            for n, passage in enumerate(plan):
                speech = journal.load(n)
                pause = silence(passage.pause_s)
                out.write(speech.samples)
                out.write(pause)
                if captions:
                    placed = shift_source(speech, passage.start)
                    words[passage.chapter] += shift_time(placed, at / SAMPLE_RATE).words
                at += len(speech.samples) + len(pause)
                on_written(n + 1)
            out.close()
        except BaseException:
            out.abandon()
            raise
    if captions:
        text = render(_cues(book, words), captions.kind, by_word=captions.by_word)
        with _file(captions.path) as file:
            file.write(text.encode("utf-8", "replace"))
    notes = _format_notes(book, kind)
    if loudness is not None:
        notes = (
            *notes,
            f"the loudness was {lufs:.1f} LUFS and is {loudness.lufs:.1f}, peaks up to {loudness.peak_db} dB",
        )
    return ExportResult(n_samples / SAMPLE_RATE, tuple(marks), notes)


def _audio(plan: Sequence[Passage], journal: Journal, on_written: OnWritten) -> Iterator[Samples]:
    """The audio of a book, while nothing is written yet."""
    for n, passage in enumerate(plan):
        yield journal.load(n).samples
        yield silence(passage.pause_s)
        on_written(0)


@contextmanager
def _file(path: Path) -> Iterator[BinaryIO]:
    """Give a file that appears when it is complete; unbuffered, since FFmpeg reads back what it has written."""
    try:
        with atomic_write(path, buffering=0, locked=True) as file:  # by the journal
            yield file
    except OSError as exc:
        raise write_error(Path(path.name), exc) from exc


def _chapter_marks(book: Book, plan: Sequence[Passage], journal: Journal) -> list[ChapterMark]:
    """Start and end of each chapter; a chapter without speech has no mark."""
    marks: list[ChapterMark] = []
    at = 0
    for n, numbered in groupby(enumerate(plan), key=lambda item: item[1].chapter):
        start = at
        n_spoken = 0
        for i, passage in numbered:
            n_spoken += journal.n_samples[i]
            at += journal.n_samples[i] + len(silence(passage.pause_s))
        if n_spoken:
            marks.append(ChapterMark(book.chapters[n].title, start / SAMPLE_RATE, at / SAMPLE_RATE))
    return marks


def _tags(book: Book, marks: Sequence[ChapterMark]) -> Tags:
    series, number = split_series(book.series)
    return Tags(
        book.title, book.author, marks, book.cover,
        year=book.year, series=series, number=number, narrator=book.narrator, language=book.language,
    )  # fmt: skip


def _cues(book: Book, words: Sequence[Sequence[WordTime]]) -> Iterator[Cue]:
    for chapter, chapter_words in zip(book.chapters, words, strict=True):
        yield from cues(chapter.text, chapter_words)


def _format_notes(book: Book, kind: Container) -> tuple[str, ...]:
    """Name the parts of the book that this file format cannot hold."""
    notes = []
    if len(book.chapters) > 1 and not kind.chapters:
        notes.append(f"a {kind.suffix} file holds no chapters; .m4b, .mp3, .opus and .flac do")
    if book.cover and not kind.cover:
        notes.append(f"a {kind.suffix} file holds no cover; .m4b, .mp3 and .flac do")
    return tuple(notes)
