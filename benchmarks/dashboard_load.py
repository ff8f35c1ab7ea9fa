"""What it costs to watch: processor time of the server with and without watchers, under the same load, in turns.

python -m benchmarks.watching                     the real model on this processor, a little over three minutes
python -m benchmarks.watching --seconds 10        rougher

The model runs in a process of its own, so what is measured is the server's process alone: HTTP, reading, scheduling,
encoding, and the watching. Each share is of one core. Then, without a server, what one update costs to draw and encode,
also for the batches of a GPU, and what it costs to note one moment on the tape.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from timeit import timeit
from typing import Literal

import httpx2
import psutil

from tests.fakes import Spelling, silent_voices
from tutti.batching.job import Batch, Job, Key
from tutti.batching.layout import SideBySide
from tutti.engine.build import assemble
from tutti.engine.event_log import AudioSent, BatchEnded, BatchStarted, EventLog
from tutti.model.choice import Choice
from tutti.server.dashboard import Dashboard
from tutti.server.responses import sse_event
from tutti.settings import Settings
from tutti.text.frontend import G2PThread
from tutti.worker.thread import ThreadWorker

WATCH = "import sys, httpx2\nwith httpx2.stream('GET', sys.argv[1], timeout=60) as r:\n for _ in r.iter_raw(): pass"


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, *command], **quiet) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def served(folder: Path, stack: ExitStack) -> tuple[psutil.Process, str]:
    log = folder / "log"
    command = [sys.executable, "-m", "tutti", "serve", "--port", "0"]
    process = stack.enter_context(subprocess.Popen(command, stderr=stack.enter_context(log.open("w"))))
    stack.callback(process.terminate)
    while not (ready := re.search(r"tutti is ready: (http://\S+)", log.read_text())):
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    return psutil.Process(process.pid), ready[1]


def share(server: psutil.Process, url: str, n_watchers: int, seconds: float) -> tuple[float, float]:
    """Of a core, and batches a second."""
    with ExitStack() as stack:
        for _ in range(n_watchers):
            stack.enter_context(running("-c", WATCH, f"{url}/v1/stats/stream"))
        time.sleep(1.5)  # until they have come
        before, began, batches = server.cpu_times(), time.monotonic(), counted(url)
        time.sleep(seconds)
        after, took_s, batches = server.cpu_times(), time.monotonic() - began, counted(url) - batches
    return (after.user + after.system - before.user - before.system) / took_s, batches / took_s


def counted(url: str) -> int:
    return int(httpx2.get(f"{url}/v1/stats").json()["totals"]["batches"])


def noting() -> dict[str, float]:
    """Nanoseconds for each kind of moment, clock included."""
    tape = EventLog()
    job = Job(Key("kokoro", "vocoder"), 1, "first", 100, 1.0)
    batch = Batch(job.key, (job,) * 4, "free", 0.1, SideBySide())
    kinds = {
        "a batch begins": lambda: tape.note(BatchStarted(1.0, 1, "0", batch, (1, 2, 3, 4))),
        "a batch ends": lambda: tape.note(BatchEnded(tape.clock(), 1, 0.1, "done")),
        "a chunk is heard": lambda: tape.note(AudioSent(tape.clock(), 1.0, True)),
    }
    return {name: 1e9 * min(timeit(note, number=20_000) for _ in range(5)) / 20_000 for name, note in kinds.items()}


def drawing(n_batches: int, n_rows: int, device: Literal["cpu", "cuda"]) -> tuple[float, int]:
    """Seconds to draw and encode one tick in which so many batches ran while eighty jobs wait, and its bytes."""
    choice = Choice("torch", "cuda", "fp16", "full") if device == "cuda" else Choice("onnx", "cpu", "fp32")
    with TemporaryDirectory() as folder:
        voices, reader = silent_voices(Path(folder)), G2PThread(Spelling().pronounce)
        engine = assemble([ThreadWorker(dict)], {"kokoro": choice}, voices, reader, Settings(threads=2), capped=True)
    scheduler, tape = engine.batchers[0].scheduler, engine.batch_stats.events
    sizes = [60 + 37 * n % 300 for n in range(max(80, n_rows))]
    jobs = [Job(Key("kokoro", "vocoder"), n, "next", size, n, arrived_s=1.0) for n, size in enumerate(sizes)]
    for job in jobs[:80]:
        scheduler.add(job, 1.0)
    (room,) = scheduler.rooms
    batch = Batch(room.key, tuple(jobs[:n_rows]), "full", 0.1, room.cost.shape)
    dashboard, took_s = Dashboard(engine.monitor, ["kokoro"]), list[float]()
    for _ in range(30):
        for number in range(n_batches):
            engine.batch_stats.started(str(number), batch, tape.clock(), range(n_rows))
            engine.batch_stats.finished(str(number), batch, 0.01, 0.1)
        for _ in range(n_batches * n_rows):
            engine.batch_stats.heard(1.0, in_time=True)
        began_s = time.thread_time()
        told = sse_event(dashboard.tick(None) or {})
        took_s.append(time.thread_time() - began_s)
    return median(took_s), len(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--listeners", type=int, default=2)
    args = parser.parse_args()
    found: dict[int, list[tuple[float, float]]] = {0: [], 1: [], 16: []}
    with TemporaryDirectory() as folder, ExitStack() as stack:
        server, url = served(Path(folder), stack)
        load = ("-m", "tutti", "bench", url, "-n", "100000", "-c", str(args.listeners))
        stack.enter_context(running(*load))
        time.sleep(5)
        for _ in range(args.turns):
            for n_watchers, shares in found.items():
                shares.append(share(server, url, n_watchers, args.seconds))
    alone = mean(one for one, _ in found[0])
    for n_watchers, shares in found.items():
        each = ", ".join(f"{100 * one:.2f}" for one, _ in shares)
        mine = mean(one for one, _ in shares)
        rate = mean(batches for _, batches in shares)
        print(f"{n_watchers:>2} watchers: {100 * mine:.2f} % of a core ({each}), {rate:.1f} batches/s, "
              f"{100 * (mine - alone):+.2f} % for watching")  # fmt: skip
    for n_batches, n_rows, device in ((1, 2, "cpu"), (5, 16, "cuda"), (2, 64, "cuda")):
        seconds, n_bytes = drawing(n_batches, n_rows, device)
        print(f"a tick with {n_batches} batches of {n_rows} rows ({device}): {1e6 * seconds:.0f} us, {n_bytes} bytes; "
              f"ten a second {1000 * seconds:.2f} % of a core")  # fmt: skip
    for name, ns in noting().items():
        print(f"{name}: {ns:.0f} ns")
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
