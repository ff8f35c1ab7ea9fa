"""More than can be served, and others beside it: who is refused, how soon, and what the rest hear.

python -m benchmarks.flood                              under four minutes, no weights
python -m benchmarks.flood --only twice --seconds 120   one of the cases below, the flood for two minutes

A real server in a process of its own around the tone model, which takes as long for its rows as a device of a given
speed would; the listeners are in this process. A stream is good if its first sound came in time and its player never
stood still. All figures are of one run.
"""

import asyncio
import json
import multiprocessing
import random
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer
from rich.console import Console
from rich.table import Table

from tests.fakes import silent_voices, tone_engine
from tutti.client.bench import TEXTS, playback_stalls
from tutti.model.tone import ToneModel
from tutti.server.app import create_app
from tutti.server.run import Server, bind, uvicorn_config
from tutti.settings import Settings
from tutti.speech import Frames, Samples

HERE = Path(__file__).parent
TARGET_S = 0.5
GAP_S = 0.05  # that nobody hears
CALL_S, FRAME_S = 0.004, 2.5e-4  # of the device: about a hundred seconds of sound each second
BYTES_S = 48_000


class Paced(ToneModel):
    """As slow as a device."""

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        time.sleep(CALL_S + FRAME_S * sum(row.n_frames for row in rows))
        return super().vocoder(rows)


def serve(there: Connection) -> None:
    """The process of the server; each message is answered with the number of its tasks."""

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder, bind(settings) as sock:
            engine = tone_engine(
                silent_voices(Path(folder)), Paced, capped=True, first_audio_ms=1000 * TARGET_S, max_batch_size=16
            )
            warm = asyncio.Event()
            application = create_app(
                engine, settings, engine.batch_stats.metrics.registry, on_warm=lambda _: warm.set()
            )
            server = Server(uvicorn_config(application, settings), application.state.service.lifecycle, 0)
            serving = asyncio.create_task(server.serve(sockets=[sock]))
            await warm.wait()
            there.send(sock.getsockname()[1])
            while await asyncio.to_thread(there.recv):
                there.send(len(asyncio.all_tasks()))
            server.should_exit = True
            await serving

    settings = Settings(port=0, grace_s=0)
    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Heard:
    status: int
    asked_s: float  # since the phase began
    first_s: float
    stalled_s: float = 0.0
    audio_s: float = 0.0
    retry_after: bool = False
    tries: int = 1

    @property
    def good(self) -> bool:
        return self.status == 200 and self.first_s <= TARGET_S + GAP_S and self.stalled_s <= GAP_S


class Crowd:
    """Listeners of one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.random = random.Random(1)

    async def ask(
        self, text: str, *, format: str = "pcm", read: Callable[[asyncio.StreamReader], Awaitable[bytes]] | None = None
    ) -> Heard:
        asked_s = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 16)
        body = json.dumps({"input": text, "response_format": format, "stream": True}).encode()
        told = f"Host: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(b"POST /v1/audio/speech HTTP/1.1\r\n" + told.encode() + body)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            first_s = time.perf_counter() - asked_s
            status = int(head.split(b" ", 2)[1])
            arrivals = []
            while part := await (read(reader) if read else reader.read(1 << 16)):
                arrivals.append((time.perf_counter(), len(part) / BYTES_S))
        finally:
            writer.close()
        if status != 200:
            return Heard(status, 0.0, first_s, retry_after=b"retry-after" in head.lower())
        _, stalled_s = playback_stalls(arrivals)
        return Heard(status, 0.0, first_s, stalled_s, sum(audio_s for _, audio_s in arrivals))

    async def insisting(self, text: str, tries: int) -> Heard:
        """Asks again when refused, a little later each time."""
        for n in range(1, tries + 1):
            heard = await self.ask(text)
            if heard.status != 429 or n == tries:
                break
            await asyncio.sleep(0.5 * n * (0.5 + self.random.random()))
        return Heard(heard.status, 0.0, heard.first_s, heard.stalled_s, heard.audio_s, heard.retry_after, n)

    async def arriving(self, rate: float, seconds: float, tries: int = 1) -> list[Heard]:
        """New listeners at random, whatever becomes of those before them."""
        began_s = time.perf_counter()
        tasks: list[tuple[float, asyncio.Task[Heard]]] = []
        at_s = 0.0
        while (at_s := at_s + self.random.expovariate(rate)) < seconds:
            await asyncio.sleep(max(0.0, began_s + at_s - time.perf_counter()))
            tasks.append((at_s, asyncio.create_task(self.insisting(self.random.choice(TEXTS), tries))))
        heard = await asyncio.gather(*(task for _, task in tasks))
        return [
            Heard(one.status, at_s, one.first_s, one.stalled_s, one.audio_s, one.retry_after, one.tries)
            for (at_s, _), one in zip(tasks, heard, strict=True)
        ]

    async def capacity(self, seconds: float = 8.0, listeners: int = 24) -> float:
        """Requests a second when there is always another; before that, the server learns what its batches cost."""
        n_done, until_s = 0, 0.0

        async def again() -> None:
            nonlocal n_done
            while time.perf_counter() < until_s:
                heard = await self.ask(self.random.choice(TEXTS))
                n_done += heard.status == 200
                await asyncio.sleep(0.0 if heard.status == 200 else 0.1)

        for n in (1, listeners, listeners):
            n_done, until_s = 0, time.perf_counter() + (seconds if n > 1 else 6.0)
            await asyncio.gather(*(again() for _ in range(n)))
        return n_done / seconds


def ms(values: Sequence[float], q: float) -> float:
    return round(1000 * float(np.percentile(values, q)), 1) if values else 0.0


def told(heard: Sequence[Heard], seconds: float) -> dict[str, float]:
    served, refused = ([one for one in heard if (one.status == 200) == ok] for ok in (True, False))
    return {
        "asked": len(heard),
        "served": len(served),
        "good_%": round(100 * sum(one.good for one in served) / max(1, len(served)), 2),
        "first_p50_ms": ms([one.first_s for one in served], 50),
        "first_p99_ms": ms([one.first_s for one in served], 99),
        "refused": len(refused),
        "refused_p50_ms": ms([one.first_s for one in refused], 50),
        "refused_p99_ms": ms([one.first_s for one in refused], 99),
        "other_errors": sum(one.status != 429 or not one.retry_after for one in refused),
        "good_per_s": round(sum(one.good for one in served) / seconds, 2),
    }


async def steady(crowd: Crowd, c: float, process: psutil.Process, n_tasks: Callable[[], int]) -> dict[str, Any]:
    """0.8 of what can be served: memory after the first seconds, and tasks left over at the end."""
    before = n_tasks()
    await crowd.arriving(0.8 * c, 6)
    early = process.memory_info().rss
    rows = told(await crowd.arriving(0.8 * c, 24), 24)
    await asyncio.sleep(1)
    return {"0.8 C": rows | {"grown_mb": round((process.memory_info().rss - early) / 1e6, 1),
                             "tasks_left": n_tasks() - before}}  # fmt: skip


async def twice(crowd: Crowd, c: float, seconds: float) -> dict[str, Any]:
    """Twice what can be served, then half of it; then again with listeners who ask three times."""
    flood = await crowd.arriving(2 * c, seconds)
    calm = await crowd.arriving(0.5 * c, 15)
    storm = await crowd.arriving(2 * c, 20, tries=4)
    return {
        "2 C": told(flood, seconds),
        "0.5 C, 5 s later": told([one for one in calm if one.asked_s >= 5], 10),
        "2 C, retried 3x": told(storm, 20),
    }


async def beside(crowd: Crowd, c: float) -> dict[str, Any]:
    """Half of what can be served: alone, beside 200 who read a kilobyte a second, beside lines of 256 kbit/s."""

    async def crawl(reader: asyncio.StreamReader) -> bytes:
        await asyncio.sleep(1)
        return await reader.read(1024)

    async def modem(reader: asyncio.StreamReader) -> bytes:
        await asyncio.sleep(crowd.random.uniform(0, 0.05))  # on average 800 bytes in 25 ms
        return await reader.read(800)

    async def with_others(n: int, read: Any, format: str) -> list[Heard]:
        others = [asyncio.create_task(crowd.ask(" ".join(TEXTS), read=read, format=format)) for _ in range(n)]
        await asyncio.sleep(6)  # until their beginnings are said
        heard = await crowd.arriving(0.5 * c, 12)
        for other in others:
            other.cancel()
        ended = await asyncio.gather(*others, return_exceptions=True)
        failed = [one for one in ended if isinstance(one, Exception)]
        return [*heard, *(Heard(500, 0.0, 0.0) for _ in failed)]

    rows = {"0.5 C alone": told(await crowd.arriving(0.5 * c, 12), 12)}
    rows["0.5 C, 200 at 1 kB/s"] = told(await with_others(200, crawl, "pcm"), 12)
    rows["0.5 C, 20 at 256 kbit/s"] = told(await with_others(20, modem, "mp3"), 12)
    return rows


async def scraped(crowd: Crowd, c: float) -> dict[str, Any]:
    """0.9 of what can be served, without and with somebody who reads the metrics every second; in turns."""

    async def scrape() -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", crowd.port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            await reader.read(-1)
            writer.close()
            await asyncio.sleep(1)

    heard: dict[str, list[Heard]] = {"0.9 C": [], "0.9 C, scraped": []}
    for _ in range(2):
        heard["0.9 C"] += await crowd.arriving(0.9 * c, 9)
        scraping = asyncio.create_task(scrape())
        heard["0.9 C, scraped"] += await crowd.arriving(0.9 * c, 9)
        scraping.cancel()
    return {name: told(ones, 18) for name, ones in heard.items()}


def main(
    only: Annotated[str | None, typer.Option(help="steady, twice, beside or scraped")] = None,
    seconds: Annotated[float, typer.Option(help="of the flood")] = 40,
) -> None:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,))
    process.start()
    crowd = Crowd(here.recv())
    seen, lock = psutil.Process(process.pid), threading.Lock()

    def n_tasks() -> int:
        with lock:
            here.send(True)
            return int(here.recv())

    async def run() -> dict[str, Any]:
        c = await crowd.capacity()
        found: dict[str, Any] = {"C": {"requests_per_s": round(c, 2)}}
        cases = {
            "steady": lambda: steady(crowd, c, seen, n_tasks),
            "twice": lambda: twice(crowd, c, seconds),
            "beside": lambda: beside(crowd, c),
            "scraped": lambda: scraped(crowd, c),
        }
        for name, case in cases.items():
            if only in (None, name):
                found |= await case()
        return found

    try:
        found = asyncio.run(run())
    finally:
        here.send(False)
        process.join()
    table = Table("case", *found["2 C"] if "2 C" in found else found[list(found)[-1]], title=f"C = {found.pop('C')}")
    for name, rows in found.items():
        table.add_row(name, *(str(value) for value in list(rows.values())[:10]))
    Console(width=200).print(table)
    path = HERE / "results" / "flood.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(kept | found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
