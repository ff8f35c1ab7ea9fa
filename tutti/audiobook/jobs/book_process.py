"""Parse books in processes of their own, with a limit on time and memory: a book may be made to waste both."""

import logging
import os
import resource
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.audiobook.passages import Passage, check_chapter_marks, passages
from tutti.errors import Draining, InvalidInput, TuttiError
from tutti.process.child import ChildProcess

TIMEOUT_S = 120.0  # for one book; a long novel takes a second
MAX_MEMORY = 2 << 30  # bytes of data of the process
CHECK_S = 0.2  # between two looks at whether the book is still wanted
NICE = 10  # added to the niceness of the process
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BookFile:
    """A stored book, and how to read it."""

    path: Path
    name: str  # under which its owner knows it
    encoding: str | None
    voice_names: Mapping[str, str]  # that marks in it may use


@dataclass(frozen=True, slots=True)
class ParsedBook:
    """A book, its passages, and the seconds of all pauses that are written in it."""

    book: Book
    plan: tuple[Passage, ...]
    pause_s: float


@dataclass(frozen=True, slots=True)
class BookSummary:
    """What a job stores of a book: small, however long the book is."""

    title: str
    author: str
    language: str
    n_chapters: int
    n_characters: int
    notes: tuple[str, ...]
    pause_s: float


class BookProcesses:
    """Reads books, each in a process of its own; one process is kept. The methods may be called from any thread."""

    def __init__(self) -> None:
        self._idle: list[_BookProcess] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def read(self, file: BookFile) -> ParsedBook:
        """Parse a book that was checked before."""
        return cast(ParsedBook, self._ask(file, None, whole=True))

    def check(self, file: BookFile, cancelled: threading.Event) -> BookSummary:
        """Parse and check a book; raise InvalidInput if it is wrong or takes too much, Draining if nobody waits.

        The book itself stays in the other process: its memory has a limit, that of this one has none.
        """
        return cast(BookSummary, self._ask(file, cancelled, whole=False))

    def _ask(self, file: BookFile, cancelled: threading.Event | None, *, whole: bool) -> ParsedBook | BookSummary:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or _BookProcess()
        try:
            answer = self._wait(process, file, cancelled, whole)
        except BaseException:
            process.kill()
            raise
        with self._lock:
            if self._closing.is_set() or self._idle:
                process.kill()
            else:
                self._idle.append(process)
        if isinstance(answer, TuttiError):
            for cause in getattr(answer, "__notes__", ()):
                log.error("reading a book failed: %s", cause)
            raise answer
        return answer

    def close(self) -> None:
        """End all processes; `read` raises Draining at once."""
        self._closing.set()
        with self._lock:
            for process in self._idle:
                process.kill()
            self._idle.clear()

    def _wait(
        self, process: "_BookProcess", file: BookFile, cancelled: threading.Event | None, whole: bool
    ) -> ParsedBook | BookSummary | TuttiError:
        until_s = time.monotonic() + TIMEOUT_S
        try:
            process.connection.send((file, whole))
            while not process.connection.poll(CHECK_S):
                if self._closing.is_set() or (cancelled is not None and cancelled.is_set()):
                    raise Draining("the book was not read: the server is shutting down, or the caller has left")
                if time.monotonic() > until_s:
                    raise InvalidInput(
                        f"the book takes more than {TIMEOUT_S:.0f} s to read; split it into several", param="book"
                    )
            answer: ParsedBook | BookSummary | TuttiError = process.connection.recv()
        except (EOFError, OSError) as exc:
            raise InvalidInput("the book takes too much memory to read; split it into several", param="book") from exc
        return answer


class _BookProcess:
    """A process, and the connection to it."""

    def __init__(self) -> None:
        self._child = ChildProcess("tutti-book", _child_main)
        self.connection = Connection(self._child.socket.detach())

    def kill(self) -> None:
        self.connection.close()
        self._child.stop(grace_s=0.0)


# In the process:


def _child_main(end: socket.socket) -> None:
    """Read books until the parent closes the connection."""
    connection = Connection(end.detach())
    os.nice(NICE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    with suppress(EOFError, ConnectionError):
        while True:
            connection.send(_read(*connection.recv()))


def _read(file: BookFile, whole: bool) -> ParsedBook | BookSummary | TuttiError:
    try:
        with file.path.open("rb") as source:
            book = read_book(source, file.name, file.encoding)
        pause_s = check_chapter_marks(book.chapters, file.voice_names)
        parsed = ParsedBook(book, tuple(passages(book.chapters)), pause_s)
        return parsed if whole else summary(parsed)
    except TuttiError as exc:
        return exc
    except MemoryError:
        return InvalidInput("the book takes too much memory to read; split it into several", param="book")
    except FileNotFoundError as exc:
        return _failure("the server has lost the file of this book; delete the job and send the book again", exc)
    except Exception as exc:  # noqa: BLE001 - raised by the parent
        return _failure("the server failed to read this book; its log has the details", exc)


def _failure(message: str, exc: Exception) -> TuttiError:
    """The error for the caller, without what the exception says of the server's files: the log has that."""
    error = TuttiError(message)
    error.add_note(repr(exc))
    return error


def summary(parsed: ParsedBook) -> BookSummary:
    book = parsed.book
    return BookSummary(
        book.title, book.author, book.language, len(book.chapters), book.n_characters, book.notes, parsed.pause_s
    )
