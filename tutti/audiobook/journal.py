"""Spoken passages of a book in one SQLite file: a passage is stored completely or not at all."""

import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np

from tutti.audio import encoder
from tutti.engine.word_times import covered_source
from tutti.errors import InvalidInput, StorageFull, TuttiError
from tutti.speech import Speech, WordTime

LAYOUT = 3  # version of the tables; a journal of another version is cleared
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
MAX_NOTICES = 20  # that are named; SSML may have any number
_TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passages (
    n INTEGER PRIMARY KEY, samples BLOB NOT NULL, words TEXT NOT NULL, dropped TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS keys (n INTEGER PRIMARY KEY, key TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS notices (n INTEGER, notice TEXT, PRIMARY KEY (n, notice)) WITHOUT ROWID;
"""
log = logging.getLogger(__name__)


class Journal:
    """The spoken passages of one book. Locks its file: a second process gets InvalidInput."""

    def __init__(self, path: Path, fingerprint: str, keys: Sequence[str] = ()) -> None:
        """Open or create. `keys`: of each passage, all that its audio depends on; no two are equal.

        If the fingerprint of the book is another one, passages with a key of this book are kept and `change` says so;
        if there are none, `restart_reason` says why. Passages that are damaged are deleted, and `repair` says so.
        """
        self.path = path
        self.change = ""
        self.restart_reason = ""
        self.repair = ""
        self.n_samples: dict[int, int] = {}  # of every stored passage
        self._fingerprint = fingerprint
        self._keys = keys
        with _storage_errors(path):
            self._db = self._open()
            try:
                self._restart_if_changed()
                self._index()
            except BaseException:
                self._db.close()  # and with it the lock
                raise

    def _restart_if_changed(self) -> None:
        """Delete passages of another narration."""
        about = dict(self._db.execute("SELECT key, value FROM about"))
        if about.get("fingerprint") == self._fingerprint and about.get("layout") == str(LAYOUT):
            return
        with self._db:
            places = self._kept_places() if about.get("layout") == str(LAYOUT) else {}
            self._move(places)
            self._save_about(self._db)
        if places:
            self.change = "the book or how it is read has changed: only what differs is spoken again"
        elif about:
            self.restart_reason = "the book, the voice or a setting has changed"

    def _kept_places(self) -> dict[int, int]:
        """The new places of the stored passages that this book has, too, by their old ones."""
        places = {key: n for n, key in enumerate(self._keys)}
        rows = self._db.execute("SELECT n, key FROM keys WHERE n IN (SELECT n FROM passages)")
        return {n: places[key] for n, key in rows if key in places}

    def _move(self, places: Mapping[int, int]) -> None:
        """Give passages their new places, and delete the others."""
        for (n,) in self._db.execute("SELECT n FROM passages").fetchall():
            if n != (place := places.get(n)):
                self._move_passage(n, place)
        for table in ("passages", "notices"):
            self._db.execute(f"UPDATE {table} SET n = -n - 1 WHERE n < 0")

    def _move_passage(self, n: int, place: int | None) -> None:
        """Move a sound passage below 0, where no other one is; delete one that is damaged or has no place."""
        row = self._db.execute("SELECT * FROM passages WHERE n = ?", (n,)).fetchone()
        _, samples, words, dropped, digest = row
        if place is None or digest != self._digest(n, self._keys[place], samples, words, dropped):
            for table in ("passages", "notices"):
                self._db.execute(f"DELETE FROM {table} WHERE n = ?", (n,))
            return
        new = self._digest(place, self._keys[place], samples, words, dropped)
        self._db.execute("UPDATE passages SET n = ?, digest = ? WHERE n = ?", (-place - 1, new, n))
        self._db.execute("UPDATE notices SET n = ? WHERE n = ?", (-place - 1, n))

    def _save_about(self, db: sqlite3.Connection) -> None:
        """Store what the passages belong to."""
        about = {"fingerprint": self._fingerprint, "layout": str(LAYOUT)}
        db.executemany("REPLACE INTO about VALUES (?, ?)", about.items())
        db.execute("DELETE FROM keys")
        db.executemany("INSERT INTO keys VALUES (?, ?)", enumerate(self._keys))

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
            row = (n, samples, words, dropped, self._digest(n, self._key(n), samples, words, dropped))
            self._db.execute("REPLACE INTO passages VALUES (?, ?, ?, ?, ?)", row)
            self._db.executemany("REPLACE INTO notices VALUES (?, ?)", ((n, notice) for notice in speech.notices))
        self.n_samples[n] = len(samples) // 2

    def load(self, n: int) -> Speech:
        """Read a passage back, bit for bit; its words are timed from its start and placed in its text."""
        with _storage_errors(self.path):
            row = self._db.execute("SELECT * FROM passages WHERE n = ?", (n,)).fetchone()
        if row is None or not self._is_sound(row):
            raise TuttiError(f"passage {n + 1} in {self.path.name} is damaged; resume or run again to speak it again")
        samples = np.frombuffer(row[1], "<i2").astype(np.float32) / np.float32(32767)
        words = tuple(WordTime(word, start_s, end_s, (a, b)) for word, start_s, end_s, a, b in json.loads(row[2]))
        return Speech(samples, words, covered_source(words), tuple(json.loads(row[3])))

    def dropped(self) -> Counter[str]:
        """Count the symbols that could not be spoken."""
        counts: Counter[str] = Counter()
        with _storage_errors(self.path):
            for (dropped,) in self._db.execute("SELECT dropped FROM passages WHERE dropped != '[]'"):
                counts.update(json.loads(dropped))
        return counts

    def notices(self) -> list[str]:
        """What has no effect or is in another language, in the order of the book, and in how many passages if not one.

        Passages that an earlier version has spoken have none.
        """
        with _storage_errors(self.path):
            rows = self._db.execute("SELECT notice, count(*) FROM notices GROUP BY notice ORDER BY min(n), notice")
            named = [notice if n == 1 else f"{notice} ({n} passages)" for notice, n in rows]
        return [*named[:MAX_NOTICES], *([f"and {len(named) - MAX_NOTICES} more"] if named[MAX_NOTICES:] else [])]

    def remove(self) -> None:
        """Delete the file once the audiobook is written."""
        self.close()
        _unlink(self.path)

    def _open(self) -> sqlite3.Connection:
        """Open the file; if it is damaged, keep what can still be read of it."""
        db: sqlite3.Connection | None = None
        try:
            db = _connect(self.path)
            damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if damage == "ok":
                return db
        except sqlite3.DatabaseError as exc:
            if getattr(exc, "sqlite_errorcode", 0) & 0xFF not in DAMAGED:
                if db:
                    db.close()
                raise
            damage = str(exc)
        log.warning("damaged journal=%s: %s", self.path.name, damage)
        return self._salvage(db)

    def _salvage(self, damaged: sqlite3.Connection | None) -> sqlite3.Connection:
        """Move the sound passages of a damaged file into a new one, which takes its place."""
        new_path = self.path.with_name(f"{self.path.name}.new")
        _unlink(new_path)  # of an earlier attempt that was interrupted
        n_kept = 0
        try:
            with closing(_connect(new_path)) as new, new:
                self._save_about(new)
                for row in _readable_rows(damaged, "passages") if damaged else ():
                    if self._is_sound(row):
                        n_kept += new.execute("INSERT OR IGNORE INTO passages VALUES (?, ?, ?, ?, ?)", row).rowcount
                for row in _readable_rows(damaged, "notices") if damaged else ():
                    new.execute("INSERT OR IGNORE INTO notices VALUES (?, ?)", row)
        except BaseException:
            _unlink(new_path)
            raise
        finally:
            if damaged:
                damaged.close()
        Path(f"{self.path}-journal").unlink(missing_ok=True)  # it would be rolled back into the new file
        new_path.replace(self.path)
        if n_kept:
            self.repair = f"{self.path.name} was damaged: {n_kept} passages were kept, the others are spoken again"
        else:
            self.restart_reason = f"{self.path.name} is damaged"
        return _connect(self.path)

    def _index(self) -> None:
        """Fill `n_samples`, and delete damaged passages so that they are spoken again."""
        damaged: list[tuple[int]] = []
        for row in self._db.execute("SELECT * FROM passages"):
            if self._is_sound(row):
                self.n_samples[row[0]] = len(row[1]) // 2
            else:
                damaged.append((row[0],))
        if damaged:
            log.warning("damaged passages=%d journal=%s", len(damaged), self.path.name)
            self.repair = f"{len(damaged)} passages in {self.path.name} were damaged and are spoken again"
            with self._db:
                self._db.executemany("DELETE FROM passages WHERE n = ?", damaged)

    def _is_sound(self, row: tuple[Any, ...]) -> bool:
        """Whether a passage is as it was stored, and of this narration."""
        n, samples, words, dropped, digest = row
        of_types = isinstance(samples, bytes) and isinstance(words, str) and isinstance(dropped, str)
        return of_types and self._digest(n, self._key(n), samples, words, dropped) == digest

    def _key(self, n: int) -> str:
        return self._keys[n] if 0 <= n < len(self._keys) else self._fingerprint

    @staticmethod
    def _digest(n: int, key: str, samples: bytes, words: str, dropped: str) -> bytes:
        about = f"{key} {n} {len(samples)} {len(words)} "
        return blake2b((about + words + dropped).encode() + samples, digest_size=16).digest()


def _connect(path: Path) -> sqlite3.Connection:
    # Used by one thread at a time, but not always by the same one.
    db = sqlite3.connect(path, timeout=0, check_same_thread=False)
    db.text_factory = lambda data: data.decode("utf-8", "replace")  # of a damaged row
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA synchronous = FULL")
        db.executescript(f"BEGIN EXCLUSIVE; {_TABLES} COMMIT;")
    except BaseException:
        db.close()
        raise
    return db


def _readable_rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a damaged table that can be read: from its start up to the damage, then from its end."""
    for order in ("ASC", "DESC"):
        last: int | None = None
        try:
            for row in db.execute(f"SELECT * FROM {table} ORDER BY n {order}"):
                if last is not None and (row[0] < last if order == "ASC" else row[0] > last):
                    break  # the damage leads in a circle
                last = row[0]
                yield row
        except (sqlite3.DatabaseError, TypeError):
            continue


def _unlink(path: Path) -> None:
    """Delete a file of SQLite, with its rollback journal."""
    for each in (Path(f"{path}-journal"), path):
        each.unlink(missing_ok=True)


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        raise _error(path, exc) from exc


def _error(path: Path, exc: sqlite3.Error) -> TuttiError:
    match getattr(exc, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StorageFull(
                f"no room left to write {path.name}; free some space and resume, spoken passages are kept"
            )
        case sqlite3.SQLITE_IOERR:
            return StorageFull(f"the disk under {path.name} failed while writing; passages stored before are kept")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return InvalidInput(f"another process is already reading this book into {path.name}", param="out")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return InvalidInput(f"cannot write {path.name}: {exc}", param="out")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return TuttiError(f"{path.name} is damaged; resume or run again to keep what can still be read of it")
    return TuttiError(f"{path.name} cannot be used: {exc}")
