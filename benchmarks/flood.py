"""Measure overload: more requests than can be served, slow readers, scrapes; what is refused, and what the rest hear.

python -m benchmarks.flood                              6 minutes on a quiet machine, without model files
python -m benchmarks.flood --only overload --seconds 120     one case, the overload for two minutes

A real server runs in its own process around the tone model, which takes as long for its rows as a device of a given
speed would; the clients are in this process. C is the capacity: requests per second when there is always another one.
A stream is in time if its first audio comes within the target and its player never stalls; it is heard if its first
audio comes within the 2 s by which a stream may start late (decision 19), and its player never stalls. The case
`strict` is the overload of a server that refuses what would start late (`--preset latency`).

All figures are of one run, those that are compared come from turns that alternate. The gates are printed, and the exit
status is 1 if one fails.
"""

import asyncio
import json
import multiprocessing
import random
import re
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import progress
from tests.fakes import silent_voices, tone_engine
from tutti.client.bench import TEXTS, playback_stalls
from tutti.model.spans import LIGHT_SPANS
from tutti.model.tone import ToneModel
from tutti.server.app import create_app
from tutti.server.run import Server, bind
from tutti.server.uvicorn_setup import uvicorn_config
from tutti.settings import Settings
from tutti.speech import Frames, Samples, Span

RESULTS = Path(__file__).parent / "results" / "flood.json"
TARGET_S = 0.5
MAX_START_S = 2.0  # how late a stream may start that cannot be in time
GAP_S = 0.05  # a stall up to this length does not count
MAX_REFUSED_MS = 20.0  # until a refusal, at the median
MIN_GOOD = 98.0  # percent of the streams that are served
MIN_KEPT = 0.9  # of what is heard a second, against that without retries
MAX_SLOWER, SMALL_MS = 1.1, 20.0  # times the first audio (p90) beside others, or so much more, which nobody hears
MAX_GROWN_MB = 5.0
CALL_S, FRAME_S = 0.004, 2.5e-4  # device seconds per call and frame: about a hundred seconds of audio per second
BYTES_PER_S = 48_000  # of PCM
TURNS, TURN_S = 3, 8.0  # of loads that are compared
SLOW_TEXT = TEXTS[5]  # of slow readers: three chunks, which the server makes ahead, half a megabyte at 48 kHz
SLOW_BUFFER = 4096  # bytes of a slow reader's socket
RETRY_S = 0.1  # after which a slow reader that was refused asks again
SPOKEN_S = 1.0  # without a new row: what slow readers asked for has been spoken
Read = Callable[[asyncio.StreamReader], Awaitable[bytes]]


class PacedToneModel(ToneModel):
    """Tones that take as long as on a real device; a span of a row takes its part of the row."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        time.sleep(CALL_S + FRAME_S * sum(map(_cost_frames, rows)))
        return super().vocoder(rows)


def _cost_frames(row: Frames) -> int:
    return LIGHT_SPANS.cost(row.n_frames, row.start, row.end) if isinstance(row, Span) else row.n_frames


def serve(parent: Connection, max_start_s: float | None) -> None:
    """Run the server in this process; send its port, then answer each message with the number of its tasks."""

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder, bind(settings) as sock:
            engine = tone_engine(
                silent_voices(Path(folder)),
                PacedToneModel,
                capped=True,
                first_audio_ms=1000 * TARGET_S,
                max_batch_size=16,
                max_start_s=max_start_s,
            )
            warm = asyncio.Event()
            application = create_app(
                engine, settings, engine.batch_stats.metrics.registry, on_warm=lambda _: warm.set()
            )
            server = Server(uvicorn_config(application, settings), application.state.service.lifecycle, 0)
            serving = asyncio.create_task(server.serve(sockets=[sock]))
            await warm.wait()
            parent.send(sock.getsockname()[1])
            while await asyncio.to_thread(parent.recv):
                parent.send(len(asyncio.all_tasks()))
            server.should_exit = True
            await serving

    settings = Settings(port=0, grace_s=0)
    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Response:
    """How one request went."""

    status: int
    first_s: float
    stalled_s: float = 0.0
    retry_after: bool = False
    requested_s: float = 0.0  # since the phase started

    def starts_within(self, seconds: float) -> bool:
        """Whether it starts so soon, and its player never stalls."""
        return self.status == 200 and self.first_s <= seconds + GAP_S and self.stalled_s <= GAP_S


def post(body: dict[str, Any]) -> bytes:
    """A request for speech as it is sent."""
    data = json.dumps(body).encode()
    head = f"Host: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    return b"POST /v1/audio/speech HTTP/1.1\r\n" + head.encode() + data


class Clients:
    """Clients of one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.random = random.Random(1)

    async def request(self, text: str) -> Response:
        requested_s = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 16)
        writer.write(post({"input": text, "response_format": "pcm", "stream": True}))
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
            first_s = time.perf_counter() - requested_s
            status = int(answer.split(b" ", 2)[1])
            arrivals = []
            while part := await reader.read(1 << 16):
                arrivals.append((time.perf_counter(), len(part) / BYTES_PER_S))
        finally:
            writer.close()
        if status != 200:
            return Response(status, first_s, retry_after=b"retry-after" in answer.lower())
        _, stalled_s = playback_stalls(arrivals)
        return Response(status, first_s, stalled_s)

    async def read_slowly(self, read: Read, accepted: "asyncio.Future[bool]") -> None:
        """Ask for a stream, tell whether it was accepted, and read it; hardly anything of it is buffered on the way."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BUFFER)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=SLOW_BUFFER)
        try:
            writer.write(post({"input": SLOW_TEXT, "response_format": "pcm", "sample_rate": 48_000}))
            answer = await reader.readuntil(b"\r\n\r\n")
            accepted.set_result(answer.split(b" ", 2)[1] == b"200")
            while accepted.result() and await read(reader):
                pass
        finally:
            writer.close()

    async def metric(self, name: str) -> float:
        """The sum of a metric of the server over all labels."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = (await reader.read(-1)).decode()
        writer.close()
        return sum(map(float, re.findall(rf"(?m)^{name}(?:{{.*}})? (\S+)", text)))

    async def request_with_retries(self, text: str, tries: int) -> Response:
        """Request again when refused, a little later each time."""
        for n in range(1, tries + 1):
            response = await self.request(text)
            if response.status != 429 or n == tries:
                break
            await asyncio.sleep(0.5 * n * (0.5 + self.random.random()))
        return response

    async def open_load(self, rate: float, seconds: float, tries: int = 1) -> list[Response]:
        """New requests at random times, whatever becomes of the earlier ones."""
        started_s = time.perf_counter()
        tasks: list[tuple[float, asyncio.Task[Response]]] = []
        at_s = 0.0
        while (at_s := at_s + self.random.expovariate(rate)) < seconds:
            await asyncio.sleep(max(0.0, started_s + at_s - time.perf_counter()))
            tasks.append((at_s, asyncio.create_task(self.request_with_retries(self.random.choice(TEXTS), tries))))
        return [replace(await task, requested_s=at_s) for at_s, task in tasks]

    async def capacity(self, seconds: float = 8.0, clients: int = 24) -> float:
        """Requests per second when there is always another; before that, the server learns what its batches cost."""
        n_done, until_s = 0, 0.0

        async def request_on() -> None:
            nonlocal n_done
            while time.perf_counter() < until_s:
                response = await self.request(self.random.choice(TEXTS))
                n_done += response.status == 200
                await asyncio.sleep(0.0 if response.status == 200 else 0.1)

        for n in (1, clients, clients):
            n_done, until_s = 0, time.perf_counter() + (seconds if n > 1 else 6.0)
            await asyncio.gather(*(request_on() for _ in range(n)))
        return n_done / seconds


def ms(values: Sequence[float], q: float) -> float:
    return round(1000 * float(np.percentile(values, q)), 1) if values else 0.0


def summary(responses: Sequence[Response], seconds: float) -> dict[str, float]:
    served, refused = ([each for each in responses if (each.status == 200) == ok] for ok in (True, False))
    n_in_time, n_heard = (sum(each.starts_within(limit_s) for each in served) for limit_s in (TARGET_S, MAX_START_S))
    return {
        "asked": len(responses),
        "served": len(served),
        "in_time_%": round(100 * n_in_time / max(1, len(served)), 2),
        "heard_%": round(100 * n_heard / max(1, len(served)), 2),
        "heard_per_s": round(n_heard / seconds, 2),
        "first_p50_ms": ms([response.first_s for response in served], 50),
        "first_p90_ms": ms([response.first_s for response in served], 90),
        "first_p99_ms": ms([response.first_s for response in served], 99),
        "refused": len(refused),
        "refused_p50_ms": ms([response.first_s for response in refused], 50),
        "refused_p99_ms": ms([response.first_s for response in refused], 99),
        "other_errors": sum(response.status != 429 or not response.retry_after for response in refused),
    }


def gates(rows: dict[str, Any]) -> dict[str, tuple[float, str, bool]]:
    """The promises of docs/reliability.md that these rows can show: the value, the limit, and whether it holds."""
    checked: dict[str, tuple[float, str, bool]] = {}

    def at_most(name: str, value: float, limit: float) -> None:
        checked[name] = value, f"<= {limit:g}", value <= limit

    def at_least(name: str, value: float, limit: float) -> None:
        checked[name] = value, f">= {limit:g}", value >= limit

    def not_slower(name: str, beside: dict[str, float], alone: dict[str, float]) -> None:
        limit_ms = max(MAX_SLOWER * alone["first_p90_ms"], alone["first_p90_ms"] + SMALL_MS)
        at_most(f"{name}: first audio p90, ms", beside["first_p90_ms"], round(limit_ms, 1))

    for name, row in rows.items():
        at_most(f"{name}: other errors", row["other_errors"], 0)
    if row := rows.get("0.8 C"):
        at_most("2: memory grown, MB", row["grown_mb"], MAX_GROWN_MB)
        at_most("2: tasks left", row["tasks_left"], 0)
    if row := rows.get("2 C"):
        at_least("3: heard of the served at 2 C, %", row["heard_%"], MIN_GOOD)
        at_most("3: refused after, p50 ms", row["refused_p50_ms"], MAX_REFUSED_MS)
        at_least("3: in time 5 s later, %", rows["0.5 C, 5 s later"]["in_time_%"], MIN_GOOD)
        kept = round(rows["2 C, retried 3x"]["heard_per_s"] / max(row["heard_per_s"], 1e-9), 3)
        at_least("26: heard a second with retries, of that without", kept, MIN_KEPT)
    if row := rows.get("2 C, strict"):
        at_least("3: in time of the served at 2 C, strict, %", row["in_time_%"], MIN_GOOD)
    if alone := rows.get("0.5 C alone"):
        for name in ("0.5 C, 200 at 1 kB/s", "0.5 C, 20 at 256 kbit/s"):
            at_least(f"12: readers to the end of {name[7:]}", rows[name]["readers"], int(name[7:].split()[0]))
        not_slower("12: 200 readers of 1 kB/s", rows["0.5 C, 200 at 1 kB/s"], alone)
        not_slower("12: 20 readers of 256 kbit/s", rows["0.5 C, 20 at 256 kbit/s"], alone)
    if alone := rows.get("0.9 C"):
        not_slower("23: scraped", rows["0.9 C, scraped"], alone)
    return checked


async def steady(clients: Clients, c: float, process: psutil.Process, n_tasks: Callable[[], int]) -> dict[str, Any]:
    """0.8 C: growth of memory after the first seconds, and tasks left over at the end."""
    before = n_tasks()
    await clients.open_load(0.8 * c, 6)
    early = process.memory_info().rss
    row = summary(await clients.open_load(0.8 * c, 24), 24)
    await asyncio.sleep(1)
    return {"0.8 C": row | {"grown_mb": round((process.memory_info().rss - early) / 1e6, 1),
                            "tasks_left": n_tasks() - before}}  # fmt: skip


async def overload(clients: Clients, c: float, seconds: float) -> dict[str, Any]:
    """2 C, then 0.5 C; then 2 C again with clients that retry three times."""
    flood = await clients.open_load(2 * c, seconds)
    calm = await clients.open_load(0.5 * c, 15)
    storm = await clients.open_load(2 * c, 20, tries=4)
    return {
        "2 C": summary(flood, seconds),
        "0.5 C, 5 s later": summary([response for response in calm if response.requested_s >= 5], 10),
        "2 C, retried 3x": summary(storm, 20),
    }


async def strict(clients: Clients, c: float, seconds: float) -> dict[str, Any]:
    """2 C on a server that refuses what would start late."""
    return {"2 C, strict": summary(await clients.open_load(2 * c, seconds), seconds)}


async def slow_readers(clients: Clients, c: float) -> dict[str, Any]:
    """0.5 C: alone, beside 200 clients that read 1 kB/s, and beside 20 that read 256 kbit/s, in turns.

    Readers are connected before a turn, one after the other as the server accepts them. It begins when their texts have
    been spoken and all of them still read: what is measured is the cost of slow reading, not of speaking.
    """

    async def read_1_kb_per_s(reader: asyncio.StreamReader) -> bytes:
        await asyncio.sleep(1)
        return await reader.read(1024)

    async def read_256_kbit_per_s(reader: asyncio.StreamReader) -> bytes:
        await asyncio.sleep(clients.random.uniform(0, 0.05))  # on average 800 bytes in 25 ms
        return await reader.read(800)

    kinds: dict[str, tuple[int, Read | None]] = {
        "0.5 C alone": (0, None),
        "0.5 C, 200 at 1 kB/s": (200, read_1_kb_per_s),
        "0.5 C, 20 at 256 kbit/s": (20, read_256_kbit_per_s),
    }
    responses: dict[str, list[Response]] = {name: [] for name in kinds}
    n_reading: dict[str, list[int]] = {name: [] for name in kinds}
    await clients.open_load(0.5 * c, TURN_S)  # after the capacity was measured, so that the first turn is as the others
    for name in [*kinds] * TURNS:
        n, read = kinds[name]
        async with connected(clients, n, read) as readers:
            responses[name] += await clients.open_load(0.5 * c, TURN_S)
            n_reading[name].append(sum(not reader.done() for reader in readers))
        await asyncio.sleep(1)
    return {
        name: summary(values, TURNS * TURN_S) | {"readers": min(n_reading[name])} for name, values in responses.items()
    }


@asynccontextmanager
async def connected(clients: Clients, n: int, read: Read | None) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Readers of accepted streams; all that they asked for has been spoken."""
    readers: list[asyncio.Task[None]] = []
    while len(readers) < n:
        accepted = asyncio.get_running_loop().create_future()
        reading = asyncio.create_task(clients.read_slowly(read, accepted))
        if await accepted:
            readers.append(reading)
        else:
            await asyncio.sleep(RETRY_S)
    n_rows = -1.0
    while n and n_rows != (n_rows := await clients.metric("tutti_rows_total")):
        await asyncio.sleep(SPOKEN_S)
    try:
        yield readers
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def scraped(clients: Clients, c: float) -> dict[str, Any]:
    """0.9 C without and with a client that reads the metrics every second, in turns."""

    async def scrape() -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", clients.port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            await reader.read(-1)
            writer.close()
            await asyncio.sleep(1)

    responses: dict[str, list[Response]] = {"0.9 C": [], "0.9 C, scraped": []}
    for _ in range(TURNS):
        responses["0.9 C"] += await clients.open_load(0.9 * c, TURN_S)
        scraping = asyncio.create_task(scrape())
        responses["0.9 C, scraped"] += await clients.open_load(0.9 * c, TURN_S)
        scraping.cancel()
    return {name: summary(values, TURNS * TURN_S) for name, values in responses.items()}


def measure(max_start_s: float | None, names: Sequence[str], seconds: float) -> tuple[float, dict[str, Any]]:
    """The capacity of a server, and the rows of these cases."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, max_start_s))
    process.start()
    clients, server = Clients(ours.recv()), psutil.Process(process.pid)

    def n_tasks() -> int:
        ours.send(True)
        return int(ours.recv())

    cases = {
        "steady": lambda c: steady(clients, c, server, n_tasks),
        "overload": lambda c: overload(clients, c, seconds),
        "slow_readers": lambda c: slow_readers(clients, c),
        "scraped": lambda c: scraped(clients, c),
        "strict": lambda c: strict(clients, c, seconds),
    }

    async def run() -> tuple[float, dict[str, Any]]:
        rows: dict[str, Any] = {}
        with progress(1 + len(names)) as step:
            step("measuring the capacity")
            c = await clients.capacity()
            for name in names:
                step(name)
                rows |= await cases[name](c)
        return c, rows

    try:
        return asyncio.run(run())
    finally:
        ours.send(False)
        process.join()


def main(
    only: Annotated[str | None, typer.Option(help="steady, overload, slow_readers, scraped or strict")] = None,
    seconds: Annotated[float, typer.Option(help="Seconds of the overload.")] = 40,
    out: Annotated[Path, typer.Option(help="Result file; the rows of other cases in it are kept.")] = RESULTS,
) -> None:
    """Run all cases, or one of them, and write the result to a file; exit 1 if a gate fails."""
    c, rows = 0.0, dict[str, Any]()
    for max_start_s, cases in ((None, ("steady", "overload", "slow_readers", "scraped")), (0.0, ("strict",))):
        if chosen := [name for name in cases if only in (None, name)]:
            c, more = measure(max_start_s, chosen, seconds)
            rows |= more
    if not rows:
        raise typer.BadParameter(f"there is no case {only!r}")
    columns = list(summary([], 1))
    table = Table("case", *columns, title=f"C = {c:.2f} requests/s")
    for name, row in rows.items():
        table.add_row(name, *(str(row[column]) for column in columns))
    Console(width=220).print(table)
    checked = gates(rows)
    table = Table("gate", "value", "limit", "holds")
    for name, (value, limit, holds) in checked.items():
        table.add_row(name, str(value), limit, "yes" if holds else "NO")
    Console(width=120).print(table)
    earlier = json.loads(out.read_text()) if out.exists() else {}
    out.write_text(json.dumps(earlier | rows, indent=1) + "\n")
    if not all(holds for _, _, holds in checked.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
