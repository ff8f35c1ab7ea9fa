"""The rows whose jobs wait or run, by job and by stream; and those whose callers wait."""

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


class OpenRows:
    """The rows whose audio, or the rest of it, is still awaited, wherever their jobs are."""

    def __init__(self) -> None:
        self._streams: dict[int, dict[Row, None]] = {}

    def __iter__(self) -> Iterator[Row]:
        return (row for rows in self._streams.values() for row in rows)

    def add(self, row: Row) -> None:
        self._streams.setdefault(row.stream, {})[row] = None

    def discard(self, row: Row) -> bool:
        """Remove a row; False if it is not there."""
        rows = self._streams.get(row.stream, {})
        if row not in rows:
            return False
        del rows[row]
        if not rows:
            del self._streams[row.stream]
        return True

    def fail(self, rows: Iterable[Row], error: Exception) -> list[Row]:
        """Tell the callers of these rows, and forget them; return those whose callers did not leave."""
        failed = [row for row in rows if not row.future.done()]
        for row in failed:
            self.discard(row)
            row.future.set_exception(error)
        return failed

    def of_stream(self, stream: int) -> list[Row]:
        return list(self._streams.get(stream, ()))
