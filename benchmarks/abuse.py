"""Bodies that nobody should send: how soon each is refused, and what it costs in memory.

TUTTI_HOME=... python -m benchmarks.abuse             half a minute; needs the lexicons, not the model

The server of benchmarks.book: real limits, real front end, tones for speech. Milliseconds are the median of five, from
the last byte sent to the whole answer; processor time is that of the server and of the process that reads.
"""

import gzip
import json
import statistics
import time
from pathlib import Path
from typing import Any

import httpx2
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.book import held_mb, served

HERE = Path(__file__).parent
N = 90_000
ROUNDS = 5


def said(text: str) -> bytes:
    return json.dumps({"input": text, "response_format": "pcm"}).encode()


CASES: dict[str, tuple[bytes, dict[str, str]]] = {
    "10 MB of text": (said("a" * 10_000_000), {}),
    "a million sentences": (said("a. " * 1_000_000), {}),
    "NUL": (said("\0" * N), {}),
    "bidi controls": (said("\u202e" * N), {}),
    "emoji": (said("😀" * N), {}),
    "lone surrogates": (said("\ud800" * N), {}),
    "tags": (said("<p>" * (N // 3)), {}),
    "marks on one letter": (said("\u0301" * N), {}),
    "SSML, deep": (said("<speak>" + "<prosody rate='2'>" * (N // 18)), {}),
    "SSML, entities": (said('<!DOCTYPE a [<!ENTITY b "bbb">]><speak>&b;</speak>'), {}),
    "SSML, long": (said("<speak>" + "<p>a</p>" * 20_000 + "</speak>"), {}),
    "deep JSON": (b'{"input": "a", "x": ' + b"[" * 100_000, {}),
    "gzip bomb": (gzip.compress(b" " * 50_000_000), {"content-encoding": "gzip"}),
    "a wrong voice": (json.dumps({"input": "a", "voice": "../../etc/passwd"}).encode(), {}),
}


def spent_s(process: psutil.Process) -> float:
    """Processor time so far, of the server and of the process that reads: it counts the same on a busy machine."""
    return sum(sum(each.cpu_times()[:2]) for each in (process, *process.children()))


def main() -> None:
    found: dict[str, Any] = {}
    with served() as (url, seen), httpx2.Client(timeout=60, headers={"content-type": "application/json"}) as client:
        client.post(url, content=said("Hello."))
        for name, (body, headers) in CASES.items():
            before, cpu_s, took_ms = sum(held_mb(seen)), spent_s(seen), []
            for _ in range(ROUNDS):
                started_s = time.perf_counter()
                answer = client.post(url, content=body, headers=headers)
                took_ms.append(1000 * (time.perf_counter() - started_s))
            found[name] = {
                "status": answer.status_code,
                "code": answer.json()["error"]["code"] if answer.is_error else "",
                "ms": round(statistics.median(took_ms), 1),
                "cpu_ms": round(1000 * (spent_s(seen) - cpu_s) / ROUNDS, 1),
                "grown_mb": round(sum(held_mb(seen)) - before, 1),
            }
    table = Table("body", "status", "code", "ms", "processor ms", "MB more")
    for name, row in found.items():
        table.add_row(name, *(str(value) for value in row.values()))
    Console().print(table)
    (HERE / "results" / "abuse.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
