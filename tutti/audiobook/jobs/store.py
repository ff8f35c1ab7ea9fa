"""All jobs of a server in one SQLite file, and the folder of each beside it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tutti.audiobook.jobs.job import Job
from tutti.errors import StorageFull, TuttiError

_TABLE = "CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, created_s REAL NOT NULL, job TEXT NOT NULL)"


class InUse(TuttiError):
    """Another server keeps its jobs in the same folder."""

    status, code = 503, "jobs_in_use"


class Ledger:
    """Owns a folder: a second server that is pointed at it is refused, so that no job is done twice."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / "lock", timeout=0)
            self._lock.acquire()
        except Timeout:
            raise InUse(f"another server keeps its jobs in {folder}; give this one a TUTTI_DATA of its own") from None
        except OSError as exc:
            why = exc.strerror or exc
            raise StorageFull(f"no jobs here: cannot write to {folder}: {why}; set TUTTI_DATA") from exc
        try:
            with _explained(folder):
                # One thread at a time uses it, but not always the same one.
                self._db = sqlite3.connect(folder / "jobs.sqlite", check_same_thread=False)
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute(_TABLE)
        except TuttiError:
            self._lock.release()
            raise

    def close(self) -> None:
        self._db.close()
        self._lock.release()

    def all(self) -> list[Job]:
        """The oldest first."""
        with _explained(self.folder):
            rows = self._db.execute("SELECT job FROM jobs ORDER BY created_s, id").fetchall()
        return [Job.loaded(text) for (text,) in rows]

    def save(self, job: Job) -> None:
        """Returns when it is on the disk."""
        with _explained(self.folder), self._db:
            self._db.execute("REPLACE INTO jobs VALUES (?, ?, ?)", (job.id, job.created_s, job.dumped()))

    def remove(self, id: str) -> None:
        """The job, and all that was made for it."""
        with _explained(self.folder), self._db:
            self._db.execute("DELETE FROM jobs WHERE id = ?", (id,))
        shutil.rmtree(self.place(id), ignore_errors=True)

    def place(self, id: str) -> Path:
        """The folder of a job's files."""
        return self.folder / id

    def n_bytes(self) -> int:
        """What all jobs take of the disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        raise StorageFull(f"the list of jobs in {folder} cannot be written: {exc}") from exc
