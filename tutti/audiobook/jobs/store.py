"""All jobs of a server in one SQLite file, and a folder of files for each job."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from filelock import FileLock, Timeout

from tutti.audiobook.jobs.job import AudiobookJob
from tutti.errors import StorageFull, TuttiError

_TABLE = "CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, created_s REAL NOT NULL, job TEXT NOT NULL)"


class JobsInUse(TuttiError):
    """Another server uses the same folder for its jobs."""

    status, code = 503, "jobs_in_use"


class JobStore:
    """Owns a folder and locks it: a second server is refused, so that no job runs twice."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / "lock", timeout=0)
            self._lock.acquire()
        except Timeout:
            raise JobsInUse(f"another server uses {folder} for its jobs; set another TUTTI_DATA for this one") from None
        except OSError as exc:
            reason = exc.strerror or exc
            raise StorageFull(f"jobs are off: cannot write to {folder}: {reason}; set TUTTI_DATA") from exc
        try:
            with _storage_errors(folder):
                # Used by one thread at a time, but not always by the same one.
                self._db = sqlite3.connect(folder / "jobs.sqlite", check_same_thread=False)
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute(_TABLE)
        except TuttiError:
            self._lock.release()
            raise

    def close(self) -> None:
        self._db.close()
        self._lock.release()

    def all(self) -> list[AudiobookJob]:
        """All jobs, the oldest first."""
        with _storage_errors(self.folder):
            rows = self._db.execute("SELECT job FROM jobs ORDER BY created_s, id").fetchall()
        return [AudiobookJob.from_json(text) for (text,) in rows]

    def save(self, job: AudiobookJob) -> None:
        """Insert or replace a job; it is on the disk when this returns."""
        with _storage_errors(self.folder), self._db:
            self._db.execute("REPLACE INTO jobs VALUES (?, ?, ?)", (job.id, job.created_s, job.to_json()))

    def remove(self, id: str) -> None:
        """Delete a job and its files."""
        with _storage_errors(self.folder), self._db:
            self._db.execute("DELETE FROM jobs WHERE id = ?", (id,))
        shutil.rmtree(self.job_folder(id), ignore_errors=True)

    def job_folder(self, id: str) -> Path:
        return self.folder / id

    def n_bytes(self) -> int:
        """Disk space that all jobs use."""
        return sum(_size(path) for path in self.folder.rglob("*"))

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free


def _size(path: Path) -> int:
    try:
        stat = path.stat()
    except OSError:  # deleted meanwhile
        return 0
    return stat.st_size if S_ISREG(stat.st_mode) else 0


@contextmanager
def _storage_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        raise StorageFull(f"cannot write the job list in {folder}: {exc}") from exc
