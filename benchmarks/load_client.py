"""Clients of `benchmarks.http_load`, in processes of their own: raw HTTP/1.1 over asyncio, and a simulated player."""

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

SAMPLE_RATE = 24_000
VOICES = ("af_heart", "af_bella", "am_adam", "am_michael", "bf_emma", "bm_george")
SPEEDS = (0.8, 0.9, 1.0, 1.1, 1.25)
MAX_SENTENCES = 5  # of a text
TIMEOUT_S = 120.0  # of one request
SENTENCES = (
    "The harbour was quiet before the first boats came in.",
    "She counted the windows twice and wrote the number down.",
    "After the rain the path along the river was hard to follow, but nobody turned back.",
    "Most of the letters were short.",
    "He asked for a room with a view of the mountains and got one with a view of the yard.",
    "The second train leaves at twenty past nine.",
    "When the lights went out, the musicians simply continued to play.",
    "Bread, cheese and a little fruit were enough for the day.",
    "The old map showed a road that no longer exists.",
    "It took them three years to build the bridge, and a week to name it.",
    "Please close the door behind you.",
    "In the evening the wind turned, and the smell of the sea filled the whole house.",
    "The teacher smiled, because the answer was wrong in an interesting way.",
    "Nobody could remember who had planted the tree.",
    "A single lamp burned in the kitchen, where the children were doing their sums.",
    "They met again in spring.",
)


@dataclass(frozen=True, slots=True)
class Load:
    """What one process of clients sends: `clients` in a closed loop, or `rate` requests a second in an open one."""

    url: str
    seconds: float
    seed: int
    clients: int = 0
    rate: float = 0.0
    key: str = ""


@dataclass(slots=True)
class Heard:
    """One request as its listener heard it; times are seconds since the start of the load."""

    sent_s: float
    status: int = 0  # 0: the connection broke, or it took too long
    code: str = ""  # of an error
    first_s: float | None = None  # when the first audio came
    done_s: float = 0.0
    audio_s: float = 0.0
    gap_s: float = 0.0  # silence between the first audio and the last
    arrivals: list[tuple[float, float]] = field(default_factory=list)  # when, seconds of audio

    def received(self, at_s: float, n_bytes: int) -> None:
        """Append audio to the player, which has played since its first audio and pauses when it has none."""
        if self.first_s is None:
            self.first_s = at_s
        played_s = at_s - self.first_s - self.gap_s
        self.gap_s += max(0.0, played_s - self.audio_s)
        seconds = n_bytes / 2 / SAMPLE_RATE
        self.audio_s += seconds
        self.arrivals.append((at_s, seconds))


def request_body(rng: random.Random) -> bytes:
    sentences = rng.sample(SENTENCES, rng.randint(1, MAX_SENTENCES))
    body = {
        "model": "kokoro",
        "input": " ".join(sentences),
        "voice": rng.choice(VOICES),
        "speed": rng.choice(SPEEDS),
        "response_format": "pcm",
    }
    return json.dumps(body).encode()


class Connection:
    """One kept-alive connection."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._host, self._port = host, port
        self._head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        self._head += f"Authorization: Bearer {key}\r\n" if key else ""
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def speak(self, body: bytes, started_s: float) -> Heard:
        """Send one request and play its answer."""
        heard = Heard(time.monotonic() - started_s)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._exchange(body, heard, started_s)
        except (OSError, EOFError, TimeoutError, ValueError):
            heard.status = 0
            self.close()
        heard.done_s = time.monotonic() - started_s
        return heard

    async def _exchange(self, body: bytes, heard: Heard, started_s: float) -> None:
        if self._writer is None or self._reader.at_eof():  # a server closes a connection that was idle for seconds
            self.close()
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        self._writer.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        heard.status = int(head.split(" ", 2)[1])
        error = b""
        async for part in self._parts(head):
            if heard.status == 200:
                heard.received(time.monotonic() - started_s, len(part))
            else:
                error += part
        if error:
            heard.code = json.loads(error)["error"]["code"]
        if "connection: close" in head:
            self.close()

    async def _parts(self, head: str) -> AsyncIterator[memoryview]:
        """The parts of the body, as they arrive."""
        if "transfer-encoding: chunked" in head:
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                yield memoryview(await self._reader.readexactly(size + 2))[:size]
            await self._reader.readexactly(2)
        else:
            length = int(head.partition("content-length:")[2].split("\r\n", 1)[0])
            while length:
                part = await self._reader.read(min(length, 1 << 16))
                if not part:
                    raise EOFError
                length -= len(part)
                yield memoryview(part)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


async def _closed_loop(load: Load, connection: Connection, seed: int, started_s: float, heard: list[Heard]) -> None:
    """One client that sends its next request as soon as the last answer has ended; a refused one waits a moment."""
    rng = random.Random(seed)
    while time.monotonic() - started_s < load.seconds:
        result = await connection.speak(request_body(rng), started_s)
        heard.append(result)
        if result.status != 200:
            await asyncio.sleep(0.05)


async def _open_loop(load: Load, new: "deque[Connection]", started_s: float, heard: list[Heard]) -> None:
    """Send requests at random times, whatever became of those before."""
    rng = random.Random(load.seed)
    address = urlsplit(load.url)
    at_s, tasks = rng.expovariate(load.rate), set[asyncio.Task[None]]()

    async def one(body: bytes) -> None:
        connection = new.pop() if new else Connection(address.hostname or "", address.port or 80, load.key)
        heard.append(await connection.speak(body, started_s))
        new.append(connection)

    while at_s < load.seconds:
        await asyncio.sleep(at_s - (time.monotonic() - started_s))
        task = asyncio.create_task(one(request_body(rng)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        at_s += rng.expovariate(load.rate)
    await asyncio.gather(*tasks)


async def _run(load: Load) -> list[Heard]:
    heard: list[Heard] = []
    address = urlsplit(load.url)
    started_s = time.monotonic()
    if load.rate:
        connections: deque[Connection] = deque()
        await _open_loop(load, connections, started_s, heard)
    else:
        connections = deque(
            Connection(address.hostname or "", address.port or 80, load.key) for _ in range(load.clients)
        )
        clients = enumerate(connections)
        await asyncio.gather(*(_closed_loop(load, c, 1000 * load.seed + i, started_s, heard) for i, c in clients))
    for connection in connections:
        connection.close()
    return heard


def run_load(load: Load) -> list[Heard]:
    """Main function of a process of clients."""
    with suppress(ImportError):
        import uvloop

        return uvloop.run(_run(load))
    return asyncio.run(_run(load))
