"""Measure how soon malformed and malicious request bodies are answered, and what they cost.

python -m benchmarks.abuse             half a minute; needs the lexicons, not the model

The server of benchmarks.book: real limits, real front end, tones for speech. Milliseconds are the median of five, from
the start of the request to the whole response; CPU time is that of the server and its G2P process.
"""

import gzip
import json
import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import httpx2
import psutil
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.book import memory_mb, run_server
from benchmarks.progress import progress

RESULTS = Path(__file__).parent / "results" / "abuse.json"
N = 90_000  # characters: below the limit of a text
ROUNDS = 5


def body_with(text: str) -> bytes:
    return json.dumps({"input": text, "response_format": "pcm"}).encode()


CASES: dict[str, tuple[bytes, dict[str, str]]] = {
    "10 MB of text": (body_with("a" * 10_000_000), {}),
    "a million sentences": (body_with("a. " * 1_000_000), {}),
    "NUL": (body_with("\0" * N), {}),
    "bidi controls": (body_with("\u202e" * N), {}),
    "emoji": (body_with("😀" * N), {}),
    "lone surrogates": (body_with("\ud800" * N), {}),
    "tags": (body_with("<p>" * (N // 3)), {}),
    "marks on one letter": (body_with("\u0301" * N), {}),
    "SSML, deep": (body_with("<speak>" + "<prosody rate='2'>" * (N // 18)), {}),
    "SSML, entities": (body_with('<!DOCTYPE a [<!ENTITY b "bbb">]><speak>&b;</speak>'), {}),
    "SSML, long": (body_with("<speak>" + "<p>a</p>" * 20_000 + "</speak>"), {}),
    "deep JSON": (b'{"input": "a", "x": ' + b"[" * 100_000, {}),
    "gzip bomb": (gzip.compress(b" " * 50_000_000), {"content-encoding": "gzip"}),
    "a wrong voice": (json.dumps({"input": "a", "voice": "../../etc/passwd"}).encode(), {}),
}


def cpu_s(process: psutil.Process) -> float:
    """CPU time so far of the server and its G2P process: unlike the time of day, it hardly depends on other load."""
    return sum(sum(each.cpu_times()[:2]) for each in (process, *process.children()))


def main(out: Annotated[Path, typer.Option(help="Result file.")] = RESULTS) -> None:
    """Send every body five times, and write status, time and cost to a file."""
    results: dict[str, Any] = {}
    headers = {"content-type": "application/json"}
    with (
        run_server() as (url, server),
        httpx2.Client(timeout=60, headers=headers) as client,
        progress(len(CASES)) as step,
    ):
        client.post(url, content=body_with("Hello."))
        for name, (body, more_headers) in CASES.items():
            step(name)
            before_mb, before_s, took_ms = sum(memory_mb(server)), cpu_s(server), []
            for _ in range(ROUNDS):
                started_s = time.perf_counter()
                response = client.post(url, content=body, headers=more_headers)
                took_ms.append(1000 * (time.perf_counter() - started_s))
            results[name] = {
                "status": response.status_code,
                "code": response.json()["error"]["code"] if response.is_error else "",
                "ms": round(statistics.median(took_ms), 1),
                "cpu_ms": round(1000 * (cpu_s(server) - before_s) / ROUNDS, 1),
                "grown_mb": round(sum(memory_mb(server)) - before_mb, 1),
            }
    table = Table("body", "status", "code", "ms", "CPU ms", "MB more")
    for name, row in results.items():
        table.add_row(name, *(str(value) for value in row.values()))
    Console().print(table)
    out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
