"""Measure what the live batching view costs: CPU time of the server with and without clients that watch it.

python -m benchmarks.dashboard_load                    4 minutes, with the model files
python -m benchmarks.dashboard_load --seconds 4 --turns 1    less exact

The model runs in its own process, so only the process of the server is measured: HTTP, G2P, scheduling, encoding and
the view. Shares are of one core. Then, without a server: the time to compute and encode one update, also with the
batches of a GPU, and to add one event to the event log.
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

from benchmarks.progress import progress
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
WATCHERS = (0, 1, 16)
WAITING = 80  # jobs in the queue while an update is computed


@contextmanager
def python_process(*arguments: str) -> Iterator[None]:
    """Run Python with these arguments until the end of the block."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, *arguments], **quiet) as process:  # type: ignore[call-overload]
        try:
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def start_server(folder: Path, stack: ExitStack) -> tuple[psutil.Process, str]:
    """Start `tutti serve`; return its process and its URL."""
    log = folder / "log"
    command = [sys.executable, "-m", "tutti", "serve", "--port", "0"]
    process = stack.enter_context(subprocess.Popen(command, stderr=stack.enter_context(log.open("w"))))
    stack.callback(process.terminate)
    while not (ready := re.search(r"tutti is ready: (http://\S+)", log.read_text())):
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    return psutil.Process(process.pid), ready[1]


def cpu_share(server: psutil.Process, url: str, n_watchers: int, seconds: float) -> tuple[float, float]:
    """Share of a core that the server uses, and batches per second."""
    with ExitStack() as stack:
        for _ in range(n_watchers):
            stack.enter_context(python_process("-c", WATCH, f"{url}/v1/stats/stream"))
        time.sleep(1.5)  # until all are connected
        before, started_s, batches = server.cpu_times(), time.monotonic(), count_batches(url)
        time.sleep(seconds)
        after, took_s, batches = server.cpu_times(), time.monotonic() - started_s, count_batches(url) - batches
    return (after.user + after.system - before.user - before.system) / took_s, batches / took_s


def count_batches(url: str) -> int:
    return int(httpx2.get(f"{url}/v1/stats").json()["totals"]["batches"])


def event_ns() -> dict[str, float]:
    """Nanoseconds to add an event of each kind, reading the clock included."""
    events = EventLog()
    job = Job(Key("kokoro", "vocoder"), 1, "first", 100, 1.0)
    batch = Batch(job.key, (job,) * 4, "free", 0.1, SideBySide())
    kinds = {
        "batch started": lambda: events.add(BatchStarted(events.clock(), 1, "0", batch)),
        "batch ended": lambda: events.add(BatchEnded(events.clock(), 1, 0.1, "done")),
        "audio sent": lambda: events.add(AudioSent(events.clock(), 1.0, True)),
    }
    return {name: 1e9 * min(timeit(add, number=20_000) for _ in range(5)) / 20_000 for name, add in kinds.items()}


def update_cost(n_batches: int, n_rows: int, device: Literal["cpu", "cuda"]) -> tuple[float, int]:
    """CPU seconds to compute and encode an update in which so many batches ran, and its bytes."""
    choice = Choice("torch", "cuda", "fp16", "full") if device == "cuda" else Choice("onnx", "cpu", "fp32")
    with TemporaryDirectory() as folder:
        voices, frontend = silent_voices(Path(folder)), G2PThread(Spelling().pronounce)
        engine = assemble([ThreadWorker(dict)], {"kokoro": choice}, voices, frontend, Settings(threads=2), capped=True)
    scheduler, stats = engine.batchers[0].scheduler, engine.batch_stats
    sizes = [60 + 37 * n % 300 for n in range(max(WAITING, n_rows))]
    jobs = [Job(Key("kokoro", "vocoder"), n, "next", size, n, arrived_s=1.0) for n, size in enumerate(sizes)]
    for job in jobs[:WAITING]:
        scheduler.add(job, 1.0)
    (queue,) = scheduler.queues
    batch = Batch(queue.key, tuple(jobs[:n_rows]), "full", 0.1, queue.cost.layout)
    dashboard, took_s = Dashboard(engine.monitor, ["kokoro"]), list[float]()
    for _ in range(30):
        for number in range(n_batches):
            stats.started(str(number), batch, stats.events.clock())
            stats.finished(str(number), batch, 0.01, 0.1)
        for _ in range(n_batches * n_rows):
            stats.heard(1.0, in_time=True)
        started_s = time.thread_time()
        update = sse_event(dashboard.tick(None) or {})
        took_s.append(time.thread_time() - started_s)
    return median(took_s), len(update)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12, help="of each measurement")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--listeners", type=int, default=2, help="clients that request speech meanwhile")
    args = parser.parse_args()
    shares: dict[int, list[float]] = {n: [] for n in WATCHERS}
    rates: dict[int, list[float]] = {n: [] for n in WATCHERS}
    with TemporaryDirectory() as folder, ExitStack() as stack:
        step = stack.enter_context(progress(1 + args.turns * len(WATCHERS)))
        step("starting the server")
        server, url = start_server(Path(folder), stack)
        stack.enter_context(python_process("-m", "tutti", "bench", url, "-n", "100000", "-c", str(args.listeners)))
        time.sleep(5)
        for turn in range(args.turns):
            for n_watchers in WATCHERS:
                step(f"turn {turn + 1}, {n_watchers} watching")
                share, rate = cpu_share(server, url, n_watchers, args.seconds)
                shares[n_watchers].append(share)
                rates[n_watchers].append(rate)
    for n_watchers in WATCHERS:
        share, extra = mean(shares[n_watchers]), mean(shares[n_watchers]) - mean(shares[0])
        turns = ", ".join(f"{100 * share:.2f}" for share in shares[n_watchers])
        print(f"{n_watchers:>2} watching: {100 * share:.2f} % of a core ({turns}), "
              f"{mean(rates[n_watchers]):.1f} batches/s, {100 * extra:+.2f} % for the view")  # fmt: skip
    for n_batches, n_rows, device in ((1, 2, "cpu"), (5, 16, "cuda"), (2, 64, "cuda")):
        seconds, n_bytes = update_cost(n_batches, n_rows, device)
        print(f"update with {n_batches} batches of {n_rows} rows ({device}): {1e6 * seconds:.0f} us, {n_bytes} bytes; "
              f"ten per second: {1000 * seconds:.2f} % of a core")  # fmt: skip
    for name, ns in event_ns().items():
        print(f"event {name}: {ns:.0f} ns")
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
