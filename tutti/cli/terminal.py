"""What commands print: tables, progress bars, symbols that could not be spoken."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

PIPE_WIDTH = 1_000_000  # columns; a pipe has no right edge


class ShowProgress(Protocol):
    def __call__(self, step: str, n_done: int, total: int, detail: str = "") -> None:
        """Show a step: its name, how much of it is done, of how much; `detail` stands behind the bar."""


@contextmanager
def progress_bar(visible: bool = True, *, time_left: bool = True) -> Iterator[ShowProgress]:
    """Show one step at a time, if stderr is a terminal: its bar and, with `time_left`, the remaining time.

    Until a part of a step is done, its bar only moves: nothing is known of its time yet.
    """
    if not visible or not sys.stderr.isatty():
        yield lambda step, n_done, total, detail="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[share]}"),
        *((TimeRemainingColumn(),) if time_left else ()),
        TextColumn("{task.fields[detail]}"),
    )
    tasks: dict[str, TaskID] = {}
    # A long period: passages of a book come one by one, and some take long.
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=300) as bar:

        def show(step: str, n_done: int, total: int, detail: str = "") -> None:
            if step not in tasks:  # the work of earlier runs does not count for the speed
                for earlier in tasks.values():
                    bar.update(earlier, visible=False)
                tasks[step] = bar.add_task(step, total=None, completed=n_done, share="", detail="")
            share = f"{n_done / total:.0%}" if n_done and total else ""
            bar.update(tasks[step], completed=n_done, total=total if share else None, share=share, detail=detail)

        yield show


def print_table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> None:
    """Print a table; long cells are wrapped on a terminal, and whole in a pipe or a file."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def print_notices(notices: Iterable[str]) -> None:
    """Say what of the text has no effect, or is in another language."""
    for notice in notices:
        print(f"note: {notice}", file=sys.stderr)


def print_dropped(dropped: Counter[str]) -> None:
    """Name the symbols that could not be spoken, the most frequent first."""
    if dropped:
        symbols = ", ".join(f"{symbol} ×{n}" if n > 1 else symbol for symbol, n in dropped.most_common(12))
        print(f"{counted(dropped.total(), 'symbol')} could not be spoken: {symbols}", file=sys.stderr)
