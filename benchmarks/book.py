"""Measure the memory of the server and its G2P process while one request reads a book of 100,000 words.

python -m benchmarks.book              3 minutes; needs the lexicons, not the model

Runs a real server with default limits and the real text front end, each in its process, and the tone model in place
of the network. The client reads the stream as fast as it comes.
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

from benchmarks.progress import progress
from tests.fakes import silent_voices, tone_engine
from tutti import settings
from tutti.client.bench import TEXTS
from tutti.server.app import create_app
from tutti.server.run import Server, bind
from tutti.server.uvicorn_setup import uvicorn_config
from tutti.settings import Settings
from tutti.text.frontend import G2PPool
from tutti.text.g2p import G2P

RESULTS = Path(__file__).parent / "results" / "book.json"
STEP_BYTES = 150e6  # of audio between two readings of the memory
WORDS_PER_STEP = 11_400  # that make so much audio
N_SHOWN = 10  # rows of the printed table, about


def serve(parent: Connection, folder: Path) -> None:
    """Run the server in this process; send its port, and stop at the next message."""
    options, _ = settings.load({}, os.environ)

    async def run() -> None:
        engine = tone_engine(silent_voices(folder))
        engine.frontend = G2PPool(G2P(options.home).pronounce)
        limits = Settings(port=0, grace_s=0)
        warm = asyncio.Event()
        with bind(limits) as sock:
            application = create_app(engine, limits, engine.batch_stats.metrics.registry, on_warm=lambda _: warm.set())
            server = Server(uvicorn_config(application, limits), application.state.service.lifecycle, 0)
            serving = asyncio.create_task(server.serve(sockets=[sock]))
            await warm.wait()
            parent.send(sock.getsockname()[1])
            await asyncio.to_thread(parent.recv)
            server.should_exit = True
            await serving

    asyncio.run(run())


@contextmanager
def run_server() -> Iterator[tuple[str, psutil.Process]]:
    """Start a server; give the URL of its speech route, and its process."""
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, Path(folder)))
        process.start()
        try:
            yield f"http://127.0.0.1:{ours.recv()}/v1/audio/speech", psutil.Process(process.pid)
        finally:
            ours.send(None)
            process.join()


def book(n_words: int) -> str:
    """Numbered paragraphs, no two alike, with typographic quotes and dashes."""
    rng, paragraphs, n = random.Random(3), [], 0
    while n < n_words:
        sentences = [rng.choice(TEXTS) for _ in range(rng.randint(2, 6))]
        paragraph = f"“{sentences[0]}” On page {len(paragraphs) + 1} — or was it later? — " + " ".join(sentences[1:])
        paragraphs.append(paragraph)
        n += len(paragraph.split())
    return "\n\n".join(paragraphs)


def memory_mb(process: psutil.Process) -> tuple[float, float]:
    """Resident memory of the server, and of its G2P process."""
    children = [child.memory_info().rss for child in process.children() if "spawn_main" in " ".join(child.cmdline())]
    return process.memory_info().rss / 1e6, max(children, default=0) / 1e6


def main(
    words: Annotated[int, typer.Option(help="Length of the book.")] = 100_000,
    out: Annotated[Path, typer.Option(help="Result file.")] = RESULTS,
) -> None:
    """Request the book, note the memory after every 150 MB of audio, and write it to a file."""
    rows: list[dict[str, float]] = []
    n_steps = words // WORDS_PER_STEP + 1
    with run_server() as (url, process), progress(n_steps) as step:
        httpx2.post(url, json={"input": book(200), "response_format": "pcm"}, timeout=60)  # warm-up
        text = book(words)
        step("reading the book")
        started_s, first_s, n_bytes = time.perf_counter(), 0.0, 0
        before = memory_mb(process)
        with httpx2.stream("POST", url, json={"input": text, "response_format": "pcm"}, timeout=60) as response:
            response.raise_for_status()
            for part in response.iter_raw():
                first_s = first_s or time.perf_counter() - started_s
                n_bytes += len(part)
                if n_bytes >= (len(rows) + 1) * STEP_BYTES:
                    server_mb, g2p_mb = memory_mb(process)
                    rows.append({"sent_mb": n_bytes / 1e6, "server_mb": server_mb, "g2p_mb": g2p_mb})
                    step(f"{n_bytes / 1e6:.0f} MB received")
        took_s = time.perf_counter() - started_s
        after = memory_mb(process)
    result = {
        "words": len(text.split()), "characters": len(text), "first_byte_ms": 1000 * first_s, "took_s": took_s,
        "audio_h": n_bytes / 48_000 / 3600,
        "before_mb": before, "after_mb": after, "while": rows,
    }  # fmt: skip
    table = Table(
        "sent MB", "server MB", "G2P MB", title=f"{result['words']:,} words, {result['audio_h']:.1f} h of audio"
    )
    for row in rows[:: max(1, len(rows) // N_SHOWN)]:
        table.add_row(*(f"{value:.0f}" for value in row.values()))
    Console().print(table, {name: value for name, value in result.items() if name != "while"})
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
