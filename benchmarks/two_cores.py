"""Measure what `tutti serve` promises on two ordinary cores, through HTTP and OpenAI's SDK, and say which gates hold.

python -m benchmarks.two_cores                    8 minutes on a quiet machine, with the real weights
python -m benchmarks.two_cores --only four        one case; "exact four" is the same with the exact vocoder

clients: 2, 4 and 8 clients with the SDK's defaults, each with two texts of 1 to 5 sentences, one after the other. What
         counts is an exception that reaches the caller; answers with 429 or 503 that the SDK tried again are counted.
lone:    texts of five sentences, one listener; "exact lone" has both vocoders in turns.
four:    four sentences at once against the same four in turn; which of both comes first alternates.
listeners: first audio of a sentence of 5 s and of 15 s, 8 and 16 listeners who play what they hear and then ask again.

The server has the defaults, and then another one the exact vocoder, with its own clients, lone and four. Answers are
never cached. Other work on the machine is measured, too: a case beside more than a tenth of a core proves nothing. The
result is written after each case. The exit status is 1 if a gate fails.
"""

import json
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

import httpx
import openai
import psutil
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.http_load import (
    MAX_SENTENCES,
    RESULTS,
    SENTENCES,
    Heard,
    cpu_seconds,
    listening_process,
    started_server,
)

# -- gates, the memory of a server, other work on the machine ----------------------------------------------------------


FOREIGN_CORES = 0.1  # beside more of other work a figure proves nothing
MEMORY_S = 0.5  # between two looks at the memory


@dataclass(frozen=True, slots=True)
class Gate:
    """What is promised, what was measured, and whether that holds."""

    name: str
    limit: str
    measured: str
    holds: bool


@dataclass(slots=True)
class Case:
    """The figures of one case, and its gates."""

    figures: dict[str, Any] = field(default_factory=dict)
    gates: list[Gate] = field(default_factory=list)

    def gate(self, name: str, limit: str, measured: str, *, holds: bool) -> None:
        self.gates.append(Gate(name, limit, measured, holds))


@dataclass(slots=True)
class Memory:
    """The most memory that all processes of a server had at once, in MB."""

    rss_mb: float = 0.0
    pss_mb: float = 0.0  # pages that several processes share count once

    @contextmanager
    def watching(self, server: psutil.Process) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=(server, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(10)

    def _watch(self, server: psutil.Process, ended: threading.Event) -> None:
        while not ended.wait(MEMORY_S):
            used = [_memory_kb(process.pid) for process in (server, *server.children(recursive=True))]
            rss_kb, pss_kb = (sum(column) for column in zip(*used, strict=True))
            self.rss_mb, self.pss_mb = max(self.rss_mb, rss_kb / 1000), max(self.pss_mb, pss_kb / 1000)


def _memory_kb(pid: int) -> tuple[int, int]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0, 0  # it has ended
    sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return sizes["Rss"], sizes["Pss"]


def busy_s() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0))


def own_s(url: str) -> float:
    """CPU seconds of the server with all of its processes, and of this one."""
    times = os.times()
    return sum(cpu_seconds(url).values()) + times.user + times.system


class Report:
    """All cases so far; written after each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cases: dict[str, dict[str, Any]] = {}
        self._gates: list[Gate] = []

    def run(self, name: str, url: str, measure: Callable[[Case], None]) -> None:
        print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        case, started_s, before_s = Case(), time.monotonic(), busy_s() - own_s(url)
        measure(case)
        took_s = time.monotonic() - started_s
        foreign = (busy_s() - own_s(url) - before_s) / took_s
        case.figures |= {"took_s": round(took_s, 1), "foreign_cores": round(foreign, 2)}
        if foreign > FOREIGN_CORES:
            print(f"{name}: beside {foreign:.2f} cores of other work", file=sys.stderr, flush=True)
        self.add(name, case)

    def add(self, name: str, case: Case) -> None:
        self._cases[name] = case.figures
        self._gates += case.gates
        gates = [{"gate": g.name, "limit": g.limit, "measured": g.measured, "holds": g.holds} for g in self._gates]
        machine = {"machine": platform.machine(), "cores": os.cpu_count()}
        self._path.write_text(json.dumps(machine | {"gates": gates, "cases": self._cases}, indent=1) + "\n")

    def print(self) -> bool:
        table = Table("gate", "limit", "measured", "holds")
        for gate in self._gates:
            table.add_row(gate.name, gate.limit, gate.measured, "yes" if gate.holds else "NO")
        Console(width=120).print(table)
        return all(gate.holds for gate in self._gates)


# -- clients -----------------------------------------------------------------------------------------------------------


OUT = RESULTS / f"two-cores-{platform.machine()}.json"
GAP_S = 0.02  # a shorter gap is not heard
DEFAULT, LIGHT = "kokoro", "kokoro-light"
Cases = dict[str, Callable[[str, Case], None]]
SECONDS_5 = "The keeper of the lighthouse wrote the names of all the ships into his book every evening."
SECONDS_15 = (
    "When the last of the guests had left the house, the old man put out the lamps in the hall, walked slowly up the "
    "stairs, opened the window of his room, and listened for a long time to the waves that were breaking on the rocks "
    "below the garden and on the harbour wall."
)


class Listener:
    """One client with the defaults of OpenAI's SDK, and a simulated player."""

    def __init__(self, url: str) -> None:
        self.statuses: Counter[int] = Counter()  # on the wire, those that the SDK tried again included
        self.errors: list[str] = []
        http_client = openai.DefaultHttpxClient(event_hooks={"response": [self._count]})
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", http_client=http_client)

    def _count(self, response: httpx.Response) -> None:
        self.statuses[response.status_code] += 1

    def listen(self, text: str, model: str = DEFAULT) -> Heard:
        """Ask for a text and play it; times are of the monotonic clock. Status 0: the caller got an exception."""
        heard = Heard(time.monotonic())
        try:
            with self._client.audio.speech.with_streaming_response.create(
                model=model, voice="af_heart", input=text, response_format="pcm"
            ) as response:
                for part in response.iter_bytes():
                    heard.received(time.monotonic(), len(part))
            heard.status = 200
        except (openai.OpenAIError, httpx.HTTPError) as error:
            self.errors.append(f"{type(error).__name__}: {error}")
        heard.done_s = time.monotonic()
        return heard

    def close(self) -> None:
        self._client.close()


@contextmanager
def listeners(url: str, n: int) -> Iterator[list[Listener]]:
    each = [Listener(url) for _ in range(n)]
    try:
        yield each
    finally:
        for listener in each:
            listener.close()


def at_once(listening: Sequence[Listener], does: Callable[[int, Listener], list[Heard]]) -> list[Heard]:
    """Let all listeners start at the same moment, each in a thread of its own."""
    ready = threading.Barrier(len(listening))

    def run(number: int) -> list[Heard]:
        ready.wait(60)
        return does(number, listening[number])

    with ThreadPoolExecutor(len(listening)) as pool:
        return [heard for each in pool.map(run, range(len(listening))) for heard in each]


def random_text(rng: random.Random) -> str:
    return " ".join(rng.sample(SENTENCES, rng.randint(1, MAX_SENTENCES)))


def first_s(heard: Heard) -> float:
    return inf if heard.first_s is None else heard.first_s - heard.sent_s


def pace(heard: Heard) -> float:
    """Seconds for a second of speech."""
    return (heard.done_s - heard.sent_s) / max(heard.audio_s, 1e-9)


def summary(listening: Sequence[Listener], heard: Sequence[Heard]) -> dict[str, Any]:
    statuses = sum((listener.statuses for listener in listening), Counter[int]())
    spoken = [one for one in heard if one.status == 200]
    waits_s = sorted(map(first_s, spoken)) or [inf]
    return {
        "requests": len(heard),
        "exceptions": sum(one.status != 200 for one in heard),
        "errors": [error for listener in listening for error in listener.errors],
        "refused_on_the_wire": statuses[429] + statuses[503],
        "statuses": dict(statuses),
        "first_p50_s": round(statistics.median(waits_s), 3),
        "first_max_s": round(waits_s[-1], 3),
        "with_gaps": sum(one.gap_s > GAP_S for one in spoken),
        "longest_gap_s": round(max((one.gap_s for one in spoken), default=0.0), 3),
        "audio_s": round(sum(one.audio_s for one in spoken), 1),
    }


# -- the cases -------------------------------------------------------------------------------------------------------


def clients(url: str, case: Case, vocoder: str, texts_each: int = 2) -> None:
    for n in (2, 4, 8):
        with listeners(url, n) as listening:

            def ask(number: int, listener: Listener, n: int = n) -> list[Heard]:
                rng = random.Random(100 * n + number)
                return [listener.listen(random_text(rng)) for _ in range(texts_each)]

            row = summary(listening, at_once(listening, ask))
        case.figures[f"{n} clients"] = row
        measured = f"{row['exceptions']} of {row['requests']}; {row['refused_on_the_wire']} tried again"
        case.gate(f"{vocoder}, {n} clients at once: none refused", "0", measured, holds=row["exceptions"] == 0)


def lone(url: str, case: Case, models: Mapping[str, str], n: int = 3) -> None:
    """The models by vocoder; the last of them is light."""
    rng = random.Random(3)
    texts = [" ".join(rng.sample(SENTENCES, MAX_SENTENCES)) for _ in range(n)]
    heard: dict[str, list[Heard]] = {vocoder: [] for vocoder in models}
    with listeners(url, 1) as (listener,):
        listener.listen("This one is not measured.", models["light"])
        for text in texts:
            for vocoder, model in models.items():
                heard[vocoder].append(listener.listen(text, model))
    for vocoder, each in heard.items():
        paces = [round(pace(one), 3) for one in each]
        gap_s = max(one.gap_s for one in each)
        case.figures[vocoder] = {
            "seconds_per_s": paces,
            "first_s": [round(first_s(one), 3) for one in each],
            "gaps_s": [round(one.gap_s, 3) for one in each],
            "audio_s": [round(one.audio_s, 1) for one in each],
        }
        measured = f"{gap_s:.2f} s (device {statistics.median(paces):.2f} s a second)"
        case.gate(f"{vocoder}, lone listener: no gap", "0 at < 0.7 s/s", measured, holds=gap_s <= GAP_S)
    medians = [statistics.median(case.figures[vocoder]["seconds_per_s"]) for vocoder in models]
    measured = " against ".join(f"{median:.3f}" for median in medians[::-1])
    case.gate("light: seconds for a second", "<= 0.10", measured, holds=medians[-1] <= 0.1)


def four(url: str, case: Case, vocoder: str, rounds: int) -> None:
    rng = random.Random(4)
    texts = [rng.sample(SENTENCES, 4) for _ in range(rounds)]
    ratios: list[float] = []
    with listeners(url, 4) as listening:

        def together(sentences: Sequence[str]) -> list[Heard]:
            return at_once(listening, lambda number, listener: [listener.listen(sentences[number])])

        together(["This one is not measured."] * 4)
        for number, sentences in enumerate(texts):
            seconds: dict[str, float] = {}
            for kind in ("at_once", "in_turn")[:: 1 if number % 2 else -1]:
                heard = together(sentences) if kind == "at_once" else [listening[0].listen(text) for text in sentences]
                seconds[kind] = heard_in(heard) if kind == "at_once" else sum(one.done_s - one.sent_s for one in heard)
                if kind == "at_once":
                    seconds["first_max"] = max(map(first_s, heard))
            ratios.append(seconds["at_once"] / seconds["in_turn"])
            case.figures[f"round {number + 1}"] = {name: round(value, 3) for name, value in seconds.items()}
        errors = [error for listener in listening for error in listener.errors]
    case.figures["ratios"], case.figures["errors"] = [round(ratio, 3) for ratio in ratios], errors
    median = statistics.median(ratios)
    case.gate(
        f"{vocoder}, four at once, of four in turn", "<= 1.0", f"{median:.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
        holds=median <= 1.0 and not errors,
    )  # fmt: skip


def heard_in(heard: Sequence[Heard]) -> float:
    """Seconds from the first request to the end of the last answer."""
    return max(one.done_s for one in heard) - min(one.sent_s for one in heard)


def first_audio_and_listeners(url: str, case: Case, seconds: float) -> None:
    with listeners(url, 1) as (listener,):
        for name, text in (("5 s", SECONDS_5), ("15 s", SECONDS_15)):
            heard = [listener.listen(text) for _ in range(6)][1:]
            waits_s = [first_s(one) for one in heard]
            case.figures[f"first audio of {name}"] = [round(wait_s, 3) for wait_s in waits_s]
            case.figures[f"length of {name}"] = round(heard[0].audio_s, 2)
            median_s = statistics.median(waits_s)
            case.gate(f"light: first audio of {name}", "<= 0.2 s", f"{median_s:.3f} s", holds=median_s <= 0.2)
    for n in (8, 16):
        row = play_on(url, n, seconds)
        case.figures[f"{n} listeners"] = row
        measured = f"{row['exceptions']} of {row['requests']}; {row['refused_on_the_wire']} tried again"
        case.gate(f"light, {n} listeners: none refused", "0", measured, holds=row["exceptions"] == 0)
        if n == 8:
            measured = f"{row['with_gaps']} of {row['requests']}, {row['longest_gap_s']} s"
            case.gate("light, 8 listeners: no gap", "0", measured, holds=row["with_gaps"] == 0)


def play_on(url: str, n: int, seconds: float) -> dict[str, Any]:
    """Listeners who ask for the next text when they have heard the last one."""
    ends_s = time.monotonic() + seconds

    def play(number: int, listener: Listener) -> list[Heard]:
        rng, heard = random.Random(1000 * n + number), list[Heard]()
        while time.monotonic() < ends_s:
            heard.append(one := listener.listen(random_text(rng)))
            played_s = one.done_s if one.first_s is None else one.first_s + one.gap_s + one.audio_s
            time.sleep(max(0.0, min(played_s, ends_s) - time.monotonic()))
        return heard

    with listeners(url, n) as listening:
        return summary(listening, at_once(listening, play))


# -- all of them -----------------------------------------------------------------------------------------------------


def serve(report: Report, name: str, flags: Sequence[str], cases: Cases) -> None:
    """Start a server, run these cases on it, and note its memory."""
    memory, around = Memory(), Case()
    with tempfile.TemporaryDirectory(prefix="tutti-two-cores-") as folder:
        command = [sys.executable, "-m", "tutti", "serve", "--cache-mb", "0", *flags]
        with started_server(command, Path(folder) / "log") as (url, ready_s):
            server = listening_process(url)
            with memory.watching(server):
                for case_name, measure in cases.items():
                    report.run(case_name, url, partial(measure, url))
    around.figures = {"ready_s": round(ready_s, 1), "rss_mb": round(memory.rss_mb), "pss_mb": round(memory.pss_mb)}
    if not flags:
        around.gate("light: memory", "<= 450 MB", f"{memory.pss_mb:.0f} MB", holds=memory.pss_mb <= 450)
    report.add(name, around)


def main(
    only: Annotated[list[str] | None, typer.Option(help="A case; repeatable.")] = None,
    rounds: Annotated[int, typer.Option(help="Of four at once against four in turn.")] = 5,
    seconds: Annotated[float, typer.Option(help="For which 8 and 16 listeners play.")] = 20.0,
    out: Annotated[Path, typer.Option(help="Result file.")] = OUT,
) -> None:
    """Print a table of all gates; exit 1 if one fails."""
    report = Report(out)

    default: Cases = {
        "lone": partial(lone, models={"light": DEFAULT}),
        "four": partial(four, vocoder="light", rounds=rounds),
        "clients": partial(clients, vocoder="light"),
        "listeners": partial(first_audio_and_listeners, seconds=seconds),
    }
    exact: Cases = {
        "exact lone": partial(lone, models={"exact": DEFAULT, "light": LIGHT}),
        "exact four": partial(four, vocoder="exact", rounds=rounds),
        "exact clients": partial(clients, vocoder="exact"),
    }
    for name, flags, cases in (("server", (), default), ("exact server", ("--vocoder", "exact"), exact)):
        chosen = {each: measure for each, measure in cases.items() if not only or each in only}
        if chosen:
            serve(report, name, flags, chosen)
    if not report.print():
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
