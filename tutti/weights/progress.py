"""Progress of a download: bars on a terminal, plain lines elsewhere, or nothing."""

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from tutti.weights.manifest import File, megabytes

if TYPE_CHECKING:
    from rich.progress import Progress as RichDisplay
    from rich.progress import TaskID


class DownloadProgress(Protocol):
    """Receives the progress of downloads."""

    def update(self, item: str, n_bytes: int, total: int) -> None:
        """`n_bytes` of `total` of a file, a group of files or a package are here."""

    def note(self, line: str) -> None:
        """Show a line to the user."""


class SilentProgress:
    """Shows nothing."""

    def update(self, item: str, n_bytes: int, total: int) -> None:
        pass

    def note(self, line: str) -> None:
        pass


class LineProgress:
    """Plain lines for logs and pipes: one for each quarter of an item."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._quarters: dict[str, int] = {}

    def update(self, item: str, n_bytes: int, total: int) -> None:
        quarter = 4 * n_bytes // max(total, 1)
        if quarter > self._quarters.get(item, -1):
            self._quarters[item] = quarter
            self.note(f"{item}: {megabytes(n_bytes)} of {megabytes(total)}")

    def note(self, line: str) -> None:
        print(line, file=self._out, flush=True)


class BarProgress:
    """One bar for each item, with speed and time left. Draws nothing before the first update."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._display: RichDisplay | None = None
        self._tasks: dict[str, TaskID] = {}

    def update(self, item: str, n_bytes: int, total: int) -> None:
        display = self._start()
        if item not in self._tasks:
            # Bytes left by an earlier run must not count as speed.
            self._tasks[item] = display.add_task(item, total=total, completed=n_bytes)
        display.update(self._tasks[item], completed=n_bytes, total=total)

    def note(self, line: str) -> None:
        self._start().console.print(line, highlight=False, markup=False)

    def stop(self) -> None:
        if self._display is not None:
            self._display.stop()

    def _start(self) -> "RichDisplay":
        if self._display is None:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
            from rich.progress import Progress as RichDisplay

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
            speed = (TransferSpeedColumn(), TimeRemainingColumn(compact=True))
            self._display = RichDisplay(*columns, *speed, console=Console(file=self._out))
            self._display.start()
        return self._display


class GroupProgress:
    """Adds up the files of a group, so that 54 voices are one bar. Thread-safe."""

    def __init__(self, files: Iterable[File], progress: DownloadProgress) -> None:
        self._progress = progress
        self._n_bytes: dict[str, dict[str, int]] = {}
        self._total: Counter[str] = Counter()
        self._lock = threading.Lock()
        for file in files:
            self._total[file.group] += file.size

    def update(self, file: File, n_bytes: int) -> None:
        """Report that `n_bytes` of this file are here."""
        with self._lock:
            group = self._n_bytes.setdefault(file.group, {})
            group[file.path] = n_bytes
            self._progress.update(file.group, sum(group.values()), self._total[file.group])


@contextmanager
def show_progress(out: TextIO | None = None) -> Iterator[DownloadProgress]:
    """Show progress on `out` (default: stderr): bars on a terminal, else lines."""
    out = out or sys.stderr
    if not out.isatty():
        yield LineProgress(out)
        return
    bars = BarProgress(out)
    try:
        yield bars
    finally:
        bars.stop()
