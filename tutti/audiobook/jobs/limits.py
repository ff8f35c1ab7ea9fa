"""How many jobs a server stores, and how much disk space they may use. All but `check_number` look at the disk."""

from dataclasses import dataclass
from pathlib import Path

from tutti.audiobook.jobs.book_process import BookSummary
from tutti.audiobook.jobs.store import JobStore
from tutti.errors import StorageFull, TooManyJobs
from tutti.files import bytes_under

BYTES_A_CHARACTER = 4_500  # of journal and audio together: about 15 characters a second, at 48 kB a second
BYTES_A_PAUSE = 64_000  # of journal and compressed audio, for a second


@dataclass(frozen=True, slots=True)
class JobLimits:
    max_jobs: int  # of one owner, in any state
    max_bytes: float  # of all jobs together

    def check_number(self, n_jobs: int) -> None:
        """Raise TooManyJobs if an owner may not have one more."""
        if n_jobs >= self.max_jobs:
            raise TooManyJobs(f"you have {n_jobs} jobs, the limit (TUTTI_MAX_JOBS); delete some and try again")

    def check_bytes(self, store: JobStore) -> None:
        """Raise TooManyJobs if there is no room for any job."""
        n_bytes = store.n_bytes()
        if n_bytes >= self.max_bytes:
            raise TooManyJobs(
                f"all jobs use {n_bytes / 1e9:.1f} GB, the limit (TUTTI_MAX_JOBS_GB); delete some and try again"
            )

    def check_disk(self, store: JobStore, book: BookSummary, speed: float, folder: Path | None = None) -> None:
        """Raise StorageFull if a book will not fit; what its folder has already counts."""
        needed = book.n_characters * BYTES_A_CHARACTER / speed + book.pause_s * BYTES_A_PAUSE
        needed -= bytes_under(folder) if folder else 0
        free, of_limit = store.free_bytes(), self.max_bytes - store.n_bytes()
        if needed > min(free, of_limit):
            where = "the server's disk has" if free < of_limit else "all jobs together (TUTTI_MAX_JOBS_GB) have"
            raise StorageFull(
                f"this book needs about {needed / 1e9:.1f} GB, and {where} {min(free, of_limit) / 1e9:.1f} GB left"
            )

    def check_room(self, store: JobStore, n_bytes: int) -> None:
        """Raise StorageFull if a running job may not write so much more."""
        if store.n_bytes() + n_bytes > self.max_bytes:
            raise StorageFull(
                f"all jobs together have reached {self.max_bytes / 1e9:g} GB (TUTTI_MAX_JOBS_GB); "
                "delete some and resume, spoken passages are kept"
            )
