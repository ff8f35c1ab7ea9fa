"""Load a whole server over HTTP as its listeners would: first audio, gaps, speed, refusals, and CPU time by process.

python -m benchmarks.http_load --tone                          2 minutes, a server of tones: what HTTP and batching cost
python -m benchmarks.http_load --serve                         starts `tutti serve` with its defaults, on any device
python -m benchmarks.http_load http://127.0.0.1:8880 --load 8  a running server, 8 clients

Several processes of clients send texts of 1 to 5 sentences in 6 voices and 5 speeds, streamed as pcm; each answer is
played by a simulated player. `--load 8`: eight clients, each sends its next text when the last has ended. `--load
120/s`: 120 new texts a second at random times. `--load 2x`: twice the highest rate that the loads before it reached.
A stream is good if it starts within the target of the server and has no gap; a refused one is not good.
"""

import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.table import Table

# -- clients, in processes of their own: raw HTTP/1.1, and a simulated player ------------------------------------------


SAMPLE_RATE = 24_000
VOICES = ("af_heart", "af_bella", "am_adam", "am_michael", "bf_emma", "bm_george")
SPEEDS = (0.8, 0.9, 1.0, 1.1, 1.25)
MAX_SENTENCES = 5  # of a text
TIMEOUT_S = 120.0  # of one request
SENTENCES = (
    "The harbour was quiet before the first boats came in.",
    "She counted the windows twice and wrote the number down.",
    "After the rain the path along the river was hard to follow, but nobody turned back.",
    "Most of the letters were short.",
    "He asked for a room with a view of the mountains and got one with a view of the yard.",
    "The second train leaves at twenty past nine.",
    "When the lights went out, the musicians simply continued to play.",
    "Bread, cheese and a little fruit were enough for the day.",
    "The old map showed a road that no longer exists.",
    "It took them three years to build the bridge, and a week to name it.",
    "Please close the door behind you.",
    "In the evening the wind turned, and the smell of the sea filled the whole house.",
    "The teacher smiled, because the answer was wrong in an interesting way.",
    "Nobody could remember who had planted the tree.",
    "A single lamp burned in the kitchen, where the children were doing their sums.",
    "They met again in spring.",
)


@dataclass(frozen=True, slots=True)
class Load:
    """What one process of clients sends: `clients` in a closed loop, or `rate` requests a second in an open one."""

    url: str
    seconds: float
    seed: int
    clients: int = 0
    rate: float = 0.0
    key: str = ""


@dataclass(slots=True)
class Heard:
    """One request as its listener heard it; times are seconds since the start of the load."""

    sent_s: float
    status: int = 0  # 0: the connection broke, or it took too long
    code: str = ""  # of an error
    first_s: float | None = None  # when the first audio came
    done_s: float = 0.0
    audio_s: float = 0.0
    gap_s: float = 0.0  # silence between the first audio and the last
    arrivals: list[tuple[float, float]] = field(default_factory=list)  # when, seconds of audio

    def received(self, at_s: float, n_bytes: int) -> None:
        """Append audio to the player, which has played since its first audio and pauses when it has none."""
        if self.first_s is None:
            self.first_s = at_s
        played_s = at_s - self.first_s - self.gap_s
        self.gap_s += max(0.0, played_s - self.audio_s)
        seconds = n_bytes / 2 / SAMPLE_RATE
        self.audio_s += seconds
        self.arrivals.append((at_s, seconds))


def request_body(rng: random.Random) -> bytes:
    sentences = rng.sample(SENTENCES, rng.randint(1, MAX_SENTENCES))
    body = {
        "model": "kokoro",
        "input": " ".join(sentences),
        "voice": rng.choice(VOICES),
        "speed": rng.choice(SPEEDS),
        "response_format": "pcm",
    }
    return json.dumps(body).encode()


class Connection:
    """One kept-alive connection."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._host, self._port = host, port
        self._head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        self._head += f"Authorization: Bearer {key}\r\n" if key else ""
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def speak(self, body: bytes, started_s: float) -> Heard:
        """Send one request and play its answer."""
        heard = Heard(time.monotonic() - started_s)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._exchange(body, heard, started_s)
        except (OSError, EOFError, TimeoutError, ValueError):
            heard.status = 0
            self.close()
        heard.done_s = time.monotonic() - started_s
        return heard

    async def _exchange(self, body: bytes, heard: Heard, started_s: float) -> None:
        if self._writer is None or self._reader.at_eof():  # a server closes a connection that was idle for seconds
            self.close()
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        self._writer.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        heard.status = int(head.split(" ", 2)[1])
        error = b""
        async for part in self._parts(head):
            if heard.status == 200:
                heard.received(time.monotonic() - started_s, len(part))
            else:
                error += part
        if error:
            heard.code = json.loads(error)["error"]["code"]
        if "connection: close" in head:
            self.close()

    async def _parts(self, head: str) -> AsyncIterator[memoryview]:
        """The parts of the body, as they arrive."""
        if "transfer-encoding: chunked" in head:
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                yield memoryview(await self._reader.readexactly(size + 2))[:size]
            await self._reader.readexactly(2)
        else:
            length = int(head.partition("content-length:")[2].split("\r\n", 1)[0])
            while length:
                part = await self._reader.read(min(length, 1 << 16))
                if not part:
                    raise EOFError
                length -= len(part)
                yield memoryview(part)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


async def _closed_loop(load: Load, connection: Connection, seed: int, started_s: float, heard: list[Heard]) -> None:
    """One client that sends its next request as soon as the last answer has ended; a refused one waits a moment."""
    rng = random.Random(seed)
    while time.monotonic() - started_s < load.seconds:
        result = await connection.speak(request_body(rng), started_s)
        heard.append(result)
        if result.status != 200:
            await asyncio.sleep(0.05)


async def _open_loop(load: Load, new: "deque[Connection]", started_s: float, heard: list[Heard]) -> None:
    """Send requests at random times, whatever became of those before."""
    rng = random.Random(load.seed)
    address = urlsplit(load.url)
    at_s, tasks = rng.expovariate(load.rate), set[asyncio.Task[None]]()

    async def one(body: bytes) -> None:
        connection = new.pop() if new else Connection(address.hostname or "", address.port or 80, load.key)
        heard.append(await connection.speak(body, started_s))
        new.append(connection)

    while at_s < load.seconds:
        await asyncio.sleep(at_s - (time.monotonic() - started_s))
        task = asyncio.create_task(one(request_body(rng)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        at_s += rng.expovariate(load.rate)
    await asyncio.gather(*tasks)


async def _run(load: Load) -> list[Heard]:
    heard: list[Heard] = []
    address = urlsplit(load.url)
    started_s = time.monotonic()
    if load.rate:
        connections: deque[Connection] = deque()
        await _open_loop(load, connections, started_s, heard)
    else:
        connections = deque(
            Connection(address.hostname or "", address.port or 80, load.key) for _ in range(load.clients)
        )
        clients = enumerate(connections)
        await asyncio.gather(*(_closed_loop(load, c, 1000 * load.seed + i, started_s, heard) for i, c in clients))
    for connection in connections:
        connection.close()
    return heard


def run_load(load: Load) -> list[Heard]:
    """Main function of a process of clients."""
    with suppress(ImportError):
        import uvloop

        return uvloop.run(_run(load))
    return asyncio.run(_run(load))


RESULTS = Path(__file__).parent / "results"
WARM = 0.2  # share of each load that is not measured
READY_TIMEOUT_S = 600.0
DEFAULT_LOADS = ("1", "8", "32", "2x", "4x")


# -- the server ------------------------------------------------------------------------------------------------------


@contextmanager
def started_server(command: Sequence[str], log: Path) -> Iterator[tuple[str, float]]:
    """Start a server on a free port; yield its address and the seconds until it was ready."""
    started_s = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--port", "0"], stderr=output)
    try:
        while "tutti is ready: " not in (text := log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() - started_s > READY_TIMEOUT_S:
                raise RuntimeError(f"the server did not start:\n{text[-4000:]}")
            time.sleep(0.05)
        yield text.partition("tutti is ready: ")[2].split()[0], time.monotonic() - started_s
    finally:
        process.terminate()
        process.wait(60)


def listening_process(url: str) -> Any:
    """The process (psutil) of the server that listens there; raises StopIteration if it is on another machine."""
    import psutil

    port = int(url.rpartition(":")[2].strip("/"))
    listening = [c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port]
    process = psutil.Process(next(pid for pid in listening if pid))
    return process.parent() if process.name() == "tutti-http" else process


def cpu_seconds(url: str) -> dict[str, float]:
    """CPU seconds so far of the server that listens there and of its child processes, by name; empty if elsewhere."""
    try:
        parent = listening_process(url)
        times = {"server": _seconds(parent)}
        for child in parent.children():
            name = child.name().removeprefix("tutti-")
            times[name] = times.get(name, 0.0) + _seconds(child)
        return times
    except (ImportError, StopIteration, OSError):
        return {}


def _seconds(process: Any) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def get_json(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=30) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


# -- one load --------------------------------------------------------------------------------------------------------


def measure(url: str, load: str, best: float, seconds: float, n_processes: int, key: str) -> dict[str, Any]:
    """Run one load and summarise what its listeners heard."""
    rate = best * float(load.removesuffix("x")) if load.endswith("x") else 0.0
    rate = float(load.removesuffix("/s")) if load.endswith("/s") else rate
    clients = 0 if rate else int(load)
    n_processes = min(n_processes, clients) if clients else n_processes
    shares = [clients // n_processes + (n < clients % n_processes) for n in range(n_processes)]
    loads = [Load(url, seconds, n + 1, shares[n], rate / n_processes, key) for n in range(n_processes)]
    before = cpu_seconds(url)
    with ProcessPoolExecutor(n_processes, get_context("spawn")) as processes:
        heard = [result for results in processes.map(run_load, loads) for result in results]
    after = cpu_seconds(url)
    target_s = get_json(f"{url}/health/batching")["config"]["first_audio_ms"] / 1000
    return {"load": load, "offered_per_s": rate or None, **summary(heard, seconds, target_s, before, after)}


def summary(
    heard: Sequence[Heard], seconds: float, target_s: float, before: dict[str, float], after: dict[str, float]
) -> dict[str, Any]:
    start_s = WARM * seconds
    window_s = seconds - start_s
    sent = [one for one in heard if start_s <= one.sent_s < seconds]
    spoken = [one for one in sent if one.status == 200 and one.first_s is not None]
    ended = [one for one in heard if one.status == 200 and start_s <= one.done_s < seconds]
    waits_ms = sorted(1000 * (one.first_s - one.sent_s) for one in spoken if one.first_s is not None)
    refusals_ms = sorted(1000 * (one.done_s - one.sent_s) for one in sent if one.status == 429)
    good = sum(wait_ms <= 1000 * target_s for wait_ms in waits_ms) - sum(
        one.gap_s > 0.02 and one.first_s is not None and one.first_s - one.sent_s <= target_s for one in spoken
    )
    audio_s = sum(s for one in heard if one.status == 200 for at, s in one.arrivals if start_s <= at < seconds)
    return {
        "requests": len(sent),
        "good": good / max(1, len(sent)),
        "refused": len(refusals_ms) / max(1, len(sent)),
        "failed": sum(one.status not in (200, 429) for one in sent),
        "statuses": Counter(f"{one.status} {one.code}".strip() for one in sent),
        "first_ms": {name: percentile(waits_ms, q) for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
        "refused_ms_p50": percentile(refusals_ms, 0.5),
        "gaps": sum(one.gap_s > 0.02 for one in spoken) / max(1, len(spoken)),
        "longest_gap_s": max((one.gap_s for one in spoken), default=0.0),
        "streams_per_s": len(ended) / window_s,
        "audio_per_s": audio_s / window_s,
        "cpu_ms_per_request": {
            name: 1000 * (after[name] - before.get(name, 0.0)) / max(1, len(heard)) for name in after
        },
    }


def percentile(values: Sequence[float], q: float) -> float | None:
    return values[min(len(values) - 1, int(q * len(values)))] if values else None


def print_table(rows: Sequence[dict[str, Any]], title: str) -> None:
    columns = ("load", "first p50/p95 ms", "audio-s/s", "streams/s", "good", "refused", "gaps", "CPU ms per request")
    table = Table(*columns, title=title)
    for row in rows:
        first = row["first_ms"]
        waits = " / ".join("–" if first[name] is None else f"{first[name]:.0f}" for name in ("p50", "p95"))
        cpu = ", ".join(f"{name} {ms:.2f}" for name, ms in row["cpu_ms_per_request"].items())
        shares = (f"{row[name]:.1%}" for name in ("good", "refused", "gaps"))
        load = row["load"] if row["offered_per_s"] is None else f"{row['load']} ({row['offered_per_s']:.0f}/s)"
        table.add_row(load, waits, f"{row['audio_per_s']:,.0f}", f"{row['streams_per_s']:.1f}", *shares, cpu)
    Console(width=150).print(table)


# -- all of them -----------------------------------------------------------------------------------------------------


def run_loads(url: str, loads: Sequence[str], seconds: float, processes: int, key: str) -> Iterator[dict[str, Any]]:
    """Yield the result of each load; relative ones follow the best rate so far."""
    best = 0.0
    for load in loads:
        row = measure(url, load, best or 1.0, seconds, processes, key)
        best = max(best, row["streams_per_s"])
        print(f"{load}: {json.dumps(row)}", file=sys.stderr, flush=True)
        yield row


def main(
    url: Annotated[str | None, typer.Argument(help="A running server.")] = None,
    load: Annotated[list[str] | None, typer.Option(help="Clients, rate (120/s) or factor (2x); repeatable.")] = None,
    seconds: Annotated[float, typer.Option(help="Seconds of each load.")] = 15.0,
    processes: Annotated[int, typer.Option(help="Processes of clients.")] = max(1, min(6, (os.cpu_count() or 2) // 2)),
    key: Annotated[str, typer.Option(help="API key.")] = "",
    tone: Annotated[bool, typer.Option("--tone", help="Start a server of tones.")] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Start `tutti serve`.")] = False,
    flags: Annotated[str, typer.Option(help="Flags of the started server.")] = "",
    out: Annotated[Path | None, typer.Option(help="Result file.")] = None,
) -> None:
    """Print a table and write JSON."""
    report: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "flags": flags,
        "seconds": seconds,
    }
    loads = load or list(DEFAULT_LOADS)
    if url is not None:
        rows = list(run_loads(url, loads, seconds, processes, key))
    else:
        if tone == serve:
            raise typer.BadParameter("give the address of a server, --tone or --serve")
        module = "benchmarks.tone_server" if tone else "tutti"
        with tempfile.TemporaryDirectory(prefix="tutti-load-") as folder:
            command = [sys.executable, "-m", module, "serve", *flags.split()]
            with started_server(command, Path(folder) / "log") as (url, ready_s):
                report["ready_s"] = ready_s
                rows = list(run_loads(url, loads, seconds, processes, key))
    name = "tone" if tone else "http"
    print_table(rows, f"{name} on {platform.machine()}, {os.cpu_count()} cores {flags}")
    path = out or RESULTS / f"http-load-{name}-{platform.machine()}.json"
    path.write_text(json.dumps({**report, "loads": rows}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
