"""The rows whose jobs wait or run, by job and by stream."""

from collections.abc import Iterable, Iterator

from tutti.batching.job import Job
from tutti.engine.row import Row


class JobRows:
    """A row for each job. Under load there are a thousand, so those of one stream are found without a search."""

    def __init__(self) -> None:
        self._rows: dict[Job, Row] = {}
        self._jobs: dict[int, dict[Job, None]] = {}  # of each stream, in the order in which they were added

    def __getitem__(self, job: Job) -> Row:
        return self._rows[job]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._rows)

    def values(self) -> Iterable[Row]:
        return self._rows.values()

    def add(self, job: Job, row: Row) -> None:
        self._rows[job] = row
        self._jobs.setdefault(row.stream, {})[job] = None

    def pop(self, job: Job) -> Row:
        row = self._rows.pop(job)
        jobs = self._jobs[row.stream]
        del jobs[job]
        if not jobs:
            del self._jobs[row.stream]
        return row

    def discard(self, job: Job) -> None:
        """Remove a job if it is there."""
        if job in self._rows:
            self.pop(job)

    def beside(self, rows: Iterable[Row]) -> list[Row]:
        """All rows of the streams of these rows."""
        return [row for _, row in self.of_streams({row.stream for row in rows})]

    def of_streams(self, streams: Iterable[int]) -> Iterator[tuple[Job, Row]]:
        """The jobs of these streams and their rows."""
        return ((job, self._rows[job]) for stream in streams for job in self._jobs.get(stream, ()))
