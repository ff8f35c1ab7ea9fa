"""Load a server for as long as asked while things break, and count what is lost.

python -m benchmarks.soak --minutes 5                      tone model, no model files
python -m benchmarks.soak --requests 100000                until so many requests were answered
python -m benchmarks.soak --http-processes 2               HTTP in processes of its own; --out soak-http.json
python -m benchmarks.soak --url http://127.0.0.1:8880 --pid 123 --minutes 30     a server of your own, the real model
                                                           (start it with --cache-mb 0, and 2> to the file of --log)

First each text is spoken alone. Then the capacity is measured: the seconds of speech that the server makes a second
while there is always another request, from its own count, and from that the requests of this mix a second.

Three phases follow: calm, faults, calm. In all of them requests come at 0.8 of the capacity, at random times. In the
second there are also spikes of 2 and 4 times that, streams that are left half-read, clients that read 2 kB/s or send
half a request, and kill -9 of the worker and of the G2P process. No two requests are alike (their seeds differ), so
none shares the work of another. Every complete answer is compared with the answer to the same text alone. Tones: whole
answers by their bytes, streams by their length. With --url by ear, after the last phase: chunks depend on the load, and
each cut adds silence, so that a recogniser compares the words, and the length without pauses and the pitch have to
agree (`benchmarks.heard` shows what that notices). Texts take turns with a high and a low voice.

A request is `held` if it was right, `refused` if it got 429 or 503 with Retry-After at once, `given_up` if that came
later, `lost` if it ended without an answer or in the middle of one, `wrong` if its audio differs. It is `explained` if
its own process was killed twice under it: a 5xx says so, for an answer that breaks off the server's log does (--log).

The result is written after each phase and when the run is interrupted, with every gate and whether it holds; the
server's log is kept beside it, and so are, in a folder, all answers that are wrong: the audio, the text, what was heard
instead, and when which part of it came. The exit status is 1 if a gate fails.
"""

import asyncio
import itertools
import json
import os
import random
import re
import signal
import tempfile
import time
import wave
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, track
from rich.table import Table

from benchmarks.heard import VOICES, Recogniser, fault, listen, load_recogniser
from tests.faults.limited_server import LimitedServer, child_of, limited_server
from tutti import settings
from tutti.client.bench import TEXTS
from tutti.speech import SAMPLE_RATE, Samples

# -- gates, tables and progress ----------------------------------------------------------------------------------------


OUTCOMES = ("held", "refused", "given_up", "left", "explained", "lost", "wrong", "5xx")
MAX_MEMORY_GROWTH = 5.0  # percent over the last three quarters of the run
MAX_MORE_FILES = 8  # descriptors of the idle server after the run, against before it
MAX_P99_RATIO = 2.0  # of the first audio after the faults to that before them


def gates(result: dict[str, Any]) -> dict[str, tuple[object, str, bool]]:
    """Each promise: the value, the limit, and whether it holds."""
    rows = result["phases"]
    total = {name: sum(row[name] for row in rows.values()) for name in ("requests", *OUTCOMES)}
    answered = sum(total[name] for name in OUTCOMES)
    checked: dict[str, tuple[object, str, bool]] = {
        "every request counted": (answered, f"= {total['requests']}", answered == total["requests"]),
        **{name: (total[name], "= 0", total[name] == 0) for name in ("lost", "wrong", "5xx")},
    }
    not_heard = sum(row["not_heard"] for row in rows.values())
    checked["not compared yet"] = not_heard, "= 0", not_heard == 0
    calm = sum(row["given_up"] for name, row in rows.items() if name != "faults")
    checked["given up without faults"] = calm, "= 0", calm == 0
    if "memory_growth_%" in result:
        grown = result["memory_growth_%"]
        checked["memory growth, %"] = grown, f"<= {MAX_MEMORY_GROWTH:g}", grown <= MAX_MEMORY_GROWTH
    if "idle_files_after" in result:
        more = result["idle_files_after"] - result["idle_files_before"]
        checked["more descriptors"] = more, f"<= {MAX_MORE_FILES}", more <= MAX_MORE_FILES
    if {"before", "after"} <= rows.keys():
        ratio = round(rows["after"]["first_p99_ms"] / max(rows["before"]["first_p99_ms"], 1.0), 2)
        checked["first audio p99, after / before"] = ratio, f"<= {MAX_P99_RATIO:g}", ratio <= MAX_P99_RATIO
    if result.get("errors_in_log") is not None:
        checked["exceptions in the log"] = result["errors_in_log"], "= 0", result["errors_in_log"] == 0
    return checked


def show(result: dict[str, Any]) -> None:
    title = f"C = {result['capacity_per_s']} requests/s, {result['speech_s_per_s']} s of speech a second"
    table = Table("phase", *next(iter(result["phases"].values())), title=title)
    for name, row in result["phases"].items():
        table.add_row(name, *map(str, row.values()))
    Console(width=160).print(table)
    table = Table("gate", "value", "limit", "holds")
    for name, (value, limit, holds) in gates(result).items():
        table.add_row(name, str(value), limit, "yes" if holds else "NO")
    Console(width=160).print(table)
    print({name: value for name, value in result.items() if name not in ("phases", "gates")})


@contextmanager
def progress_bar(name: str, n_sent: Callable[[], int], n_requests: int | None, seconds: float) -> Iterator[None]:
    """A bar of requests, or of seconds; without a thread that would take part in the measurement."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[n]} requests"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task(name, total=n_requests or seconds, n=0)
        started_s, started = time.perf_counter(), n_sent()

        async def move() -> None:
            while True:
                n = n_sent() - started
                bar.update(task, completed=n if n_requests else time.perf_counter() - started_s, n=n, refresh=True)
                await asyncio.sleep(2)

        moving = asyncio.get_running_loop().create_task(move())
        try:
            yield
        finally:
            moving.cancel()


# -- requests and their answers ----------------------------------------------------------------------------------------


EXPLAINED = ("worker_lost", "g2p_unavailable")  # codes of requests whose process was killed twice under them
BYTES_PER_S = {"pcm": 48_000, "wav": 48_000, "mulaw": 8_000}


@dataclass(frozen=True)
class Case:
    """A text, its format, and whether its audio is streamed."""

    text: str
    format: str
    stream: bool
    voice: str = "af_heart"

    def speech_s(self, n_bytes: int) -> float:
        """Seconds of speech in an answer of this length."""
        return (n_bytes - 44 * (self.format == "wav")) / BYTES_PER_S[self.format]


@dataclass(frozen=True)
class Answer:
    """A complete answer: its audio, and when each part of it came, in seconds since the request."""

    case: Case
    id: str  # of the request, as in the server's log
    audio: bytes
    parts: tuple[tuple[float, int], ...]  # when, and how many bytes

    @property
    def speech_s(self) -> float:
        return self.case.speech_s(len(self.audio))

    @property
    def samples(self) -> Samples:
        """What it says, between -1 and 1."""
        if self.case.format == "mulaw":
            return mulaw_values()[np.frombuffer(self.audio, np.uint8)]
        start = 44 * (self.case.format == "wav")
        return np.frombuffer(self.audio[start : len(self.audio) // 2 * 2], "<i2").astype(np.float32) / 32768

    @property
    def sample_rate(self) -> int:
        return 8_000 if self.case.format == "mulaw" else SAMPLE_RATE


def mulaw_values() -> NDArray[np.float32]:
    """The sample of each byte of G.711 mu-law, between -1 and 1."""
    code = ~np.arange(256, dtype=np.uint8)
    size = (((code & 15).astype(np.int32) << 3) + 132 << ((code >> 4) & 7).astype(np.int32)) - 132
    return np.where(code & 128, -size, size).astype(np.float32) / 32768


def http(case: Case, seed: int) -> bytes:
    options = {"response_format": case.format, "stream": case.stream, "seed": seed, "voice": case.voice}
    body = json.dumps({"input": case.text, **options}).encode()
    head = "Host: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"POST /v1/audio/speech HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def header(head: bytes, name: bytes) -> bytes:
    """The value of a header, or nothing."""
    lines = (line.partition(b":") for line in head.split(b"\r\n"))
    return next((value.strip() for key, _, value in lines if key.lower() == name), b"")


async def read_answer(
    reader: asyncio.StreamReader, head: bytes, started_s: float
) -> tuple[bytes, tuple[tuple[float, int], ...]]:
    """Read a body to its end, and return it, and when which part came; raise if it breaks off."""
    audio, parts = bytearray(), list[tuple[float, int]]()
    chunked = bool(header(head, b"transfer-encoding"))
    if not chunked:
        audio += await reader.readexactly(int(header(head, b"content-length")))
        parts.append((round(time.perf_counter() - started_s, 2), len(audio)))
    while chunked and (size := int(await reader.readuntil(b"\r\n"), 16)):
        audio += (await reader.readexactly(size + 2))[:-2]
        parts.append((round(time.perf_counter() - started_s, 2), size))
    return bytes(audio), tuple(parts)


def keep(folder: Path, name: str, answer: Answer, about: Mapping[str, Any]) -> None:
    """Write an answer to a folder: its audio, and what is known of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({**about, "parts": answer.parts}, indent=1) + "\n")
    with wave.open(str(folder / f"{name}.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(answer.sample_rate)
        file.writeframes((np.clip(answer.samples, -1, 1) * 32767).astype("<i2").tobytes())


@dataclass
class Tally:
    """What became of the requests of one phase."""

    sent: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)  # those that are compared by ear, after the run
    n_heard: int = 0
    broken: list[str] = field(default_factory=list)  # requests whose answer broke off
    first_s: list[float] = field(default_factory=list)
    unexplained: Counter[str] = field(default_factory=Counter)

    def row(self) -> dict[str, Any]:
        first_ms = 1000 * np.percentile(self.first_s, (50, 99)) if self.first_s else (0.0, 0.0)
        return {
            "requests": self.sent,
            **{name: self.ended[name] for name in OUTCOMES},
            "not_heard": len(self.answers) - self.n_heard,
            "first_p50_ms": round(float(first_ms[0]), 1),
            "first_p99_ms": round(float(first_ms[1]), 1),
            "unexplained": dict(self.unexplained),
        }


def hear(
    expected: Mapping[Case, Answer], tallies: Mapping[str, Tally], recogniser: Recogniser, folder: Path
) -> Iterator[None]:
    """Compare all answers with those alone by ear, one with each step; keep in the folder what is wrong."""
    alone = {case: listen(answer.samples, recogniser) for case, answer in expected.items()}
    for phase, tally in tallies.items():
        for answer in tally.answers:
            case = answer.case
            heard = listen(answer.samples, recogniser, answer.sample_rate)
            right = alone[replace(case, format="pcm")]
            tally.n_heard += 1
            if found := fault(case.text, right, heard, is_whole=not case.stream):
                tally.ended.update({"held": -1, "wrong": 1})
                about = {"phase": phase, "id": answer.id, "fault": found, **asdict(case), "heard": asdict(heard)}
                keep(folder, f"{phase}-{tally.n_heard}", answer, about | {"alone": asdict(right)})
            yield


def explain(tallies: Mapping[str, Tally], log: str) -> None:
    """Count answers that broke off as explained if the log says that a process was killed twice under them."""
    cut = re.compile(rf" cut id=(\S+) code=(?:{'|'.join(EXPLAINED)})\b")
    ids = set(cut.findall(log))
    for tally in tallies.values():
        n_explained = sum(id in ids for id in tally.broken)
        tally.ended.update({"lost": -n_explained, "explained": n_explained})


# -- the soak ----------------------------------------------------------------------------------------------------------


RESULTS = Path(__file__).parent / "results"
FORMATS = ("pcm", "wav", "mulaw")
LONG_TEXTS = tuple(" ".join(TEXTS[n:]) for n in range(3))
TOLERANCE = 0.05  # of the length of a stream of tones: each chunk has a little silence at its ends
AT_ONCE_S = 1.0  # a refusal that comes later is one of a request that was accepted first
LOAD = 0.8  # of the capacity
SPIKES = (1.0, 1.0, 2.0, 1.0, 1.0, 4.0)  # times the load, one after the other
SPIKE_S, SPIKE_REQUESTS = 3.0, 10  # each lasts for the longer of both, counted at the load without a spike
SLOW_READERS, SLOW_SHARE, SLOW_S = 10, 0.1, 20.0  # at most; of the capacity that they ask for; how long each reads
CLIENTS = 16  # while the capacity is measured
FILL_S, MEASURE_S, ENOUGH_S = 10.0, (20.0, 90.0), 200.0  # before; at least and at most; seconds of speech that suffice
KILL_S = 15.0  # between two kills, of the worker and of the G2P process in turn
LEFT = 0.05  # share of the streams that are left half-read
TIMEOUT_S = 300.0  # of a client for all of its answer: a slow device makes half a second of speech a second
IDLE_S = 5.0  # without requests, before the descriptors are counted
SHARES = {"before": 0.15, "faults": 0.7, "after": 0.15}  # of the run


SLOW_CASE = Case(LONG_TEXTS[0], "pcm", stream=True)
CASES = tuple(
    Case(text, format, stream, voice)
    for text, voice in zip((*TEXTS, *LONG_TEXTS), itertools.cycle(VOICES))
    for format in FORMATS
    for stream in (True, False)
)


class Soak:
    """Clients of one server, and the faults around them."""

    def __init__(self, host: str, port: int, server: psutil.Process, *, exact: bool) -> None:
        self.address = host, port
        self.server = server
        self.exact = exact
        self.random = random.Random(1)
        self.expected: dict[Case, Answer] = {}  # the answer alone
        self.kills: Counter[str] = Counter()
        self.samples: list[tuple[float, int, int]] = []  # time, memory of the processes below, their files
        self.n_requests = 0
        self.measured: dict[str, Any] = {}

    def result(self, tallies: Mapping[str, Tally]) -> dict[str, Any]:
        """All that is known so far."""
        phases = {name: tally.row() for name, tally in tallies.items()}
        return {**self.measured, "phases": phases, "kills": dict(self.kills), **self.growth()}

    async def request(self, case: Case, tally: Tally, *, leave: bool = False) -> str:
        """Send one request, count how it ended, and return that."""
        ended = "lost"
        self.n_requests += 1
        tally.sent += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                ended = await self._request(case, tally, leave)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as exc:
            tally.unexplained[type(exc).__name__] += 1
        tally.ended[ended] += 1
        return ended

    async def _request(self, case: Case, tally: Tally, leave: bool) -> str:
        started_s = time.perf_counter()
        reader, writer = await asyncio.open_connection(*self.address, limit=1 << 18)
        try:
            writer.write(http(case, self.n_requests))
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            if status != 200:
                error = json.loads(await reader.read(1 << 16))["error"]
                if error["code"] in EXPLAINED:
                    return "explained"
                if status in (429, 503) and b"retry-after" in head.lower():
                    return "refused" if time.perf_counter() - started_s <= AT_ONCE_S else "given_up"
                tally.unexplained[f"{status} {error['code']}: {error['message'][:80]}"] += 1
                return "5xx" if status >= 500 else "lost"
            tally.first_s.append(time.perf_counter() - started_s)
            if leave:
                await reader.read(1000)
                return "left"
            request_id = header(head, b"x-request-id").decode()
            try:
                answer = Answer(case, request_id, *await read_answer(reader, head, started_s))
            except asyncio.IncompleteReadError:
                tally.broken.append(request_id)
                raise
        finally:
            writer.close()
        if self.exact:
            return "held" if self.is_right(answer) else "wrong"
        self.expected.setdefault(replace(case, format="pcm"), answer)
        tally.answers.append(answer)
        return "held"  # until it is heard

    def is_right(self, answer: Answer) -> bool:
        """Compare an answer of tones with that to the same text alone; the first one is noted."""
        case = answer.case
        known = replace(case, format="pcm") if case.stream else case  # of lengths one format is enough
        alone = self.expected.setdefault(known, answer)
        if not case.stream:
            return answer.audio == alone.audio
        return abs(answer.speech_s - alone.speech_s) <= TOLERANCE * alone.speech_s

    async def learn(self) -> None:
        """Note the right answer to each case, one request at a time."""
        for case in CASES:
            if self.exact or case.format == "pcm":
                while await self.request(case, Tally()) != "held":
                    await asyncio.sleep(1)

    async def capacity(self) -> float:
        """Seconds of speech that the server makes a second when there is always another request.

        By the server's count: on a slow device an answer takes longer than the measurement.
        """

        async def request_on() -> None:
            while True:
                if await self.request(self.random.choice(CASES), Tally()) != "held":
                    await asyncio.sleep(0.5)

        clients = [asyncio.create_task(request_on()) for _ in range(CLIENTS)]
        await asyncio.sleep(FILL_S)
        started_s, before_s = time.perf_counter(), await self.spoken_s()
        elapsed_s = made_s = 0.0
        while elapsed_s < MEASURE_S[0] or (elapsed_s < MEASURE_S[1] and made_s < ENOUGH_S):
            await asyncio.sleep(1)
            made_s, elapsed_s = await self.spoken_s() - before_s, time.perf_counter() - started_s
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        return made_s / elapsed_s

    async def spoken_s(self) -> float:
        """Seconds of speech that the server has made so far."""
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = (await reader.read(-1)).decode()
        writer.close()
        return sum(map(float, re.findall(r"(?m)^tutti_audio_seconds_total\S* (\S+)", text)))

    @property
    def speech_s(self) -> float:
        """Mean seconds of speech of a request."""
        return float(np.mean([answer.speech_s for answer in self.expected.values()]))

    async def phase(self, rate: float, seconds: float, max_requests: float, tally: Tally, *, faults: bool) -> None:
        until_s, started = time.perf_counter() + seconds, self.n_requests
        spike_s = max(SPIKE_S, SPIKE_REQUESTS / rate)
        others = [asyncio.create_task(self.sample())]
        if faults:
            slow_readers = self.read_slowly(rate * self.speech_s / LOAD)
            others += [asyncio.create_task(each) for each in (self.kill(), slow_readers, self.send_halves())]
        tasks: set[asyncio.Task[str]] = set()
        began_s = time.perf_counter()
        while time.perf_counter() < until_s and self.n_requests - started < max_requests:
            elapsed_s = time.perf_counter() - began_s
            factor = SPIKES[int(elapsed_s / spike_s) % len(SPIKES)] if faults else 1.0
            await asyncio.sleep(self.random.expovariate(rate * factor))
            leave = faults and self.random.random() < LEFT
            tasks.add(task := asyncio.create_task(self.request(self.random.choice(CASES), tally, leave=leave)))
            task.add_done_callback(tasks.discard)
        for other in others:
            other.cancel()
        await asyncio.gather(*tasks, *others, return_exceptions=True)

    # -- faults --------------------------------------------------------------------------------------------------

    async def kill(self) -> None:
        while True:
            for name in ("worker", "g2p"):
                await asyncio.sleep(KILL_S)
                with suppress(psutil.Error, OSError):
                    if (child := child_of(self.server, name)) is not None:
                        os.kill(child.pid, signal.SIGKILL)
                        self.kills[name] += 1

    async def read_slowly(self, capacity: float) -> None:
        """Up to ten clients that read 2 kB/s, each for a while; together they ask for a tenth of the capacity."""
        speech_s = self.expected[SLOW_CASE].speech_s
        n_readers = max(1, min(SLOW_READERS, int(capacity)))
        pause_s = max(0.0, n_readers * speech_s / (SLOW_SHARE * capacity) - SLOW_S)

        async def read() -> None:
            while True:
                await asyncio.sleep(pause_s * self.random.random())
                with suppress(OSError):
                    reader, writer = await asyncio.open_connection(*self.address, limit=4096)
                    writer.write(http(SLOW_CASE, self.random.randrange(1 << 20)))
                    for _ in range(int(SLOW_S)):
                        await asyncio.sleep(1)
                        await reader.read(2000)
                    writer.close()
                await asyncio.sleep(pause_s / 2)

        await asyncio.gather(*(read() for _ in range(n_readers)))

    async def send_halves(self) -> None:
        """Connections that send half a request, or none, and go."""
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(*self.address)
                writer.write(http(CASES[0], 0)[: self.random.randint(0, 150)])
                await asyncio.sleep(self.random.random())
                writer.transport.abort()

    async def sample(self) -> None:
        while True:
            processes = self.http_processes()
            memory = sum(process.memory_info().rss for process in processes)
            self.samples.append((time.monotonic(), memory, self.n_files()))
            await asyncio.sleep(1)

    def http_processes(self) -> list[psutil.Process]:
        """The server's own process, and those that speak HTTP for it."""
        return [self.server, *(child for child in self.server.children() if child.name() == "tutti-http")]

    def n_files(self) -> int:
        return sum(process.num_fds() for process in self.http_processes())

    def growth(self) -> dict[str, Any]:
        """Memory and files of the server: what a line through the last three quarters grows by, in percent."""
        if len(self.samples) < 8:
            return {}
        times_s, memory, files = np.array(self.samples).T
        late = slice(len(memory) // 4, None)
        slope = np.polyfit(times_s[late] - times_s[0], memory[late], 1)[0]
        grown = slope * (times_s[-1] - times_s[late][0])
        tenth = max(1, len(memory) // 10)
        some = np.linspace(0, len(memory) - 1, min(60, len(memory))).astype(int)
        return {
            "memory_mb": round(float(np.median(memory[-tenth:])) / 1e6, 1),
            "memory_growth_%": round(100 * float(grown / np.median(memory[late])), 2),
            "most_files": int(max(files)),
            "memory_mb_over_time": [round(float(memory[n]) / 1e6, 1) for n in some],
        }


async def run(soak: Soak, minutes: float, requests: float, write: Callable[[dict[str, Any]], None]) -> dict[str, Tally]:
    """Run the phases, and write the result after each of them, and when the run is interrupted."""
    await soak.learn()
    speech_per_s = await soak.capacity()
    c = speech_per_s / soak.speech_s
    print(f"capacity: {speech_per_s:.2f} s of speech a second, {c:.2f} requests/s of {soak.speech_s:.1f} s each")
    await asyncio.sleep(IDLE_S)
    soak.measured = {
        "capacity_per_s": round(c, 2),
        "speech_s_per_s": round(speech_per_s, 2),
        "speech_s_per_request": round(soak.speech_s, 1),
        "idle_files_before": soak.n_files(),
    }
    tallies: dict[str, Tally] = {}
    for name, share in SHARES.items():
        tally = tallies[name] = Tally()
        n_requests = None if requests == float("inf") else int(share * requests)
        try:
            with progress_bar(name, lambda: soak.n_requests, n_requests, share * minutes * 60):
                await soak.phase(LOAD * c, share * minutes * 60, share * requests, tally, faults=name == "faults")
        finally:
            write(soak.result(tallies))
        await asyncio.sleep(IDLE_S)
    soak.measured["idle_files_after"] = soak.n_files()
    write(soak.result(tallies))
    return tallies


def main(
    minutes: Annotated[float, typer.Option(help="Minutes of load.")] = 5,
    requests: Annotated[int | None, typer.Option(help="End after so many requests instead.")] = None,
    url: Annotated[str | None, typer.Option(help="A running server; default: one of its own with tones.")] = None,
    pid: Annotated[int | None, typer.Option(help="The process of that server.")] = None,
    log: Annotated[Path | None, typer.Option(help="The log of that server: why it broke off answers.")] = None,
    http_processes: Annotated[int, typer.Option(help="Of an own server.")] = 0,
    out: Annotated[Path, typer.Option(help="Result file; the log of an own server is kept beside it.")] = RESULTS
    / "soak-tone.json",
) -> None:
    """Run the load and write the result to a file."""
    result: dict[str, Any] = {}
    server: LimitedServer | None = None

    def write(now: dict[str, Any]) -> None:
        result.clear()
        result.update(now, errors_in_log=len(server.errors()) if server else None)
        result["gates"] = {name: bool(holds) for name, (_, _, holds) in gates(result).items()}
        out.write_text(json.dumps(result, indent=1) + "\n")
        if server:
            out.with_suffix(".log").write_text("".join(server.log))

    with ExitStack() as stack:
        if url is None or pid is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            flags = ("--cache-mb", "0", "--http-processes", str(http_processes))
            server = stack.enter_context(limited_server(folder, *flags, limit="-n 4096", TONE_ADMISSION="on"))
            host, port, process = *server.host_port, psutil.Process(server.process.pid)
        else:
            host, port = url.removeprefix("http://").rstrip("/").split(":")[0], int(url.rpartition(":")[2].rstrip("/"))
            process = psutil.Process(pid)
        soak = Soak(host, port, process, exact=url is None)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            tallies = asyncio.run(run(soak, 1e6 if requests else minutes, requests or float("inf"), write))
            if log is not None or server is not None:
                explain(tallies, "".join(server.log) if server else log.read_text("utf-8", "replace") if log else "")
            if not soak.exact:
                recogniser = load_recogniser("moonshine", settings.load({})[0].home)
                n_answers = sum(len(tally.answers) for tally in tallies.values())
                listening = hear(soak.expected, tallies, recogniser, out.with_suffix(".wrong"))
                for _ in track(listening, "listening", n_answers, console=Console(stderr=True)):
                    pass
                write(soak.result(tallies))
    if not result:
        raise typer.Exit(1)
    show(result)
    if not all(result["gates"].values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
