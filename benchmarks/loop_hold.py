"""Measure how long the worst input of each route holds the event loop: no other request is served meanwhile.

python -m benchmarks.loop_hold                  20 minutes, without model files; real limits, tone model
python -m benchmarks.loop_hold --only lexicon   the inputs whose name or route contains this

What is measured is the computing of the loop's thread between two turns of a timer, so other work on the machine does
not count. Each input is sent three times, and the least of the three counts: a garbage collection may fall into any.
The result is written after each input.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import progress
from benchmarks.hostile import all_inputs, connection_inputs
from tests.faults.limited_server import limited_server
from tests.faults.loop_watch import TICK_S, LoopWatch

RESULTS = Path(__file__).parent / "results" / "loop_hold.json"
LIMIT_MS = 50.0
ROUNDS = 3


def main(
    only: Annotated[str, typer.Option(help="Send only inputs with this in their name or route.")] = "",
    rounds: Annotated[int, typer.Option(help="How often each is sent.")] = ROUNDS,
    out: Annotated[Path, typer.Option(help="Result file.")] = RESULTS,
) -> None:
    """Send every input, and write how long the loop was held to a file; exit 1 if one is over the limit."""
    inputs = [each for each in (*all_inputs(), *connection_inputs()) if only in f"{each.route} {each.name}"]
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name, progress(len(inputs)) as step:
        watch = LoopWatch(Path(name) / "loop")
        with limited_server(
            Path(name), "--wyoming-port", "0", limit="-n 4096", TONE_LOOP=str(Path(name) / "loop")
        ) as server:
            server.speak()
            for each in inputs:
                step(f"{each.route} {each.name}")
                held_ms, status = [], ""
                for _ in range(rounds):
                    watch.reset()
                    status = each.send(server)
                    server.wait_until_ready()
                    time.sleep(10 * TICK_S)
                    held_ms.append(watch.held_ms)
                rows.append({"route": each.route, "input": each.name, "status": status,
                             "held_ms": round(min(held_ms), 1), "worst_ms": round(max(held_ms), 1)})  # fmt: skip
                errors = server.errors()
                if not only:
                    report = {"limit_ms": LIMIT_MS, "errors_in_log": errors, "inputs": rows}
                    out.write_text(json.dumps(report, indent=1) + "\n")
    table = Table("route", "input", "status", "held ms", "worst ms", title=f"limit {LIMIT_MS:g} ms")
    for row in sorted(rows, key=lambda row: -float(str(row["held_ms"]))):
        table.add_row(*map(str, row.values()))
    Console(width=140).print(table)
    over = [row for row in rows if float(str(row["held_ms"])) > LIMIT_MS]
    print(*errors, sep="\n\n")
    print(f"{len(rows)} inputs, {len(over)} over {LIMIT_MS:g} ms, {len(errors)} errors in the log")
    if over or errors:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
