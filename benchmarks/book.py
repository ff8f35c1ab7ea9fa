"""A book of 100,000 words through POST /v1/audio/speech: what the server and its G2P process hold while it is read.

TUTTI_HOME=... python -m benchmarks.book              two or three minutes; needs the lexicons, not the model

A real server in a process of its own with default limits, the real text front end in its process, and the tone model:
everything but the network is as it is served. The listener takes the stream as fast as it comes.
"""

import asyncio
import json
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated

import httpx2
import psutil
import typer
from rich.console import Console
from rich.table import Table

from tests.fakes import silent_voices, tone_engine
from tutti import settings
from tutti.client.bench import TEXTS
from tutti.server.app import create_app
from tutti.server.run import Server, bind, uvicorn_config
from tutti.settings import Settings
from tutti.text.frontend import G2PPool
from tutti.text.g2p import G2P

HERE = Path(__file__).parent
STEPS = 10


def serve(there: Connection, folder: Path) -> None:
    chosen, _ = settings.load({}, os.environ)

    async def run() -> None:
        engine = tone_engine(silent_voices(folder))
        engine.frontend = G2PPool(G2P(chosen.home).pronounce)
        limits = Settings(port=0, grace_s=0)
        warm = asyncio.Event()
        with bind(limits) as sock:
            application = create_app(engine, limits, engine.batch_stats.metrics.registry, on_warm=lambda _: warm.set())
            server = Server(uvicorn_config(application, limits), application.state.service.lifecycle, 0)
            serving = asyncio.create_task(server.serve(sockets=[sock]))
            await warm.wait()
            there.send(sock.getsockname()[1])
            await asyncio.to_thread(there.recv)
            server.should_exit = True
            await serving

    asyncio.run(run())


@contextmanager
def served() -> Iterator[tuple[str, psutil.Process]]:
    """The address of the route, and the process behind it."""
    here, there = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, Path(folder)))
        process.start()
        try:
            yield f"http://127.0.0.1:{here.recv()}/v1/audio/speech", psutil.Process(process.pid)
        finally:
            here.send(None)
            process.join()


def book(n_words: int) -> str:
    """Paragraphs of sentences, numbered so that no two are alike, with the quotes and dashes of print."""
    draw, paragraphs, n = random.Random(3), [], 0
    while n < n_words:
        sentences = [draw.choice(TEXTS) for _ in range(draw.randint(2, 6))]
        paragraph = f"“{sentences[0]}” On page {len(paragraphs) + 1} — or was it later? — " + " ".join(sentences[1:])
        paragraphs.append(paragraph)
        n += len(paragraph.split())
    return "\n\n".join(paragraphs)


def held_mb(process: psutil.Process) -> tuple[float, float]:
    """Of the server, and of the process that reads."""
    children = [child.memory_info().rss for child in process.children() if "spawn_main" in " ".join(child.cmdline())]
    return process.memory_info().rss / 1e6, max(children, default=0) / 1e6


def main(words: Annotated[int, typer.Option(help="of the book")] = 100_000) -> None:
    rows: list[dict[str, float]] = []
    with served() as (url, seen):
        httpx2.post(url, json={"input": book(200), "response_format": "pcm"}, timeout=60)  # what is loaded once
        text = book(words)
        started_s, first_s, n_bytes = time.perf_counter(), 0.0, 0
        before = held_mb(seen)
        with httpx2.stream("POST", url, json={"input": text, "response_format": "pcm"}, timeout=60) as response:
            response.raise_for_status()
            for piece in response.iter_raw():
                first_s = first_s or time.perf_counter() - started_s
                n_bytes += len(piece)
                if n_bytes >= (len(rows) + 1) * 150e6:
                    server_mb, g2p_mb = held_mb(seen)
                    rows.append({"sent_mb": n_bytes / 1e6, "server_mb": server_mb, "g2p_mb": g2p_mb})
        took_s = time.perf_counter() - started_s
        after = held_mb(seen)
    found = {
        "words": len(text.split()), "characters": len(text), "first_byte_ms": 1000 * first_s, "took_s": took_s,
        "audio_h": n_bytes / 48_000 / 3600,
        "before_mb": before, "after_mb": after, "while": rows,
    }  # fmt: skip
    table = Table(
        "sent MB", "server MB", "G2P MB", title=f"{found['words']:,} words, {found['audio_h']:.1f} h of sound"
    )
    for row in rows[:: max(1, len(rows) // STEPS)]:
        table.add_row(*(f"{value:.0f}" for value in row.values()))
    Console().print(table, {name: value for name, value in found.items() if name != "while"})
    (HERE / "results" / "book.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
