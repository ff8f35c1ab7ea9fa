"""From the journal to the files a listener gets: sound with chapters and cover, and captions beside it."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from tutti.audio.tagged import ChapterMark, Container, CoverImage, Tags, writer
from tutti.audiobook.book import Book
from tutti.audiobook.journal import Journal
from tutti.audiobook.passages import Passage
from tutti.captions import Cue, Kind, cues, written
from tutti.engine.word_times import silence
from tutti.errors import InvalidInput, NothingToSpeak, StorageFull
from tutti.speech import SAMPLE_RATE, WordTime


@dataclass(frozen=True, slots=True)
class Captions:
    """Where captions go, and how they are written."""

    path: Path
    kind: Kind
    by_word: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """What was made, and what the file could not hold."""

    duration_s: float
    n_chapters: int
    notes: tuple[str, ...]


Told = Callable[[int], None]  # how many passages are written


def finish(
    book: Book,
    plan: Sequence[Passage],
    journal: Journal,
    path: Path,
    kind: Container,
    captions: Captions | None = None,
    told: Told = lambda _: None,
) -> Finished:
    """Writes the files, whole or not at all. `told` may raise to stop it; the journal stays until it is removed."""
    marks = _marks(book, plan, journal)
    n_samples = sum(journal.n_samples.values()) + sum(len(silence(passage.pause_s)) for passage in plan)
    if not any(journal.n_samples.values()):
        raise NothingToSpeak("the book has nothing that can be said", param="book")
    words: list[list[WordTime]] = [[] for _ in book.chapters] if captions else []
    with whole_file(path) as file:
        out = writer(kind, file, _tags(book, marks), n_samples)
        try:
            at = 0
            for n, passage in enumerate(plan):
                kept = journal.kept(n)
                out.write(kept.samples)
                out.write(silence(passage.pause_s))
                if captions:
                    words[passage.chapter] += _later(kept.words, at / SAMPLE_RATE)
                at += len(kept.samples) + len(silence(passage.pause_s))
                told(n + 1)
            out.close()
        except BaseException:
            out.abandon()
            raise
    if captions:
        text = written(_cues(book, words), captions.kind, by_word=captions.by_word)
        with whole_file(captions.path) as file:
            file.write(text.encode("utf-8", "replace"))
    return Finished(n_samples / SAMPLE_RATE, len(marks), _left_out(book, kind))


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside the target, which becomes it when all is written and on the disk; else it is gone."""
    unfinished = path.with_name(f".{path.name}.partial")
    try:
        with unfinished.open("wb+", buffering=0) as file:
            yield file
            os.fsync(file.fileno())
        unfinished.replace(path)
        _sync_folder(path.parent)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StorageFull(f"no room left to write {path}; make room and go on, nothing spoken is lost") from exc
        raise InvalidInput(f"cannot write {path}: {exc.strerror or exc}", param="out") from exc
    finally:
        unfinished.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """The new name, too, must be on the disk; some file systems do not let a folder be told so."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _marks(book: Book, plan: Sequence[Passage], journal: Journal) -> list[ChapterMark]:
    """When each chapter is heard; one in which nothing is said has no mark."""
    marks: list[ChapterMark] = []
    at = 0
    for n, of_chapter in groupby(enumerate(plan), key=lambda each: each[1].chapter):
        start = at
        n_said = 0
        for i, passage in of_chapter:
            n_said += journal.n_samples[i]
            at += journal.n_samples[i] + len(silence(passage.pause_s))
        if n_said:
            marks.append(ChapterMark(book.chapters[n].title, start / SAMPLE_RATE, at / SAMPLE_RATE))
    return marks


def _tags(book: Book, marks: Sequence[ChapterMark]) -> Tags:
    cover = book.cover
    picture = CoverImage(cover.data, cover.kind, cover.width, cover.height) if cover else None
    return Tags(book.title, book.author, marks, picture)


def _later(words: Sequence[WordTime], by_s: float) -> Iterator[WordTime]:
    return (replace(word, start_s=word.start_s + by_s, end_s=word.end_s + by_s) for word in words)


def _cues(book: Book, words: Sequence[Sequence[WordTime]]) -> Iterator[Cue]:
    for chapter, heard in zip(book.chapters, words, strict=True):
        yield from cues(chapter.text, heard)


def _left_out(book: Book, kind: Container) -> tuple[str, ...]:
    """What a container of this kind does not hold of this book."""
    notes = []
    if len(book.chapters) > 1 and not kind.chapters:
        notes.append(f"a {kind.suffix} file holds no chapters; .m4b, .mp3, .opus and .flac do")
    if book.cover and not kind.cover:
        notes.append(f"a {kind.suffix} file holds no cover; .m4b, .mp3 and .flac do")
    return tuple(notes)
