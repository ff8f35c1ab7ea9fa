"""Load a server for as long as asked while things break, and count what is lost.

python -m benchmarks.soak --minutes 5                      tone model, no model files
python -m benchmarks.soak --requests 100000                until so many requests were answered
python -m benchmarks.soak --url http://127.0.0.1:8880 --pid 123 --minutes 30     a server of your own, the real model
                                                           (start it with --cache-mb 0)

Three phases: calm, faults, calm. In all of them requests come at 0.8 of the capacity, at random times. In the second
there are also spikes of 2 and 4 times that, streams that are left half-read, clients that read 2 kB/s or send half a
request, and kill -9 of the worker and of the G2P process. Every complete
answer is compared with the answer to the same text alone: whole answers by their bytes (with --url by their length),
streams by their length, since their chunks depend on the load. A request is `held` if it was right, `refused` if it got
429 or 503 with Retry-After, `lost` if it ended without an answer or in the middle of one, `wrong` if its audio differs.
A 5xx is explained if the request's own process was killed twice under it.

The result is written after each phase and when the run is interrupted, with every gate and whether it holds; the
server's log is kept beside it. The exit status is 1 if a gate fails.
"""

import asyncio
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.faults.limited_server import LimitedServer, child_of, limited_server
from tutti.client.bench import TEXTS

RESULTS = Path(__file__).parent / "results"
FORMATS = ("pcm", "wav", "mulaw")
OUTCOMES = ("held", "refused", "left", "explained", "lost", "wrong", "5xx")
LONG_TEXTS = tuple(" ".join(TEXTS[n:]) for n in range(3))
STREAM_TOLERANCE = 0.05  # of the length of a stream: each chunk has a little silence at its ends
LOAD = 0.8  # of the capacity
SPIKES = (1.0, 1.0, 2.0, 1.0, 1.0, 4.0)  # times the load, one after the other
SPIKE_S = 3.0
KILL_S = 15.0  # between two kills, of the worker and of the G2P process in turn
LEFT = 0.05  # share of the streams that are left half-read
TIMEOUT_S = 120.0
EXPLAINED = ("worker_lost", "g2p_unavailable")  # codes of requests whose process was killed twice under them
MAX_MEMORY_GROWTH = 5.0  # percent over the last three quarters of the run
MAX_MORE_FILES = 8  # descriptors of the idle server after the run, against before it
IDLE_S = 5.0  # without requests, before the descriptors are counted
MAX_P99_RATIO = 2.0  # of the first audio after the faults to that before them
SHARES = {"before": 0.15, "faults": 0.7, "after": 0.15}  # of the run


@dataclass(frozen=True)
class Case:
    """A text, its format, and whether its audio is streamed."""

    text: str
    format: str
    stream: bool


CASES = tuple(
    Case(text, format, stream) for text in (*TEXTS, *LONG_TEXTS) for format in FORMATS for stream in (True, False)
)


@dataclass
class Tally:
    """What became of the requests of one phase."""

    sent: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    first_s: list[float] = field(default_factory=list)
    unexplained: Counter[str] = field(default_factory=Counter)

    def row(self) -> dict[str, Any]:
        first_ms = 1000 * np.percentile(self.first_s, (50, 99)) if self.first_s else (0.0, 0.0)
        return {
            "requests": self.sent,
            **{name: self.ended[name] for name in OUTCOMES},
            "first_p50_ms": round(float(first_ms[0]), 1),
            "first_p99_ms": round(float(first_ms[1]), 1),
            "unexplained": dict(self.unexplained),
        }


class Soak:
    """Clients of one server, and the faults around them."""

    def __init__(self, host: str, port: int, server: psutil.Process, *, exact: bool) -> None:
        self.address = host, port
        self.server = server
        self.exact = exact
        self.random = random.Random(1)
        self.expected: dict[Case, tuple[bytes, int]] = {}
        self.kills: Counter[str] = Counter()
        self.samples: list[tuple[float, int, int]] = []  # time, memory of the server process, its files
        self.n_requests = 0

    async def request(self, case: Case, tally: Tally, *, leave: bool = False) -> str:
        """Send one request, count how it ended, and return that."""
        ended = "lost"
        self.n_requests += 1
        tally.sent += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                ended = await self._request(case, tally, leave)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as exc:
            tally.unexplained[type(exc).__name__] += 1
        tally.ended[ended] += 1
        return ended

    async def _request(self, case: Case, tally: Tally, leave: bool) -> str:
        started_s = time.perf_counter()
        reader, writer = await asyncio.open_connection(*self.address, limit=1 << 18)
        try:
            writer.write(http(case))
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            if status != 200:
                if status in (429, 503) and b"retry-after" in head.lower():
                    return "refused"
                error = json.loads(await reader.read(1 << 16))["error"]
                if error["code"] in EXPLAINED:
                    return "explained"
                tally.unexplained[f"{status} {error['code']}: {error['message'][:80]}"] += 1
                return "5xx" if status >= 500 else "lost"
            tally.first_s.append(time.perf_counter() - started_s)
            if leave:
                await reader.read(1000)
                return "left"
            digest, n_bytes = await read_answer(reader, head.lower())
        finally:
            writer.close()
        expected, expected_bytes = self.expected.setdefault(case, (digest, n_bytes))
        if case.stream or not self.exact:
            right = abs(n_bytes - expected_bytes) <= STREAM_TOLERANCE * expected_bytes
        else:
            right = digest == expected
        return "held" if right else "wrong"

    async def learn(self) -> None:
        """Note the right answer to each case, one request at a time."""
        for case in CASES:
            while await self.request(case, Tally()) != "held":
                await asyncio.sleep(1)

    async def capacity(self, seconds: float, clients: int = 16) -> float:
        """Requests per second when there is always another."""
        n_held, until_s = 0, time.perf_counter() + seconds

        async def request_on() -> None:
            nonlocal n_held
            while time.perf_counter() < until_s:
                held = await self.request(self.random.choice(CASES), Tally()) == "held"
                n_held += held
                await asyncio.sleep(0 if held else 0.1)

        await asyncio.gather(*(request_on() for _ in range(clients)))
        return n_held / seconds

    async def phase(self, rate: float, seconds: float, max_requests: float, tally: Tally, *, faults: bool) -> None:
        until_s, started = time.perf_counter() + seconds, self.n_requests
        others = [asyncio.create_task(self.sample())]
        if faults:
            others += [asyncio.create_task(each) for each in (self.kill(), self.read_slowly(), self.send_halves())]
        tasks: set[asyncio.Task[str]] = set()
        began_s = time.perf_counter()
        while time.perf_counter() < until_s and self.n_requests - started < max_requests:
            elapsed_s = time.perf_counter() - began_s
            factor = SPIKES[int(elapsed_s / SPIKE_S) % len(SPIKES)] if faults else 1.0
            await asyncio.sleep(self.random.expovariate(rate * factor))
            leave = faults and self.random.random() < LEFT
            tasks.add(task := asyncio.create_task(self.request(self.random.choice(CASES), tally, leave=leave)))
            task.add_done_callback(tasks.discard)
        for other in others:
            other.cancel()
        await asyncio.gather(*tasks, *others, return_exceptions=True)

    # -- faults --------------------------------------------------------------------------------------------------

    async def kill(self) -> None:
        while True:
            for name in ("worker", "g2p"):
                await asyncio.sleep(KILL_S)
                with suppress(psutil.Error, OSError):
                    if (child := child_of(self.server, name)) is not None:
                        os.kill(child.pid, signal.SIGKILL)
                        self.kills[name] += 1

    async def read_slowly(self) -> None:
        """Ten clients that read 2 kB/s, each for a while."""

        async def read() -> None:
            while True:
                with suppress(OSError):
                    reader, writer = await asyncio.open_connection(*self.address, limit=4096)
                    writer.write(http(Case(" ".join(TEXTS), "pcm", stream=True)))
                    for _ in range(20):
                        await asyncio.sleep(1)
                        await reader.read(2000)
                    writer.close()

        await asyncio.gather(*(read() for _ in range(10)))

    async def send_halves(self) -> None:
        """Connections that send half a request, or none, and go."""
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(*self.address)
                writer.write(http(CASES[0])[: self.random.randint(0, 150)])
                await asyncio.sleep(self.random.random())
                writer.transport.abort()

    async def sample(self) -> None:
        while True:
            self.samples.append((time.monotonic(), self.server.memory_info().rss, self.server.num_fds()))
            await asyncio.sleep(1)

    def growth(self) -> dict[str, Any]:
        """Memory and files of the server process: what a line through the last three quarters grows by, in percent."""
        if len(self.samples) < 8:
            return {}
        times_s, memory, files = np.array(self.samples).T
        late = slice(len(memory) // 4, None)
        slope = np.polyfit(times_s[late] - times_s[0], memory[late], 1)[0]
        grown = slope * (times_s[-1] - times_s[late][0])
        tenth = max(1, len(memory) // 10)
        some = np.linspace(0, len(memory) - 1, min(60, len(memory))).astype(int)
        return {
            "memory_mb": round(float(np.median(memory[-tenth:])) / 1e6, 1),
            "memory_growth_%": round(100 * float(grown / np.median(memory[late])), 2),
            "most_files": int(max(files)),
            "memory_mb_over_time": [round(float(memory[n]) / 1e6, 1) for n in some],
        }


def http(case: Case) -> bytes:
    body = json.dumps({"input": case.text, "response_format": case.format, "stream": case.stream}).encode()
    head = "Host: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"POST /v1/audio/speech HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def read_answer(reader: asyncio.StreamReader, head: bytes) -> tuple[bytes, int]:
    """Read a body to its end, and return its digest and length; raise if it breaks off."""
    digest, n_bytes = blake2b(digest_size=16), 0
    chunked = b"transfer-encoding" in head
    if not chunked:
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        parts = [await reader.readexactly(int(length.split(b":")[1]))]
        digest.update(parts[0])
        n_bytes = len(parts[0])
    while chunked and (size := int(await reader.readuntil(b"\r\n"), 16)):
        part = (await reader.readexactly(size + 2))[:-2]
        digest.update(part)
        n_bytes += size
    return digest.digest(), n_bytes


def gates(result: dict[str, Any]) -> dict[str, tuple[object, str, bool]]:
    """Each promise: the value, the limit, and whether it holds."""
    rows = result["phases"]
    total = {name: sum(row[name] for row in rows.values()) for name in ("requests", *OUTCOMES)}
    answered = sum(total[name] for name in OUTCOMES)
    checked: dict[str, tuple[object, str, bool]] = {
        "every request counted": (answered, f"= {total['requests']}", answered == total["requests"]),
        **{name: (total[name], "= 0", total[name] == 0) for name in ("lost", "wrong", "5xx")},
    }
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


async def run(soak: Soak, minutes: float, requests: float, write: Callable[[dict[str, Any]], None]) -> None:
    """Run the phases, and write the result after each of them, and when the run is interrupted."""
    await soak.learn()
    c = await soak.capacity(5.0)
    await asyncio.sleep(IDLE_S)
    result: dict[str, Any] = {"capacity_per_s": round(c, 1), "idle_files_before": soak.server.num_fds(), "phases": {}}
    for name, share in SHARES.items():
        tally = Tally()
        n_requests = None if requests == float("inf") else int(share * requests)
        try:
            with progress_bar(name, soak, n_requests, share * minutes * 60):
                await soak.phase(LOAD * c, share * minutes * 60, share * requests, tally, faults=name == "faults")
        finally:
            result["phases"][name] = tally.row()
            write({**result, "kills": dict(soak.kills), **soak.growth()})
        await asyncio.sleep(IDLE_S)
    result["idle_files_after"] = soak.server.num_fds()
    write({**result, "kills": dict(soak.kills), **soak.growth()})


@contextmanager
def progress_bar(name: str, soak: Soak, n_requests: int | None, seconds: float) -> Iterator[None]:
    """A bar of requests, or of seconds; without a thread that would take part in the measurement."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[n]} requests"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task(name, total=n_requests or seconds, n=0)
        started_s, started = time.perf_counter(), soak.n_requests

        async def move() -> None:
            while True:
                n = soak.n_requests - started
                bar.update(task, completed=n if n_requests else time.perf_counter() - started_s, n=n, refresh=True)
                await asyncio.sleep(2)

        moving = asyncio.get_running_loop().create_task(move())
        try:
            yield
        finally:
            moving.cancel()


def show(result: dict[str, Any]) -> None:
    table = Table("phase", *next(iter(result["phases"].values())), title=f"C = {result['capacity_per_s']} requests/s")
    for name, row in result["phases"].items():
        table.add_row(name, *map(str, row.values()))
    Console(width=160).print(table)
    table = Table("gate", "value", "limit", "holds")
    for name, (value, limit, holds) in gates(result).items():
        table.add_row(name, str(value), limit, "yes" if holds else "NO")
    Console(width=160).print(table)
    print({name: value for name, value in result.items() if name not in ("phases", "gates")})


def main(
    minutes: Annotated[float, typer.Option(help="Minutes of load.")] = 5,
    requests: Annotated[int | None, typer.Option(help="End after so many requests instead.")] = None,
    url: Annotated[str | None, typer.Option(help="A running server; default: one of its own with tones.")] = None,
    pid: Annotated[int | None, typer.Option(help="The process of that server.")] = None,
    out: Annotated[Path, typer.Option(help="Result file; the log of an own server is kept beside it.")] = RESULTS
    / "soak-tone.json",
) -> None:
    """Run the load and write the result to a file."""
    result: dict[str, Any] = {}
    server: LimitedServer | None = None

    def write(now: dict[str, Any]) -> None:
        result.clear()
        result.update(now, errors_in_log=len(server.errors()) if server else None)
        result["gates"] = {name: bool(holds) for name, (_, _, holds) in gates(result).items()}
        out.write_text(json.dumps(result, indent=1) + "\n")
        if server:
            out.with_suffix(".log").write_text("".join(server.log))

    with ExitStack() as stack:
        if url is None or pid is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(
                limited_server(folder, "--cache-mb", "0", limit="-n 4096", TONE_ADMISSION="on")
            )
            host, port, process = *server.host_port, psutil.Process(server.process.pid)
        else:
            host, port = url.removeprefix("http://").rstrip("/").split(":")[0], int(url.rpartition(":")[2].rstrip("/"))
            process = psutil.Process(pid)
        soak = Soak(host, port, process, exact=url is None)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            asyncio.run(run(soak, 1e6 if requests else minutes, requests or float("inf"), write))
    if not result:
        raise typer.Exit(1)
    show(result)
    if not all(result["gates"].values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
