"""What commands print: tables, progress bars, symbols that could not be spoken."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

ShowProgress = Callable[[str, int, int], None]  # a step's name, how much of it is done, of how much


@contextmanager
def progress_bar(visible: bool = True) -> Iterator[ShowProgress]:
    """Show a bar with the remaining time for each step, if stderr is a terminal."""
    if not visible or not sys.stderr.isatty():
        yield lambda _step, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    # A long period: passages of a book come one by one, and some take long.
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=300) as bar:

        def show(step: str, n_done: int, total: int) -> None:
            if step not in tasks:  # the work of earlier runs does not count for the speed
                tasks[step] = bar.add_task(step, total=total, completed=n_done)
            bar.update(tasks[step], completed=n_done)

        yield show


def print_table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def print_dropped(dropped: Counter[str]) -> None:
    """Name the symbols that could not be spoken, the most frequent first."""
    if dropped:
        symbols = ", ".join(f"{symbol} ×{n}" if n > 1 else symbol for symbol, n in dropped.most_common(12))
        print(f"{dropped.total()} symbols could not be spoken: {symbols}", file=sys.stderr)
