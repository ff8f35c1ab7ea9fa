"""All jobs in one SQLite file, and a folder of files for each job. Several servers may share them."""

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.audiobook.jobs.job import AudiobookJob, RunningJob
from tutti.errors import JobsLocked, StorageFull, TuttiError
from tutti.files import bytes_under

if TYPE_CHECKING:
    from filelock import FileLock

_TABLES = (
    "CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, created_s REAL NOT NULL, job TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS running (id TEXT PRIMARY KEY, run TEXT NOT NULL)",  # of running jobs: their progress
)
BUSY_S = 10.0  # how long a write waits for that of another server
PRIVATE = 0o700  # books and what is made of them: no other account of the machine may read them


class JobStore:
    """The jobs in a folder. A server that runs a job holds its lock, which the system frees if the server dies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(PRIVATE, parents=True, exist_ok=True)
            (folder / "lock").touch()  # tells at once whether the folder can be written
        except OSError as exc:
            reason = exc.strerror or type(exc).__name__
            raise StorageFull(f"jobs are off: the server cannot write to its folder (TUTTI_DATA): {reason}") from exc
        with _storage_errors():
            # Used by one thread at a time, but not always by the same one.
            self._db = sqlite3.connect(folder / "jobs.sqlite", timeout=BUSY_S, check_same_thread=False)
            try:
                self._db.execute("PRAGMA synchronous = FULL")
                with self._db:
                    for table in _TABLES:
                        self._db.execute(table)
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        self._db.close()

    def changes(self, version: int) -> tuple[int, list[AudiobookJob], dict[str, RunningJob]] | None:
        """All jobs, the progress of those that run, and their version; None if `version` is still the last one.

        The version changes when another server writes.
        """
        with _storage_errors():
            (last_version,) = self._db.execute("PRAGMA data_version").fetchone()
        return None if last_version == version else (last_version, self.all(), self.running())

    def all(self) -> list[AudiobookJob]:
        """All jobs, the oldest first."""
        with _storage_errors():
            rows = self._db.execute("SELECT job FROM jobs ORDER BY created_s, id").fetchall()
            return [AudiobookJob.from_json(text) for (text,) in rows]

    def get(self, id: str) -> AudiobookJob | None:
        with _storage_errors():
            row = self._db.execute("SELECT job FROM jobs WHERE id = ?", (id,)).fetchone()
            return AudiobookJob.from_json(row[0]) if row else None

    def running(self) -> dict[str, RunningJob]:
        """The progress of the jobs that run, on any server."""
        with _storage_errors():
            rows = self._db.execute("SELECT id, run FROM running").fetchall()
            return {id: RunningJob.from_json(text) for id, text in rows}

    def save_running(self, runs: Mapping[str, str]) -> None:
        """Record the progress of jobs, as JSON."""
        with _storage_errors(), self._db:
            self._db.executemany("REPLACE INTO running VALUES (?, ?)", runs.items())

    def claim(self, id: str) -> "FileLock | None":
        """Lock a job for this server; None if another runs it, or if it is deleted."""
        # Only here: it installs an audit hook, a call of Python for every message that is pickled or sent.
        from filelock import FileLock, Timeout

        lock = FileLock(self.job_folder(id) / "lock", timeout=0, thread_local=False)
        try:
            lock.acquire()
        except (Timeout, FileNotFoundError):
            return None
        except OSError as exc:
            raise StorageFull(f"the server cannot lock this job: {exc.strerror}") from exc
        return lock

    def release(self, id: str, lock: "FileLock") -> None:
        """Let other servers have the job; it does not run any more."""
        lock.release()
        with _storage_errors(), self._db:
            self._db.execute("DELETE FROM running WHERE id = ?", (id,))

    def save(self, job: AudiobookJob) -> None:
        """Insert or replace a job; it is on the disk when this returns."""
        with _storage_errors(), self._db:
            self._db.execute("REPLACE INTO jobs VALUES (?, ?, ?)", (job.id, job.created_s, job.to_json()))

    def remove(self, id: str) -> None:
        """Delete a job and its files."""
        with _storage_errors(), self._db:
            self._db.execute("DELETE FROM jobs WHERE id = ?", (id,))
            self._db.execute("DELETE FROM running WHERE id = ?", (id,))
        shutil.rmtree(self.job_folder(id), ignore_errors=True)

    def job_folder(self, id: str) -> Path:
        return self.folder / id

    def n_bytes(self) -> int:
        """Disk space that all jobs use."""
        return bytes_under(self.folder)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        match getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise locked() from exc
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                raise _damaged() from exc
        raise StorageFull(f"the server cannot write its list of jobs: {exc}") from exc
    except (ValueError, KeyError, TypeError) as exc:  # in a row
        raise _damaged() from exc


def locked() -> JobsLocked:
    return JobsLocked("another program keeps the server's list of jobs locked; try again in a moment")


def _damaged() -> TuttiError:
    return TuttiError(
        "the server's list of jobs is damaged; its operator can stop the server and put jobs.sqlite in the folder of "
        "TUTTI_DATA back from a copy, or move it away to begin a new list"
    )
