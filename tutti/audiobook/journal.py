"""Spoken passages of a book in one SQLite file: a passage is stored completely or not at all."""

import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np

from tutti.audio import encoder
from tutti.engine.word_times import covered_span
from tutti.errors import InvalidInput, StorageFull, TuttiError
from tutti.speech import Speech, WordTime

LAYOUT = 1  # version of the tables; a journal of another version is cleared
MAX_NOTICES = 20  # that are named; SSML may have any number
_TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passages (
    n INTEGER PRIMARY KEY, samples BLOB NOT NULL, words TEXT NOT NULL, dropped TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS notices (n INTEGER, notice TEXT, PRIMARY KEY (n, notice)) WITHOUT ROWID;
"""
log = logging.getLogger(__name__)


class Journal:
    """The spoken passages of one book. Locks its file: a second process gets InvalidInput."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Open or create; passages of another fingerprint are deleted, and `restart_reason` says why."""
        self.path = path
        self.restart_reason = ""
        self.n_samples: dict[int, int] = {}  # of every stored passage
        self._db = self._open()
        with _storage_errors(path):
            about = dict(self._db.execute("SELECT key, value FROM about"))
            if about.get("fingerprint") != fingerprint or about.get("layout") != str(LAYOUT):
                if about:
                    self.restart_reason = "the book, the voice or a setting has changed"
                with self._db:
                    self._db.execute("DELETE FROM passages")
                    self._db.execute("DELETE FROM notices")
                    rows = {"fingerprint": fingerprint, "layout": str(LAYOUT)}
                    self._db.executemany("REPLACE INTO about VALUES (?, ?)", rows.items())
            self._index()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def save(self, n: int, speech: Speech) -> None:
        """Store a passage; it is on the disk when this returns. StorageFull leaves the earlier passages intact."""
        samples = encoder("pcm").encode(speech.samples)
        words = json.dumps(
            [[word.word, word.start_s, word.end_s, *word.span] for word in speech.words], ensure_ascii=False
        )
        dropped = json.dumps(speech.dropped)
        with _storage_errors(self.path), self._db:
            row = (n, samples, words, dropped, _digest(samples, words, dropped))
            self._db.execute("REPLACE INTO passages VALUES (?, ?, ?, ?, ?)", row)
            self._db.executemany("REPLACE INTO notices VALUES (?, ?)", ((n, notice) for notice in speech.notices))
        self.n_samples[n] = len(samples) // 2

    def load(self, n: int) -> Speech:
        """Read a passage back, bit for bit; its words are timed from its start and placed in its chapter's text."""
        with _storage_errors(self.path):
            row = self._db.execute("SELECT samples, words, dropped, digest FROM passages WHERE n = ?", (n,)).fetchone()
        if row is None or _digest(*row[:3]) != row[3]:
            raise TuttiError(f"passage {n + 1} in {self.path} is damaged; run the same command again to speak it again")
        samples = np.frombuffer(row[0], "<i2").astype(np.float32) / np.float32(32767)
        words = tuple(WordTime(word, start_s, end_s, (a, b)) for word, start_s, end_s, a, b in json.loads(row[1]))
        return Speech(samples, words, covered_span(words), tuple(json.loads(row[2])))

    def dropped(self) -> Counter[str]:
        """Count the symbols that could not be spoken."""
        counts: Counter[str] = Counter()
        for (dropped,) in self._db.execute("SELECT dropped FROM passages WHERE dropped != '[]'"):
            counts.update(json.loads(dropped))
        return counts

    def notices(self) -> list[str]:
        """What has no effect or is in another language, in the order of the book, and in how many passages if not one.

        Passages that an earlier version has spoken have none.
        """
        rows = self._db.execute("SELECT notice, count(*) FROM notices GROUP BY notice ORDER BY min(n), notice")
        named = [notice if n == 1 else f"{notice} ({n} passages)" for notice, n in rows]
        return [*named[:MAX_NOTICES], *([f"and {len(named) - MAX_NOTICES} more"] if named[MAX_NOTICES:] else [])]

    def remove(self) -> None:
        """Delete the file once the audiobook is written."""
        self.close()
        for path in (self.path, Path(f"{self.path}-journal")):
            path.unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self.path)
        except sqlite3.DatabaseError as exc:
            if getattr(exc, "sqlite_errorcode", 0) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise _error(self.path, exc) from exc
            self.restart_reason = f"{self.path.name} is damaged"
            self.path.unlink()
            with _storage_errors(self.path):
                return _connect(self.path)

    def _index(self) -> None:
        """Fill `n_samples`, and delete damaged passages so that they are spoken again."""
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


def _connect(path: Path) -> sqlite3.Connection:
    # Used by one thread at a time, but not always by the same one.
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
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        raise _error(path, exc) from exc


def _error(path: Path, exc: sqlite3.Error) -> TuttiError:
    match getattr(exc, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StorageFull(f"no room left to write {path}; free some space and resume, spoken passages are kept")
        case sqlite3.SQLITE_IOERR:
            return StorageFull(f"the disk under {path} failed while writing; passages stored before are kept")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return InvalidInput(f"another process is already reading this book into {path.name}", param="out")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return InvalidInput(f"cannot write {path}: {exc}", param="out")
    return TuttiError(f"{path} cannot be used: {exc}; remove it to start over")
