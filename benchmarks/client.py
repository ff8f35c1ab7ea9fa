"""What the client costs and what it reaches: first byte against a bare socket, requests a second, connections kept.

python -m benchmarks.client                           a tone server in a process of its own
python -m benchmarks.client http://127.0.0.1:8880     a server that runs, with its model

Each round asks by all three ways in turn, so that the machine's noise falls on all of them alike.
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
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.live import tone_engine
from tutti.client import AsyncClient, Audio, Client
from tutti.settings import Settings

HERE = Path(__file__).parent
NUMBERS = itertools.count(1)
OPTIONS = {"memory_cache_bytes": 0, "prewarm": False, "voice": "af_heart"}


def text() -> str:
    """Never the same twice, so that no cache answers."""
    return f"Yes, number {next(NUMBERS)}."


class Bare:
    """As little as HTTP allows: one kept socket, no parsing beyond the end of the answer."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._sock = socket.create_connection((place.hostname or "", place.port or 80))
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def first_s(self) -> float:
        """Seconds until the first byte of sound; the rest is read to its end."""
        body = json.dumps({"model": "kokoro", "input": text(), "voice": "af_heart", "response_format": "pcm"}).encode()
        told = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        started_s = time.perf_counter()
        self._sock.sendall(f"POST /v1/audio/speech HTTP/1.1\r\n{told}\r\n\r\n".encode() + body)
        got = b""
        while b"\r\n\r\n" not in got or got.endswith(b"\r\n\r\n"):
            got += self._sock.recv(1 << 16)
        first_s = time.perf_counter() - started_s
        head, _, body = got.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        while len(body) < int(length[1]) if length else not body.endswith(b"0\r\n\r\n"):
            body += self._sock.recv(1 << 16)
        return first_s

    def close(self) -> None:
        self._sock.close()


def waited(client: Client) -> float:
    started_s = time.perf_counter()
    with client.stream(text(), words=False) as stream:
        next(stream)
        first_s = time.perf_counter() - started_s
        for _ in stream:
            pass
    return first_s


async def awaited(client: AsyncClient) -> float:
    started_s = time.perf_counter()
    async with client.stream(text(), words=False) as stream:
        await anext(stream)
        first_s = time.perf_counter() - started_s
        async for _ in stream:
            pass
    return first_s


def firsts(url: str, rounds: int) -> dict[str, list[float]]:
    """Seconds to the first byte by each way, the first round of each left out."""
    bare, took = Bare(url), dict[str, list[float]]()
    with Client(url, **OPTIONS) as client, asyncio.Runner() as runner:  # type: ignore[arg-type]
        other = AsyncClient(url, **OPTIONS)  # type: ignore[arg-type]
        ways = {
            "bare socket": bare.first_s,
            "AsyncClient": lambda: runner.run(awaited(other)),
            "Client": lambda: waited(client),
        }
        for _ in range(rounds + 1):
            for name, way in ways.items():
                took.setdefault(name, []).append(way())
        runner.run(other.aclose())
    bare.close()
    return {name: seconds[1:] for name, seconds in took.items()}


def many(url: str, n: int, at_once: int) -> dict[str, Any]:
    """Texts in one go, after a first one: how many a second, how long each took, how many connections were made."""
    with Client(url, pool_size=at_once, **OPTIONS) as client:  # type: ignore[arg-type]
        client.speak_many([text() for _ in range(at_once)], max_concurrency=at_once)
        client.reset_stats()
        started_s = time.perf_counter()
        heard = client.speak_many([text() for _ in range(n)], max_concurrency=at_once)
        took_s = time.perf_counter() - started_s
        stats = client.stats()
    assert all(isinstance(audio, Audio) for audio in heard), [one for one in heard if not isinstance(one, Audio)][:1]
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
def tones() -> Iterator[str]:
    """A server of tones, engine and batcher and all, in another process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve_tones, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def _serve_tones(told: Connection) -> None:
    from prometheus_client import CollectorRegistry

    from tutti.server.app import create_app
    from tutti.server.run import Server, bind, url_of, uvicorn_config

    settings = Settings(port=0, grace_s=0)
    with tempfile.TemporaryDirectory() as folder, bind(settings) as sock:
        engine = tone_engine(Path(folder), settings)
        application = create_app(engine, settings, CollectorRegistry(), on_warm=lambda _: told.send(url_of(sock)))
        asyncio.run(
            Server(uvicorn_config(application, settings), application.state.service.lifecycle, 0).serve(sockets=[sock])
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="of a server that runs; else one of tones is started")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    if args.url:
        found = measured(args.url, args)
    else:
        with tones() as url:
            found = measured(url, args)
    name = f"client-{'model' if args.url else 'tone'}-{platform.machine()}.json"
    (args.out / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def measured(url: str, args: argparse.Namespace) -> dict[str, Any]:
    took = firsts(url, args.rounds)
    medians = {name: 1000 * statistics.median(seconds) for name, seconds in took.items()}
    over = [1000 * (mine - bare) for mine, bare in zip(took["Client"], took["bare socket"], strict=True)]
    print("first byte, median of", args.rounds, "ms:", {name: round(ms, 2) for name, ms in medians.items()})
    print(f"the client over the bare socket, median of pairs: {statistics.median(over):.2f} ms")
    crowd = many(url, args.texts, args.at_once)
    print(crowd)
    return {"first_byte_ms": medians, "over_ms": statistics.median(over), "many": crowd}


if __name__ == "__main__":
    main()
