"""What a cluster costs and gains: first byte beside the plain server, two speeds, two replicas against one.

make .venv-ray/.dev && .venv-ray/bin/python -m benchmarks.cluster

The model is tones with a fixed time for each row, as a sleep: two cores do not limit it. Each comparison is made in one
run, the two sides in turns. Gates: at most 10 ms more to the first byte (median); with one of two replicas four times
slower, the p95 of first audio at most 0.8 times that of Ray's own router; two replicas speak at least 1.8 times as
much as one.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.cluster.local_cluster import LocalCluster, start_cluster
from tests.cluster.tones import ToneReplica, slow_tone_engine
from tests.server.harness import serving
from tutti.percentile import percentile as percentile_of_sorted
from tutti.settings import Settings

OUT = Path(__file__).parent / "results"
SENTENCE = "The old bridge stands still under the water tonight and runs deep. "
STREAM = "/v1/audio/speech"
FAST_S, SLOW_S, HEAVY_S = 0.02, 0.08, 0.4  # of a row; the last so that HTTP does not limit two replicas on two cores
# What is compared, the field of the result, and what it should be.
GATES: dict[str, tuple[str, str, str, Callable[[float], bool]]] = {
    "first": ("first byte, added by the cluster, ms", "added_ms", "<= 10", lambda value: value <= 10),
    "speeds": ("one slow replica, p95 over Ray's router", "p95_ratio", "<= 0.8", lambda value: value <= 0.8),
    "gain": ("two replicas over one", "gain", ">= 1.8", lambda value: value >= 1.8),
}


def percentile(values: list[float], p: float) -> float:
    return percentile_of_sorted(sorted(values), p) or 0.0


async def first_byte_s(client: httpx2.AsyncClient, url: str, text: str) -> float:
    """Seconds to the first audio; raises if it is refused."""
    body, started_s = {"input": text, "response_format": "pcm"}, time.perf_counter()
    async with client.stream("POST", url + STREAM, json=body) as answer:
        answer.raise_for_status()
        first_s = 0.0
        async for _ in answer.aiter_raw():
            first_s = first_s or time.perf_counter() - started_s
        return first_s


async def in_turns(urls: dict[str, str], n: int) -> dict[str, list[float]]:
    """First bytes of lone requests, each side after the other."""
    times: dict[str, list[float]] = {name: [] for name in urls}
    async with httpx2.AsyncClient(timeout=60) as client:
        for turn in range(n + 5):
            for name, url in urls.items():
                seconds = await first_byte_s(client, url, SENTENCE)
                if turn >= 5:  # the first ones open connections
                    times[name].append(seconds)
    return times


async def poisson(url: str, per_s: float, seconds: float, seed: int) -> list[float]:
    """First bytes of requests at random times, one in ten of them long."""
    rng, tasks = random.Random(seed), []
    async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=None)) as client:
        started_s, at_s = time.monotonic(), 0.0
        while (at_s := at_s + rng.expovariate(per_s)) < seconds:
            await asyncio.sleep(max(0.0, started_s + at_s - time.monotonic()))
            text = SENTENCE * (20 if rng.random() < 0.1 else rng.randint(1, 3))
            tasks.append(asyncio.create_task(first_byte_s(client, url, text)))
        return [s for s in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(s, float)]


async def audio_per_s(url: str, n_clients: int, seconds: float) -> float:
    """Seconds of audio in a second, with so many clients that always want more."""
    n_bytes, until_s = 0, time.monotonic() + seconds

    async def ask(client: httpx2.AsyncClient) -> None:
        nonlocal n_bytes
        while time.monotonic() < until_s:
            body = {"input": SENTENCE, "response_format": "pcm", "stream": False}
            answer = await client.post(url + STREAM, json=body)
            if answer.status_code == 200 and time.monotonic() < until_s:
                n_bytes += len(answer.content)

    async with httpx2.AsyncClient(timeout=60) as client:
        await asyncio.gather(*(ask(client) for _ in range(n_clients)))
    return n_bytes / 48_000 / seconds


def with_builtin_router(args: dict[str, Any]) -> Any:
    """The same replicas, routed as Ray does by default."""
    from tutti.cluster.app import deploy
    from tutti.cluster.options import parse_options

    return deploy(ToneReplica, parse_options({**args, "ingress": "haproxy"}))  # which only omits our router


@contextmanager
def speeds(folder: Path, *row_s: float) -> Iterator[None]:
    """Give the replicas that start now these speeds, one each."""
    claims = Path(tempfile.mkdtemp(dir=folder))
    (folder / "speeds").write_text(json.dumps({"row_s": row_s, "claims": str(claims)}))
    yield


def measure_first_byte(cluster: LocalCluster, n: int) -> dict[str, Any]:
    with serving(slow_tone_engine(Settings(), FAST_S)) as plain:
        times = asyncio.run(in_turns({"plain": plain.url, "cluster": cluster.url}, n))
    result = {name: [round(1000 * percentile(each, p), 1) for p in (50, 95)] for name, each in times.items()}
    return {"ms_p50_p95": result, "added_ms": round(result["cluster"][0] - result["plain"][0], 1), "n": n}


def measure_two_speeds(cluster: LocalCluster, folder: Path, seconds: float, rounds: int) -> dict[str, Any]:
    from ray import serve

    times: dict[str, list[float]] = {"least wait": [], "built in": []}
    deployed = "tutti"
    for turn in range(rounds):
        for name, build in (("least wait", None), ("built in", with_builtin_router)):
            serve.delete(deployed)
            deployed = f"{name} {turn}"  # a new one: the proxy keeps the router of a name, even if that is deleted
            with speeds(folder, FAST_S, SLOW_S):
                cluster.deploy(build, name=deployed)
            times[name] += asyncio.run(poisson(cluster.url, 5.0, seconds, seed=turn))
    serve.delete(deployed)
    result = {name: {p: round(1000 * percentile(each, p)) for p in (50, 90, 95, 99)} for name, each in times.items()}
    ratio = round(percentile(times["least wait"], 95) / percentile(times["built in"], 95), 2)
    return {"ms": result, "p95_ratio": ratio, "n": {name: len(each) for name, each in times.items()}}


def measure_two_replicas(cluster: LocalCluster, folder: Path, seconds: float) -> dict[str, Any]:
    from ray import serve

    rates = {}
    for n in (1, 2):
        serve.delete("tutti")  # it need not exist
        cluster.args["replicas"] = n
        with speeds(folder, *[HEAVY_S] * n):
            cluster.deploy(cache_mb=0)
        asyncio.run(audio_per_s(cluster.url, 8, 2))  # warm
        rates[n] = asyncio.run(audio_per_s(cluster.url, 8 * n, seconds))
    return {
        "audio_s_per_s": {str(n): round(rate, 1) for n, rate in rates.items()},
        "gain": round(rates[2] / rates[1], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100, help="lone requests to each side")
    parser.add_argument("--seconds", type=float, default=15, help="of each load")
    parser.add_argument("--parts", nargs="+", default=["first", "speeds", "gain"], help="what to measure")
    parser.add_argument("--rounds", type=int, default=2, help="of the two speeds")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-cluster-") as name:
        folder = Path(name)
        os.environ["TONE_SPEEDS"] = str(folder / "speeds")
        with speeds(folder, FAST_S, FAST_S), start_cluster(folder, replicas=2) as cluster:
            parts = {
                "first": lambda: measure_first_byte(cluster, args.requests),
                "speeds": lambda: measure_two_speeds(cluster, folder, args.seconds, args.rounds),
                "gain": lambda: measure_two_replicas(cluster, folder, args.seconds),
            }
            measured = {name: measure() for name, measure in parts.items() if name in args.parts}  # the first at first
    path = OUT / "cluster.json"
    result = (json.loads(path.read_text()) if path.exists() else {}) | measured
    result["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    path.write_text(json.dumps(result, indent=1) + "\n")
    for part, (what, field, gate, passes) in GATES.items():
        if part in measured:
            value = measured[part][field]
            print(f"{what:42} {value:>8}  {gate:>9}  {'ok' if passes(value) else 'MISSED'}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
