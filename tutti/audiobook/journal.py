"""What has been spoken of a book, kept in one SQLite file: a passage is in it whole, or not at all."""

import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np

from tutti.audio import encoder
from tutti.errors import InvalidInput, StorageFull, TuttiError
from tutti.speech import Samples, WordTime

LAYOUT = 1  # of the file; another number starts over
_TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passages (
    n INTEGER PRIMARY KEY, samples BLOB NOT NULL, words TEXT NOT NULL, dropped TEXT NOT NULL, digest BLOB NOT NULL
);
"""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A passage that was spoken: its words are timed from its own start and placed in its chapter's text."""

    samples: Samples
    words: tuple[WordTime, ...] = ()
    dropped: tuple[str, ...] = ()


class Journal:
    """One reading of one book. Owns its file: a second process that opens it is told so."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Goes on where a reading with the same fingerprint was left; `started_over` says why it could not."""
        self.path = path
        self.started_over = ""
        self.n_samples: dict[int, int] = {}  # of every passage that is kept
        self._db = self._opened()
        with _explained(path):
            found = dict(self._db.execute("SELECT key, value FROM about"))
            if found.get("fingerprint") != fingerprint or found.get("layout") != str(LAYOUT):
                if found:
                    self.started_over = "the book, the voice or a setting is not what it was"
                with self._db:
                    self._db.execute("DELETE FROM passages")
                    rows = {"fingerprint": fingerprint, "layout": str(LAYOUT)}
                    self._db.executemany("REPLACE INTO about VALUES (?, ?)", rows.items())
            self._take_stock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def keep(self, n: int, kept: Kept) -> None:
        """Returns when the passage is on the disk. Raises StorageFull, with all that was kept before still there."""
        samples = encoder("pcm").encode(kept.samples)
        words = json.dumps([[*astuple(word)[:3], *word.span] for word in kept.words], ensure_ascii=False)
        dropped = json.dumps(kept.dropped)
        with _explained(self.path), self._db:
            row = (n, samples, words, dropped, _digest(samples, words, dropped))
            self._db.execute("REPLACE INTO passages VALUES (?, ?, ?, ?, ?)", row)
        self.n_samples[n] = len(samples) // 2

    def kept(self, n: int) -> Kept:
        """A passage as it was kept, to the last bit."""
        with _explained(self.path):
            row = self._db.execute("SELECT samples, words, dropped, digest FROM passages WHERE n = ?", (n,)).fetchone()
        if row is None or _digest(*row[:3]) != row[3]:
            raise TuttiError(f"passage {n + 1} in {self.path} is damaged; run it again, and it is spoken again")
        samples = np.frombuffer(row[0], "<i2").astype(np.float32) / np.float32(32767)
        words = (WordTime(word, start_s, end_s, (a, b)) for word, start_s, end_s, a, b in json.loads(row[1]))
        return Kept(samples, tuple(words), tuple(json.loads(row[2])))

    def dropped(self) -> Counter[str]:
        """Symbols that nobody could say, in all that is kept."""
        found: Counter[str] = Counter()
        for (dropped,) in self._db.execute("SELECT dropped FROM passages WHERE dropped != '[]'"):
            found.update(json.loads(dropped))
        return found

    def remove(self) -> None:
        """The reading is done, and its file no longer needed."""
        self.close()
        for path in (self.path, Path(f"{self.path}-journal")):
            path.unlink(missing_ok=True)

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connected(self.path)
        except sqlite3.DatabaseError as exc:
            if getattr(exc, "sqlite_errorcode", 0) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise _typed(self.path, exc) from exc
            self.started_over = f"{self.path.name} is damaged"
            self.path.unlink()
            with _explained(self.path):
                return _connected(self.path)

    def _take_stock(self) -> None:
        """Notes what is there and whole; what is damaged is spoken again."""
        damaged: list[tuple[int]] = []
        for n, samples, words, dropped, digest in self._db.execute("SELECT * FROM passages"):
            if _digest(samples, words, dropped) == digest:
                self.n_samples[n] = len(samples) // 2
            else:
                damaged.append((n,))
        if damaged:
            log.warning("damaged passages=%d journal=%s", len(damaged), self.path.name)
            with self._db:
                self._db.executemany("DELETE FROM passages WHERE n = ?", damaged)


def _connected(path: Path) -> sqlite3.Connection:
    # Threads take turns: whoever reads a book hands every call to one thread, but not always from the same one.
    db = sqlite3.connect(path, timeout=0, check_same_thread=False)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA synchronous = FULL")
        db.executescript(f"BEGIN EXCLUSIVE; {_TABLES} COMMIT;")
    except BaseException:
        db.close()
        raise
    return db


def _digest(samples: bytes, words: str, dropped: str) -> bytes:
    return blake2b(samples + words.encode() + dropped.encode(), digest_size=16).digest()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        raise _typed(path, exc) from exc


def _typed(path: Path, exc: sqlite3.Error) -> TuttiError:
    match getattr(exc, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StorageFull(f"no room left to write {path}; what was spoken so far is kept: make room and go on")
        case sqlite3.SQLITE_IOERR:
            return StorageFull(f"the disk under {path} does not take what is written; what was kept before is kept")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return InvalidInput(f"another process is reading this book into {path.name}", param="out")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return InvalidInput(f"cannot write {path}: {exc}", param="out")
    return TuttiError(f"{path} cannot be used: {exc}; remove it to start over")
