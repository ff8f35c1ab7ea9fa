"""How a download is shown: bars on a terminal, plain lines elsewhere, nothing where nobody looks."""

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from tutti.weights.manifest import File, megabytes

if TYPE_CHECKING:
    from rich.progress import Progress as RichDisplay
    from rich.progress import TaskID


class Progress(Protocol):
    """Someone who wants to see bytes arrive."""

    def moved(self, what: str, done: int, total: int) -> None:
        """Of `what` (a file, a group of files, a package), `done` of `total` bytes are here now."""
        ...

    def note(self, line: str) -> None:
        """Something a person should know while waiting."""
        ...


class Silent:
    """Nobody looks."""

    def moved(self, what: str, done: int, total: int) -> None:
        pass

    def note(self, line: str) -> None:
        pass


class Lines:
    """Plain lines for logs and pipes: one for each quarter of a thing."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._quarters: dict[str, int] = {}

    def moved(self, what: str, done: int, total: int) -> None:
        quarter = 4 * done // max(total, 1)
        if quarter > self._quarters.get(what, -1):
            self._quarters[what] = quarter
            self.note(f"{what}: {megabytes(done)} of {megabytes(total)}")

    def note(self, line: str) -> None:
        print(line, file=self._out, flush=True)


class Bars:
    """One bar for each thing under way, with speed and time left. Draws nothing until something moves."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._display: RichDisplay | None = None
        self._tasks: dict[str, TaskID] = {}

    def moved(self, what: str, done: int, total: int) -> None:
        display = self._started()
        if what not in self._tasks:
            # What an earlier run left behind is not counted as speed.
            self._tasks[what] = display.add_task(what, total=total, completed=done)
        display.update(self._tasks[what], completed=done, total=total)

    def note(self, line: str) -> None:
        self._started().console.print(line, highlight=False, markup=False)

    def stop(self) -> None:
        if self._display is not None:
            self._display.stop()

    def _started(self) -> "RichDisplay":
        if self._display is None:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
            from rich.progress import Progress as RichDisplay

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
            speed = (TransferSpeedColumn(), TimeRemainingColumn(compact=True))
            self._display = RichDisplay(*columns, *speed, console=Console(file=self._out))
            self._display.start()
        return self._display


class Tally:
    """Adds up the files of a group, so that 54 voices are one bar. Many threads may tell it; progress hears one."""

    def __init__(self, files: Iterable[File], progress: Progress) -> None:
        self._progress = progress
        self._done: dict[str, dict[str, int]] = {}
        self._total: dict[str, int] = {}
        self._lock = threading.Lock()
        for file in files:
            self._total[file.group] = self._total.get(file.group, 0) + file.size

    def now(self, file: File, done: int) -> None:
        """Of this file, `done` bytes are here."""
        with self._lock:
            group = self._done.setdefault(file.group, {})
            group[file.path] = done
            self._progress.moved(file.group, sum(group.values()), self._total[file.group])


@contextmanager
def shown(out: TextIO | None = None) -> Iterator[Progress]:
    """Show progress on `out` (stderr): bars if a person sits there, else lines."""
    out = out or sys.stderr
    if not out.isatty():
        yield Lines(out)
        return
    bars = Bars(out)
    try:
        yield bars
    finally:
        bars.stop()
