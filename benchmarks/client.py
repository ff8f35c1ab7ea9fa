"""Measure the client: first byte against a bare socket, what its options save, requests per second, reused connections.

python -m benchmarks.client                           1 minute, without model files: a server of tones is started
python -m benchmarks.client http://127.0.0.1:8880     a running server with its model

Each round makes the same request in each way, so that noise of the machine falls on all of them: from a bare socket,
through both clients with one connection for all requests, with a client and a connection for each, and in pieces of
64 kB instead of 512 bytes.
"""

import argparse
import asyncio
import itertools
import json
import multiprocessing
import platform
import re
import socket
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks import progress
from tutti.client import AsyncClient, Audio, Client
from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.frontend import G2PThread
from tutti.text.vocab import SYMBOLS
from tutti.voices import NAMES, Voices
from tutti.worker.thread import ThreadWorker

RESULTS = Path(__file__).parent / "results"
NUMBERS = itertools.count(1)
LARGE = 65_536  # bytes of a piece: 1.4 s of audio
OPTIONS = {"memory_cache_bytes": 0, "prewarm": False, "voice": "af_heart"}


def new_text() -> str:
    """A text that no cache has seen."""
    return f"Yes, number {next(NUMBERS)}."


def spell(spoken: AlignedText, code: str, given: Any = ()) -> Pronunciation:
    """G2P for the tone model: every letter is a phoneme."""
    words, at = [], 0
    for written in spoken.text.split():
        start = spoken.text.index(written, at)
        at = start + len(written)
        if letters := "".join(char for char in written.lower() if char.isalpha() and char in SYMBOLS):
            words.append(PhonemeWord(letters, spoken.source(start, at)))
    return Pronunciation(tuple(words))


def tone_engine(folder: Path, settings: Settings) -> Engine:
    """An engine around the tone model; `folder` gets voices without a style."""
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    worker = ThreadWorker(partial(dict, {CHECKPOINT: ToneModel()}))
    choices = {CHECKPOINT: Choice("onnx", "cpu", "fp32", vocoder="light")}
    return assemble([worker], choices, Voices(folder), G2PThread(spell), settings, capped=False)


class BareSocket:
    """The least that HTTP needs: one open socket, and no parsing but for the end of the response."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._sock = socket.create_connection((address.hostname or "", address.port or 80))
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def first_s(self) -> float:
        """Seconds to the first byte of audio; the rest is read to its end."""
        body = json.dumps(
            {"model": "kokoro", "input": new_text(), "voice": "af_heart", "response_format": "pcm"}
        ).encode()
        fields = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        started_s = time.perf_counter()
        self._sock.sendall(f"POST /v1/audio/speech HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body)
        received = b""
        while b"\r\n\r\n" not in received or received.endswith(b"\r\n\r\n"):
            received += self._sock.recv(1 << 16)
        first_s = time.perf_counter() - started_s
        head, _, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        while len(body) < int(length[1]) if length else not body.endswith(b"0\r\n\r\n"):
            body += self._sock.recv(1 << 16)
        return first_s

    def close(self) -> None:
        self._sock.close()


def first_s(client: Client) -> float:
    """Seconds to the first audio of the client."""
    started_s = time.perf_counter()
    with client.stream(new_text(), words=False) as stream:
        next(stream)
        took_s = time.perf_counter() - started_s
        for _ in stream:
            pass
    return took_s


async def first_s_async(client: AsyncClient) -> float:
    """Seconds to the first audio of the asynchronous client."""
    started_s = time.perf_counter()
    async with client.stream(new_text(), words=False) as stream:
        await anext(stream)
        took_s = time.perf_counter() - started_s
        async for _ in stream:
            pass
    return took_s


async def first_s_without_pool(url: str) -> float:
    """Seconds to the first audio of a client that is made for this request."""
    started_s = time.perf_counter()
    async with AsyncClient(url, **OPTIONS) as client:  # type: ignore[arg-type]
        created_s = time.perf_counter() - started_s
        return created_s + await first_s_async(client)


def first_bytes(
    url: str, rounds: int, step: Callable[[str], None]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds to the first byte in each way, and of this process's cores for the request; not the first round."""
    bare, took_s, cpu_s = BareSocket(url), defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    with Client(url, **OPTIONS) as client, asyncio.Runner() as runner:  # type: ignore[arg-type]
        async_client = AsyncClient(url, **OPTIONS)  # type: ignore[arg-type]
        large = AsyncClient(url, chunk_bytes=LARGE, **OPTIONS)  # type: ignore[arg-type]
        ways = {
            "bare socket": bare.first_s,
            "AsyncClient": lambda: runner.run(first_s_async(async_client)),
            "Client": lambda: first_s(client),
            "AsyncClient for each request": lambda: runner.run(first_s_without_pool(url)),
            "AsyncClient, pieces of 64 kB": lambda: runner.run(first_s_async(large)),
        }
        for number in range(rounds + 1):
            step(f"first byte, round {number}")
            for name, request in ways.items():
                before_s = time.process_time()
                took_s[name].append(request())
                cpu_s[name].append(time.process_time() - before_s)
        runner.run(async_client.aclose())
        runner.run(large.aclose())
    bare.close()
    return tuple({name: seconds[1:] for name, seconds in each.items()} for each in (took_s, cpu_s))  # type: ignore[return-value]


def throughput(url: str, n: int, at_once: int) -> dict[str, Any]:
    """Requests per second of many texts, time of each, and reuse of connections after a warm-up."""
    with Client(url, pool_size=at_once, **OPTIONS) as client:  # type: ignore[arg-type]
        client.speak_many([new_text() for _ in range(at_once)], max_concurrency=at_once)
        client.reset_stats()
        started_s = time.perf_counter()
        results = client.speak_many([new_text() for _ in range(n)], max_concurrency=at_once)
        took_s = time.perf_counter() - started_s
        stats = client.stats()
    failed = [result for result in results if not isinstance(result, Audio)]
    assert not failed, failed[0]
    return {
        "texts": n,
        "at_once": at_once,
        "requests_s": round(n / took_s, 1),
        "first_byte_ms_p50": round(1000 * stats.first_byte_s.p50, 1),
        "first_byte_ms_p95": round(1000 * stats.first_byte_s.p95, 1),
        "total_ms_p50": round(1000 * stats.total_s.p50, 1),
        "total_ms_p95": round(1000 * stats.total_s.p95, 1),
        "reuse_rate": stats.reuse_rate,
    }


@contextmanager
def tone_server() -> Iterator[str]:
    """Run a server of tones with engine and batcher in another process; yield its URL."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve_tones, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve_tones(parent: Connection) -> None:
    from prometheus_client import CollectorRegistry

    from tutti.server.app import create_app
    from tutti.server.run import Server, bind, url_of
    from tutti.server.uvicorn_setup import uvicorn_config

    settings = Settings(port=0, grace_s=0)
    with tempfile.TemporaryDirectory() as folder, bind(settings) as sock:
        engine = tone_engine(Path(folder), settings)
        application = create_app(engine, settings, CollectorRegistry(), on_warm=lambda _: parent.send(url_of(sock)))
        asyncio.run(
            Server(uvicorn_config(application, settings), application.state.service.lifecycle, 0).serve(sockets=[sock])
        )


def measure(url: str, args: argparse.Namespace) -> dict[str, Any]:
    with progress(args.rounds + 2) as step:
        took_s, cpu_s = first_bytes(url, args.rounds, step)
        step(f"{args.texts} texts")
        many = throughput(url, args.texts, args.at_once)
    medians, cpu_ms = (
        {name: round(1000 * statistics.median(seconds), 3) for name, seconds in each.items()}
        for each in (took_s, cpu_s)
    )

    def over(way: str, other: str) -> float:
        """Milliseconds, the median of the pairs."""
        return round(1000 * statistics.median(a - b for a, b in zip(took_s[way], took_s[other], strict=True)), 3)

    saved_ms = {
        "one client for all requests": over("AsyncClient for each request", "AsyncClient"),
        "pieces of 512 bytes": over("AsyncClient, pieces of 64 kB", "AsyncClient"),
    }
    print("first byte, median of", args.rounds, "ms:", {name: round(ms, 2) for name, ms in medians.items()})
    over_ms = over("Client", "bare socket")
    print(f"the client over the bare socket, median of pairs: {over_ms:.2f} ms")
    print("of a core of this process, median ms:", cpu_ms)
    print("saved until the first byte, ms:", {name: round(ms, 2) for name, ms in saved_ms.items()})
    print(many)
    return {"first_byte_ms": medians, "cpu_ms": cpu_ms, "over_ms": over_ms, "saved_ms": saved_ms, "many": many}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="of a running server; default: one of tones is started")
    parser.add_argument("--rounds", type=int, default=200, help="of the first byte")
    parser.add_argument("--texts", type=int, default=400, help="for the requests per second")
    parser.add_argument("--at-once", type=int, default=8, help="requests")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.url:
        report = measure(args.url, args)
    else:
        with tone_server() as url:
            report = measure(url, args)
    name = f"client-{'model' if args.url else 'tone'}-{platform.machine()}.json"
    (args.out / name).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
