"""Measure what HTTP and encoding cost: first byte, CPU time, and delay of the event loop under many streams.

python -m benchmarks.http                       1 minute, without model files

The real server runs in a thread of this process, around an engine whose speech is ready, so that all the time measured
is the server's. The clients are in another process, so that the CPU time of this one is the server's.
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

from benchmarks.progress import progress
from tutti.audio import FORMATS
from tutti.server.app import create_app
from tutti.server.run import Server, bind
from tutti.server.uvicorn_setup import uvicorn_config
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Samples, Speech, SpeechParams

RESULTS = Path(__file__).parent / "results"
CHUNK_S = 4.0  # of audio
SHORT, LONG = "one chunk", "eight chunks of four seconds each"
N_CHUNKS = {SHORT: 1, LONG: 8}
TICK_S = 0.005  # between two timers of the event loop whose delay is measured
STREAMS = 64  # at once
FORMATS_AT_ONCE = ("pcm", "mp3", "opus")


class InstantEngine:
    """An engine without cost: every chunk of a text is the same stored audio."""

    ready = True
    checkpoints = ("kokoro",)
    batching_enabled = True
    passages_at_once = 2

    def __init__(self) -> None:
        self._samples = voice_like(CHUNK_S)

    async def start(self) -> None: ...

    async def close(self, grace_s: float = 0) -> None: ...

    async def stream(self, text: str, _params: SpeechParams, **_: Any) -> AsyncGenerator[Speech]:
        step = len(text) // N_CHUNKS[text]
        for n in range(N_CHUNKS[text]):
            await asyncio.sleep(0)
            yield Speech(self._samples, (), (n * step, (n + 1) * step))

    def workers(self) -> dict[str, Any]:
        return {}

    def stats(self) -> dict[str, Any]:
        return {}


def voice_like(seconds: float) -> Samples:
    """Audio that is no easier for a codec than a voice: a fundamental, its harmonics, some noise."""
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    voice = sum(np.sin(2 * np.pi * 140 * k * t + np.sin(5 * t)) / k for k in range(1, 20))
    noise = np.random.default_rng(0).standard_normal(len(t))
    return (0.15 * voice * (1 + np.sin(8 * t)) / 2 + 0.005 * noise).astype(np.float32)


class RunningServer:
    """A server in a thread, and the delays of its event loop."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.port = port
        self.loop = loop
        self.delays_s: list[float] = []

    async def measure_delays(self) -> None:
        while True:
            due_s = self.loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self.delays_s.append(self.loop.time() - due_s)


@contextmanager
def run_server() -> Iterator[RunningServer]:
    """Run a server in a thread until the end of the block."""
    settings = Settings(port=0, grace_s=0)
    warm = threading.Event()
    with bind(settings) as sock:
        application = create_app(InstantEngine(), settings, CollectorRegistry(), on_warm=lambda _: warm.set())  # type: ignore[arg-type]
        server = Server(uvicorn_config(application, settings), application.state.service.lifecycle, 0)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(sockets=[sock]),))
        thread.start()
        warm.wait()
        try:
            yield RunningServer(sock.getsockname()[1], loop)
        finally:
            server.should_exit = True
            thread.join()
            loop.close()


# -- clients, in a process of their own ------------------------------------------------------------------------------


def request(connection: http.client.HTTPConnection, text: str, format: str) -> float:
    """Seconds to the first byte of audio; the rest is read to its end."""
    body = json.dumps({"input": text, "response_format": format})
    started_s = time.perf_counter()
    connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    first = response.read1(1 << 16)
    first_s = time.perf_counter() - started_s
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {first[:200]!r}")
    response.read()
    return first_s


def request_in_turn(port: int, text: str, format: str, rounds: int) -> list[float]:
    """Seconds to the first byte of each request on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    firsts = [request(connection, text, format) for _ in range(rounds)]
    connection.close()
    return firsts


def request_at_once(port: int, text: str, format: str, streams: int) -> None:
    """Open all streams at once, and read them as fast as they come."""

    async def stream() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"input": text, "response_format": format})
        head = ("Host: x", "Content-Type: application/json", "Connection: close", f"Content-Length: {len(body)}")
        writer.write("\r\n".join(("POST /v1/audio/speech HTTP/1.1", *head, "", body)).encode())
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(f"{status!r} {await reader.read()!r}")
        while await reader.read(1 << 16):
            pass
        writer.close()

    async def all_streams() -> None:
        await asyncio.gather(*(stream() for _ in range(streams)))

    asyncio.run(all_streams())


# -- measurements ----------------------------------------------------------------------------------------------------


def first_byte(server: RunningServer, pool: Any, rounds: int) -> dict[str, float]:
    """Time to first byte of a lone request on an open connection, with an engine that answers at once."""
    firsts_ms = 1000 * np.array(pool.apply(request_in_turn, (server.port, LONG, "pcm", 20 * rounds))[1:])
    return {"p50_ms": float(np.percentile(firsts_ms, 50)), "p95_ms": float(np.percentile(firsts_ms, 95))}


def cpu(server: RunningServer, pool: Any, format: str, rounds: int) -> dict[str, float]:
    """CPU time of the server for a second of audio, in streams one after the other."""
    costs = []
    for _ in range(rounds):
        before = time.process_time()
        pool.apply(request_in_turn, (server.port, LONG, format, 4))
        costs.append(time.process_time() - before)
    ms = 1000 * statistics.median(costs) / (4 * N_CHUNKS[LONG] * CHUNK_S)
    return {"cpu_ms_per_audio_s": ms, "audio_s_per_core_s": 1000 / ms}


def loop_delay(server: RunningServer, pool: Any, format: str) -> dict[str, float]:
    """How late the timers of the event loop are while many streams are sent at once, as fast as possible."""
    measuring = asyncio.run_coroutine_threadsafe(server.measure_delays(), server.loop)
    started_s = time.perf_counter()
    pool.apply(request_at_once, (server.port, LONG, format, STREAMS))
    took_s = time.perf_counter() - started_s
    measuring.cancel()
    delays_ms = 1000 * np.array(server.delays_s)
    server.delays_s.clear()
    return {
        "lag_p50_ms": float(np.percentile(delays_ms, 50)),
        "lag_p99_ms": float(np.percentile(delays_ms, 99)),
        "lag_max_ms": float(delays_ms.max()),
        "audio_s_per_s": STREAMS * N_CHUNKS[LONG] * CHUNK_S / took_s,
    }


def main(
    rounds: Annotated[int, typer.Option(help="Repetitions of each measurement.")] = 3,
    out: Annotated[Path, typer.Option(help="Folder of the result file.")] = RESULTS,
) -> None:
    """Print all measurements, and write them to a file."""
    in_turn: dict[str, dict[str, float]] = {}
    at_once: dict[str, dict[str, float]] = {}
    n_steps = 1 + len(FORMATS) + len(FORMATS_AT_ONCE)
    with run_server() as server, multiprocessing.get_context("spawn").Pool(1) as pool, progress(n_steps) as step:
        step("first byte")
        pool.apply(request_in_turn, (server.port, LONG, "pcm", 3))  # warm-up of both sides
        first = first_byte(server, pool, rounds)
        for format in FORMATS:
            step(f"one {format} stream after the other")
            in_turn[format] = cpu(server, pool, format, rounds)
        for format in FORMATS_AT_ONCE:
            step(f"{STREAMS} {format} streams at once")
            at_once[format] = loop_delay(server, pool, format)
    report = {
        "first byte": {"pcm": first},
        "one stream after the other": in_turn,
        f"{STREAMS} streams at once": at_once,
    }
    for title, rows in report.items():
        table = Table("format", *next(iter(rows.values())), title=title)
        for name, values in rows.items():
            table.add_row(name, *(f"{value:.2f}" for value in values.values()))
        Console().print(table)
    (out / f"http-{platform.machine()}.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
