"""Measurements of tutti, and of others beside it; README.md says what each is for."""

import tutti  # noqa: F401  # first of all: it turns the reports of libraries off, which they read when they are imported

# isort: split
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def progress(n_steps: int) -> Iterator[Callable[[str], None]]:
    """Show how far a run is: a bar if rich is installed, else a line per step (on a GPU machine without it).

    Yields a function to call at the start of each step, with its name.
    """
    n_started = 0
    if not find_spec("rich"):

        def print_step(name: str) -> None:
            nonlocal n_started
            n_started += 1
            print(f"step {n_started} of {n_steps}: {name}", file=sys.stderr, flush=True)

        yield print_step
        return
    from rich.console import Console
    from rich.progress import Progress

    # Without the thread that redraws the bar: it would take part in the measurement.
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("starting", total=n_steps)

        def move_bar(name: str) -> None:
            nonlocal n_started
            bar.update(task, description=name, completed=n_started, refresh=True)
            n_started += 1

        yield move_bar
