"""What HTTP and encoding cost: first byte, processor time, and how late the event loop runs under many streams.

python -m benchmarks.http                       about a minute, no weights

The server is the real one, in a thread of this process, around an engine that has its speech ready made: everything
measured is its own. The clients are in another process, so that the processor time of this one is the server's.
"""

import asyncio
import http.client
import json
import multiprocessing
import platform
import statistics
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.table import Table

from tutti.audio import FORMATS
from tutti.server.app import create_app
from tutti.server.run import Server, bind, uvicorn_config
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Samples, Speech, SpeechParams

HERE = Path(__file__).parent
CHUNK_S = 4.0
SHORT, LONG = "one chunk", "eight chunks of four seconds each"
N_CHUNKS = {SHORT: 1, LONG: 8}
TICK_S = 0.005
STREAMS = 64


class Canned:
    """An engine that costs nothing: every text is the same hum, one chunk or eight."""

    ready = True
    checkpoints = ("kokoro",)
    batching_enabled = True
    passages_at_once = 2

    def __init__(self) -> None:
        self._hum = hum(CHUNK_S)

    async def start(self) -> None: ...

    async def close(self, grace_s: float = 0) -> None: ...

    async def stream(self, text: str, _params: SpeechParams, **_: Any) -> AsyncGenerator[Speech]:
        step = len(text) // N_CHUNKS[text]
        for n in range(N_CHUNKS[text]):
            await asyncio.sleep(0)
            yield Speech(self._hum, (), (n * step, (n + 1) * step))

    def workers(self) -> dict[str, Any]:
        return {}

    def stats(self) -> dict[str, Any]:
        return {}


def hum(seconds: float) -> Samples:
    """Something a codec has to work for: a voice's fundamental, its harmonics, some breath."""
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    voice = sum(np.sin(2 * np.pi * 140 * k * t + np.sin(5 * t)) / k for k in range(1, 20))
    breath = np.random.default_rng(0).standard_normal(len(t))
    return (0.15 * voice * (1 + np.sin(8 * t)) / 2 + 0.005 * breath).astype(np.float32)


class Served:
    """A server in a thread, and how late its event loop has been."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.port = port
        self.loop = loop
        self.late_s: list[float] = []

    async def watch(self) -> None:
        while True:
            due_s = self.loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self.late_s.append(self.loop.time() - due_s)


@contextmanager
def served() -> Iterator[Served]:
    settings = Settings(port=0, grace_s=0)
    warm = threading.Event()
    with bind(settings) as sock:
        application = create_app(Canned(), settings, CollectorRegistry(), on_warm=lambda _: warm.set())  # type: ignore[arg-type]
        server = Server(uvicorn_config(application, settings), application.state.service.lifecycle, 0)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(sockets=[sock]),))
        thread.start()
        warm.wait()
        try:
            yield Served(sock.getsockname()[1], loop)
        finally:
            server.should_exit = True
            thread.join()
            loop.close()


# -- clients, in a process of their own ------------------------------------------------------------------------------


def ask(connection: http.client.HTTPConnection, text: str, format: str) -> tuple[float, int]:
    """Seconds to the first byte of sound, and how many bytes came."""
    body = json.dumps({"input": text, "response_format": format})
    started_s = time.perf_counter()
    connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    first = response.read1(1 << 16)
    first_s = time.perf_counter() - started_s
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {first[:200]!r}")
    return first_s, len(first) + len(response.read())


def ask_in_turn(port: int, text: str, format: str, rounds: int) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    firsts = [ask(connection, text, format)[0] for _ in range(rounds)]
    connection.close()
    return firsts


def ask_at_once(port: int, text: str, format: str, streams: int) -> int:
    """All at once, read as fast as they come; how many bytes that were."""

    async def one() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"input": text, "response_format": format})
        told = ("Host: x", "Content-Type: application/json", "Connection: close", f"Content-Length: {len(body)}")
        writer.write("\r\n".join(("POST /v1/audio/speech HTTP/1.1", *told, "", body)).encode())
        status = await reader.readline()
        n_bytes = 0
        while piece := await reader.read(1 << 16):
            n_bytes += len(piece)
        writer.close()
        if b" 200 " not in status:
            raise RuntimeError(f"{status!r} {piece!r}")
        return n_bytes

    async def all_of_them() -> int:
        return sum(await asyncio.gather(*(one() for _ in range(streams))))

    return asyncio.run(all_of_them())


# -- measurements ----------------------------------------------------------------------------------------------------


def first_byte(server: Served, pool: Any, rounds: int) -> dict[str, float]:
    """A lone request on a kept connection: all that lies between a client and an engine that answers at once."""
    firsts_ms = 1000 * np.array(pool.apply(ask_in_turn, (server.port, LONG, "pcm", 20 * rounds))[1:])
    return {"p50_ms": float(np.percentile(firsts_ms, 50)), "p95_ms": float(np.percentile(firsts_ms, 95))}


def cpu(server: Served, pool: Any, format: str, rounds: int) -> dict[str, float]:
    """Processor time of the server for a second of sound, in streams one after the other."""
    costs = []
    for _ in range(rounds):
        before = time.process_time()
        pool.apply(ask_in_turn, (server.port, LONG, format, 4))
        costs.append(time.process_time() - before)
    ms = 1000 * statistics.median(costs) / (4 * N_CHUNKS[LONG] * CHUNK_S)
    return {"cpu_ms_per_audio_s": ms, "audio_s_per_core_s": 1000 / ms}


def lag(server: Served, pool: Any, format: str) -> dict[str, float]:
    """How late a timer of the event loop comes while many streams are sent at once, as fast as they can be."""
    watching = asyncio.run_coroutine_threadsafe(server.watch(), server.loop)
    started_s = time.perf_counter()
    pool.apply(ask_at_once, (server.port, LONG, format, STREAMS))
    took_s = time.perf_counter() - started_s
    watching.cancel()
    late_ms = 1000 * np.array(server.late_s)
    server.late_s.clear()
    return {
        "lag_p50_ms": float(np.percentile(late_ms, 50)),
        "lag_p99_ms": float(np.percentile(late_ms, 99)),
        "lag_max_ms": float(late_ms.max()),
        "audio_s_per_s": STREAMS * N_CHUNKS[LONG] * CHUNK_S / took_s,
    }


def main(rounds: Annotated[int, typer.Option(help="of each measurement")] = 3) -> None:
    with served() as server, multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(ask_in_turn, (server.port, LONG, "pcm", 3))  # warm on both sides
        found: dict[str, Any] = {
            "first byte": {"pcm": first_byte(server, pool, rounds)},
            "one stream after the other": {format: cpu(server, pool, format, rounds) for format in FORMATS},
            f"{STREAMS} streams at once": {format: lag(server, pool, format) for format in ("pcm", "mp3", "opus")},
        }
    for title, rows in found.items():
        table = Table("format", *next(iter(rows.values())), title=title)
        for name, values in rows.items():
            table.add_row(name, *(f"{value:.2f}" for value in values.values()))
        Console().print(table)
    (HERE / "results" / f"http-{platform.machine()}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
