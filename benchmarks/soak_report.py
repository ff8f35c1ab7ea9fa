"""What a soak has shown: its gates, its tables and its progress."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

OUTCOMES = ("held", "refused", "given_up", "left", "explained", "lost", "wrong", "5xx")
MAX_MEMORY_GROWTH = 5.0  # percent over the last three quarters of the run
MAX_MORE_FILES = 8  # descriptors of the idle server after the run, against before it
MAX_P99_RATIO = 2.0  # of the first audio after the faults to that before them


def gates(result: dict[str, Any]) -> dict[str, tuple[object, str, bool]]:
    """Each promise: the value, the limit, and whether it holds."""
    rows = result["phases"]
    total = {name: sum(row[name] for row in rows.values()) for name in ("requests", *OUTCOMES)}
    answered = sum(total[name] for name in OUTCOMES)
    checked: dict[str, tuple[object, str, bool]] = {
        "every request counted": (answered, f"= {total['requests']}", answered == total["requests"]),
        **{name: (total[name], "= 0", total[name] == 0) for name in ("lost", "wrong", "5xx")},
    }
    not_heard = sum(row["not_heard"] for row in rows.values())
    checked["not compared yet"] = not_heard, "= 0", not_heard == 0
    calm = sum(row["given_up"] for name, row in rows.items() if name != "faults")
    checked["given up without faults"] = calm, "= 0", calm == 0
    if "memory_growth_%" in result:
        grown = result["memory_growth_%"]
        checked["memory growth, %"] = grown, f"<= {MAX_MEMORY_GROWTH:g}", grown <= MAX_MEMORY_GROWTH
    if "idle_files_after" in result:
        more = result["idle_files_after"] - result["idle_files_before"]
        checked["more descriptors"] = more, f"<= {MAX_MORE_FILES}", more <= MAX_MORE_FILES
    if {"before", "after"} <= rows.keys():
        ratio = round(rows["after"]["first_p99_ms"] / max(rows["before"]["first_p99_ms"], 1.0), 2)
        checked["first audio p99, after / before"] = ratio, f"<= {MAX_P99_RATIO:g}", ratio <= MAX_P99_RATIO
    if result.get("errors_in_log") is not None:
        checked["exceptions in the log"] = result["errors_in_log"], "= 0", result["errors_in_log"] == 0
    return checked


def show(result: dict[str, Any]) -> None:
    title = f"C = {result['capacity_per_s']} requests/s, {result['speech_s_per_s']} s of speech a second"
    table = Table("phase", *next(iter(result["phases"].values())), title=title)
    for name, row in result["phases"].items():
        table.add_row(name, *map(str, row.values()))
    Console(width=160).print(table)
    table = Table("gate", "value", "limit", "holds")
    for name, (value, limit, holds) in gates(result).items():
        table.add_row(name, str(value), limit, "yes" if holds else "NO")
    Console(width=160).print(table)
    print({name: value for name, value in result.items() if name not in ("phases", "gates")})


@contextmanager
def progress_bar(name: str, n_sent: Callable[[], int], n_requests: int | None, seconds: float) -> Iterator[None]:
    """A bar of requests, or of seconds; without a thread that would take part in the measurement."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[n]} requests"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task(name, total=n_requests or seconds, n=0)
        started_s, started = time.perf_counter(), n_sent()

        async def move() -> None:
            while True:
                n = n_sent() - started
                bar.update(task, completed=n if n_requests else time.perf_counter() - started_s, n=n, refresh=True)
                await asyncio.sleep(2)

        moving = asyncio.get_running_loop().create_task(move())
        try:
            yield
        finally:
            moving.cancel()
