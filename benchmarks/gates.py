"""Gates of a benchmark: what was promised and measured, the memory of a server, and other work on the machine."""

import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.http_load import cpu_seconds

FOREIGN_CORES = 0.1  # beside more of other work a figure proves nothing
MEMORY_S = 0.5  # between two looks at the memory


@dataclass(frozen=True, slots=True)
class Gate:
    """What is promised, what was measured, and whether that holds."""

    name: str
    limit: str
    measured: str
    holds: bool


@dataclass(slots=True)
class Case:
    """The figures of one case, and its gates."""

    figures: dict[str, Any] = field(default_factory=dict)
    gates: list[Gate] = field(default_factory=list)

    def gate(self, name: str, limit: str, measured: str, *, holds: bool) -> None:
        self.gates.append(Gate(name, limit, measured, holds))


@dataclass(slots=True)
class Memory:
    """The most memory that all processes of a server had at once, in MB."""

    rss_mb: float = 0.0
    pss_mb: float = 0.0  # pages that several processes share count once

    @contextmanager
    def watching(self, server: psutil.Process) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=(server, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(10)

    def _watch(self, server: psutil.Process, ended: threading.Event) -> None:
        while not ended.wait(MEMORY_S):
            used = [_memory_kb(process.pid) for process in (server, *server.children(recursive=True))]
            rss_kb, pss_kb = (sum(column) for column in zip(*used, strict=True))
            self.rss_mb, self.pss_mb = max(self.rss_mb, rss_kb / 1000), max(self.pss_mb, pss_kb / 1000)


def _memory_kb(pid: int) -> tuple[int, int]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0, 0  # it has ended
    sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return sizes["Rss"], sizes["Pss"]


def busy_s() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0))


def own_s(url: str) -> float:
    """CPU seconds of the server with all of its processes, and of this one."""
    times = os.times()
    return sum(cpu_seconds(url).values()) + times.user + times.system


class Report:
    """All cases so far; written after each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cases: dict[str, dict[str, Any]] = {}
        self._gates: list[Gate] = []

    def run(self, name: str, url: str, measure: Callable[[Case], None]) -> None:
        print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        case, started_s, before_s = Case(), time.monotonic(), busy_s() - own_s(url)
        measure(case)
        took_s = time.monotonic() - started_s
        foreign = (busy_s() - own_s(url) - before_s) / took_s
        case.figures |= {"took_s": round(took_s, 1), "foreign_cores": round(foreign, 2)}
        if foreign > FOREIGN_CORES:
            print(f"{name}: beside {foreign:.2f} cores of other work", file=sys.stderr, flush=True)
        self.add(name, case)

    def add(self, name: str, case: Case) -> None:
        self._cases[name] = case.figures
        self._gates += case.gates
        gates = [{"gate": g.name, "limit": g.limit, "measured": g.measured, "holds": g.holds} for g in self._gates]
        machine = {"machine": platform.machine(), "cores": os.cpu_count()}
        self._path.write_text(json.dumps(machine | {"gates": gates, "cases": self._cases}, indent=1) + "\n")

    def print(self) -> bool:
        table = Table("gate", "limit", "measured", "holds")
        for gate in self._gates:
            table.add_row(gate.name, gate.limit, gate.measured, "yes" if gate.holds else "NO")
        Console(width=120).print(table)
        return all(gate.holds for gate in self._gates)
