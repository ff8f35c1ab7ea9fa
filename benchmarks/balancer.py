"""What HAProxy and nginx of deploy/ add to a request, and how well HAProxy routes with and without the agent check.

python -m benchmarks.balancer             2 minutes, servers of tones: nothing but haproxy and nginx is needed

First direct calls and calls through each balancer in turns, against one server. Then requests at random times, one in
ten of them long, to two servers of which one is four times slower: `leastconn` alone, and weights by the agent check.
"""

import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import httpx2
import typer
from rich.console import Console
from rich.table import Table

from tutti.percentile import percentile

DEPLOY = Path(__file__).parent.parent / "deploy"
HOSTS = ("192.0.2.11", "192.0.2.12")  # of the servers in the configurations
STREAM = {"input": "The old bridge stands still under the water tonight. " * 6, "response_format": "pcm"}
SMALL = {"input": "Deep water runs still.", "response_format": "pcm"}
COSTS = ("0.02 0.004", "0.08 0.016")  # TONE_COST of the fast and the slow server


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def haproxy_config(ports: Sequence[tuple[int, int]], front: int, state: int) -> str:
    """deploy/haproxy with other addresses: port and agent-check port of both servers, of the frontend, of its state."""
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    text = text.replace("bind 127.0.0.1:8880", f"bind 127.0.0.1:{front}")
    text = text.replace("bind 127.0.0.1:8404", f"bind 127.0.0.1:{state}")
    speech, others = text.split("\nbackend jobs")
    for host, (port, agent_port) in zip(HOSTS, ports, strict=True):
        speech = speech.replace(f"{host}:8880", f"127.0.0.1:{port} agent-port {agent_port}")
        others = others.replace(f"{host}:8880", f"127.0.0.1:{port}")
    return f"{speech}\nbackend jobs{others}"


def nginx_config(ports: Sequence[int], front: int, folder: Path) -> str:
    """deploy/nginx with other addresses, in a whole configuration."""
    text = (DEPLOY / "nginx/tutti.conf").read_text().replace("listen 127.0.0.1:8880", f"listen 127.0.0.1:{front}")
    for host, port in zip(HOSTS, ports, strict=True):
        text = text.replace(f"{host}:8880", f"127.0.0.1:{port}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder};" for kind in kinds)
    return f"pid {folder}/pid; events {{}} http {{ access_log off; {folders} {text} }}"


@contextmanager
def started(command: Sequence[str], url: str, **environment: str) -> Iterator[str]:
    """Run a server or a balancer until the context ends; yield its address when it is ready."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
    try:
        while True:
            assert process.poll() is None, command
            try:
                if httpx2.get(f"{url}/readyz").status_code == 200:
                    break
            except httpx2.TransportError:
                pass
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def tone_server(port: int, agent_port: int, cost: str) -> Iterator[str]:
    flags = ["--port", str(port), "--agent-check-port", str(agent_port), "--cache-mb", "0", "--replica"]
    flags += ["--max-start-s", "30"]  # so that a busy machine does not refuse
    command = [sys.executable, "-m", "benchmarks.tone_server", "serve", *flags]
    with started(command, f"http://127.0.0.1:{port}", TONE_COST=cost) as url:
        yield url


@contextmanager
def haproxy(ports: Sequence[tuple[int, int]], folder: Path, *, with_agent: bool = True) -> Iterator[str]:
    front = free_port()
    text = haproxy_config(ports, front, free_port())
    if not with_agent:
        text = text.replace("    default-server agent-check agent-port 8881 agent-inter 100ms\n", "")
        for _, agent_port in ports:
            text = text.replace(f" agent-port {agent_port}", "")
    path = folder / f"haproxy-{front}.cfg"
    path.write_text(text)
    with started(["haproxy", "-db", "-q", "-f", str(path)], f"http://127.0.0.1:{front}") as url:
        yield url


@contextmanager
def nginx(port: int, folder: Path) -> Iterator[str]:
    front = free_port()
    path = folder / "nginx.conf"
    path.write_text(nginx_config((port, port), front, folder))
    command = ["nginx", "-e", f"{folder}/errors", "-c", str(path), "-g", "daemon off; master_process off;"]
    with started(command, f"http://127.0.0.1:{front}") as url:
        yield url


def overhead(n: int, folder: Path) -> None:
    """Calls in turns, one after the other."""
    ports = free_port(), free_port()
    table = Table("", "first byte p50", "p95 ms", "whole p50", "p95 ms", title="one caller, in turns")
    with ExitStack() as stack:
        urls = {"direct": stack.enter_context(tone_server(*ports, "0 0"))}
        urls["HAProxy"] = stack.enter_context(haproxy((ports, ports), folder))
        urls["nginx"] = stack.enter_context(nginx(ports[0], folder))
        clients = {name: stack.enter_context(httpx2.Client(base_url=url, timeout=60)) for name, url in urls.items()}
        for kind, body in (("stream", STREAM), ("small", SMALL)):
            first_ms, whole_ms = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
            for turn in range(n + 5):
                for name in random.sample(list(clients), len(clients)):
                    started_s = time.perf_counter()
                    with clients[name].stream("POST", "/v1/audio/speech", json=body) as response:
                        pieces = response.iter_raw()
                        next(pieces)
                        first_s = time.perf_counter() - started_s
                        for _ in pieces:
                            pass
                        assert response.status_code == 200
                    if turn >= 5:  # the first ones open connections
                        first_ms[name].append(1000 * first_s)
                        whole_ms[name].append(1000 * (time.perf_counter() - started_s))
            for name in clients:
                table.add_row(f"{kind}, {name}", *_row(first_ms[name], whole_ms[name]))
    Console().print(table)


async def routing_load(url: str, rate: float, seconds: float) -> tuple[list[float], int, int]:
    """Send requests at random times; return their first bytes in ms, and how many were refused and failed."""
    first_ms: list[float] = []
    counts = {"refused": 0, "failed": 0}
    random.seed(7)

    async def call(client: httpx2.AsyncClient, body: dict[str, str]) -> None:
        started_s = time.perf_counter()
        try:
            async with client.stream("POST", "/v1/audio/speech", json=body) as response:
                if response.status_code != 200:
                    counts["refused"] += 1
                    return
                pieces = response.aiter_raw()
                await anext(pieces)
                first_ms.append(1000 * (time.perf_counter() - started_s))
                async for _ in pieces:
                    pass
        except httpx2.TransportError:
            counts["failed"] += 1

    async with httpx2.AsyncClient(base_url=url, timeout=60) as client, asyncio.TaskGroup() as group:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            group.create_task(call(client, STREAM if random.random() < 0.1 else SMALL))
            await asyncio.sleep(random.expovariate(rate))
    return first_ms, counts["refused"], counts["failed"]


def routing(rate: float, seconds: float, rounds: int, folder: Path) -> None:
    """Both ways in turns, against the same two servers."""
    ports = [(free_port(), free_port()) for _ in range(2)]
    heard: dict[str, list[float]] = {"leastconn": [], "agent check": []}
    lost = {name: [0, 0] for name in heard}
    with ExitStack() as stack:
        for pair, cost in zip(ports, COSTS, strict=True):
            stack.enter_context(tone_server(*pair, cost))
        urls = {
            "leastconn": stack.enter_context(haproxy(ports, folder, with_agent=False)),
            "agent check": stack.enter_context(haproxy(ports, folder)),
        }
        for _ in range(rounds):
            for name, url in urls.items():
                first_ms, n_refused, n_failed = asyncio.run(routing_load(url, rate, seconds))
                heard[name] += first_ms
                lost[name] = [lost[name][0] + n_refused, lost[name][1] + n_failed]
    table = Table("", "n", "p50", "p90", "p95", "p99 ms", "refused", "failed", title=f"{rate:g} requests/s, 1:4")
    for name, values in heard.items():
        figures = (f"{percentile(sorted(values), p) or 0:.0f}" for p in (50, 90, 95, 99))
        table.add_row(name, str(len(values)), *figures, *(str(number) for number in lost[name]))
    Console().print(table)


def _row(*columns: list[float]) -> Iterator[str]:
    for values in columns:
        for p in (50, 95):
            yield f"{percentile(sorted(values), p) or 0:.1f}"


def main(
    n: Annotated[int, typer.Option(help="Calls of each kind, and each way.")] = 150,
    rate: Annotated[float, typer.Option(help="Requests a second of the routing part.")] = 8.0,
    seconds: Annotated[float, typer.Option(help="Of each round.")] = 15.0,
    rounds: Annotated[int, typer.Option(help="Of the routing part.")] = 2,
) -> None:
    """Measure the balancers of deploy/ before servers of tones."""
    with tempfile.TemporaryDirectory(prefix="tutti-balancer-") as folder:
        overhead(n, Path(folder))
        routing(rate, seconds, rounds, Path(folder))


if __name__ == "__main__":
    typer.run(main)
