"""Parse books in processes of their own, with a limit on time and memory: a book may be made to waste both."""

import asyncio
import logging
import os
import pickle
import resource
import socket
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tutti.audiobook.book import Book
from tutti.audiobook.cast import with_cast
from tutti.audiobook.formats import read_book
from tutti.audiobook.passages import Passage, check_chapter_marks, passages
from tutti.errors import Draining, InvalidInput, TuttiError
from tutti.process.link import ChildEnd
from tutti.process.supervisor import ChildLost, Supervisor
from tutti.tasks import wait_for_all
from tutti.text.options import DEFAULT_PAUSES, Pauses

TIMEOUT_S = 120.0  # for one book; a long novel takes a second
MAX_MEMORY = 2 << 30  # bytes of data of the process
NICE = 10  # added to the niceness of the process
CLOSING = "the book was not read: the server is shutting down"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BookFile:
    """A stored book, and how to read it."""

    path: Path
    name: str  # under which its owner knows it
    encoding: str | None
    voice_names: Mapping[str, str]  # that marks in it may use
    voices: Collection[str]  # and those that they may stand for
    cast: Sequence[str] = ()  # names of speakers
    pauses: Pauses = DEFAULT_PAUSES
    skip: Sequence[str] = ()  # parts that are not read


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


Answer = BookSummary | bytes | TuttiError  # bytes: a ParsedBook, which is unpickled beside the event loop


class BookProcesses:
    """Reads books, each in a process of its own; one process is kept for the next book."""

    def __init__(self) -> None:
        self._unused: list[_BookProcess] = []  # of which at most one runs
        self._used: set[_BookProcess] = set()
        self._is_closed = False

    async def read(self, file: BookFile) -> ParsedBook:
        """Parse a book that was checked before."""
        parsed = await self._ask(file, whole=True)
        return cast(ParsedBook, await asyncio.to_thread(pickle.loads, cast(bytes, parsed)))

    async def check(self, file: BookFile) -> BookSummary:
        """Parse and check a book; raise InvalidInput if it is wrong or takes too much.

        The book itself stays in the other process: its memory has a limit, that of this one has none.
        """
        return cast(BookSummary, await self._ask(file, whole=False))

    async def _ask(self, file: BookFile, *, whole: bool) -> Answer:
        if self._is_closed:
            raise Draining(CLOSING)
        process = self._unused.pop() if self._unused else _BookProcess()
        self._used.add(process)
        try:
            answer = await process.ask(file, whole)
        finally:
            self._used.discard(process)
            if any(other.is_running for other in self._unused):
                process.end()
            # Those that run are the first to be used again.
            self._unused.insert(len(self._unused) if process.is_running else 0, process)
        if isinstance(answer, TuttiError):
            for cause in getattr(answer, "__notes__", ()):
                log.error("reading a book failed: %s", cause)
            raise answer
        return answer

    async def close(self) -> None:
        """End all processes; books that are being read, or are to be read, raise Draining."""
        self._is_closed = True
        await wait_for_all([process.close() for process in (*self._used, *self._unused)])


class _BookProcess:
    """Reads one book at a time. Its process is started for a book, kept for the next one, and ended if one fails."""

    def __init__(self) -> None:
        self.is_running = False
        self._has_ended = False  # by `end`: its book has been answered
        self._supervisor = Supervisor(
            "tutti-book", _child_main, (),
            began=self._began, receive=self._receive, lost=self._lost, grace_s=0.0,
        )  # fmt: skip
        self._question: tuple[BookFile, bool] | None = None
        self._answer: asyncio.Future[Answer] | None = None

    async def ask(self, file: BookFile, whole: bool) -> Answer:
        self._question, self._answer = (file, whole), asyncio.get_running_loop().create_future()
        self._supervisor.start()
        if self.is_running:
            self._send()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._answer
        except TimeoutError:
            self._supervisor.kill(ChildLost("takes too long"))
            self.end()
            raise InvalidInput(
                f"the book takes more than {TIMEOUT_S:.0f} s to read; split it into several", param="book"
            ) from None
        except BaseException:  # the book has ended its process, or is not wanted any more
            self.end()
            raise

    def end(self) -> None:
        """Kill the process; the next one is started for the next book."""
        self.is_running, self._has_ended = False, True
        self._supervisor.retire()
        self._supervisor.replace()

    async def close(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Draining(CLOSING))
        await self._supervisor.close()

    def _send(self) -> None:
        if self._supervisor.link is not None and self._question is not None:
            self._supervisor.link.send(self._question)
            self._question = None

    def _began(self) -> None:
        self._has_ended = False

    def _receive(self, message: Answer | None) -> None:
        if message is None:  # it has begun
            self._supervisor.answered()
            self.is_running = True
            self._send()
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(message)

    def _lost(self, reason: Exception, wait_s: float) -> None:
        error, has_ended = reason, self._has_ended
        self.end()
        if isinstance(reason, ChildLost):
            if has_ended:
                return
            error = InvalidInput("the book takes too much memory to read; split it into several", param="book")
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


# In the process:


def _child_main(end: socket.socket) -> None:
    """Read books until the parent closes the connection."""
    channel = ChildEnd(end)
    os.nice(NICE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    with suppress(EOFError, ConnectionError):
        channel.send(None)
        while True:
            channel.send(_read(*channel.receive()))


def _read(file: BookFile, whole: bool) -> Answer:
    try:
        with file.path.open("rb") as source:
            book = with_cast(read_book(source, file.name, file.encoding, file.skip), file.cast)
        pause_s = check_chapter_marks(book.chapters, file.voice_names, file.voices)
        parsed = ParsedBook(book, tuple(passages(book.chapters, file.pauses)), pause_s)
        return pickle.dumps(parsed, pickle.HIGHEST_PROTOCOL) if whole else summary(parsed)
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
