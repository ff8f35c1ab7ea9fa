"""Measure what the wires of other services add to our own socket: first audio, many sockets at once, memory.

python -m benchmarks.wires               3 minutes, no model files: a tone server in its own process
python -m benchmarks.wires --sockets 50  a smaller crowd

First audio: the same text over open sockets of all wires in random order, from the text until the first message with
audio. Crowd: every socket has four contexts at once, round after round; each answer must be, bit for bit, what our own
socket says to the same text.
"""

import asyncio
import base64
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Annotated, Any

import psutil
import typer
from websockets.asyncio.client import ClientConnection, connect

from tests.third_party.process import tone_server

RESULT = Path(__file__).parent / "results" / "wires.json"
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000}
N_CONTEXTS = 4
ROUNDS = 6  # of the crowd; memory is compared between the second and the last
FIRST_TEXT = "The old bridge stands still under the water tonight. "
LETTERS = "abdefhiklmnoprstuvwz"


def crowd_text(number: int) -> str:
    """One of four hundred texts that sound different."""
    first, second = LETTERS[number % 20], LETTERS[number // 20 % 20]
    return f"{first * 5}{second * 3} {second * 4} {first * 6}{second}. "


@dataclass
class Wire:
    """One open socket of a wire; `say` sends a text as a context of its own, `pieces` reads all contexts."""

    socket: ClientConnection
    audio: dict[str, bytearray] = field(default_factory=dict)
    current: str = ""

    async def send(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            await self.socket.send(json.dumps(message))

    async def say(self, name: str, text: str) -> None:
        raise NotImplementedError

    def read(self, received: str | bytes) -> tuple[str, bytes, bool]:
        """Return the context of a message, its audio, and whether the context has ended with it."""
        raise NotImplementedError

    async def until_ended(self, n_contexts: int, on_audio: Callable[[], None] = lambda: None) -> None:
        while n_contexts:
            name, audio, is_last = self.read(await self.socket.recv())
            self.audio.setdefault(name, bytearray()).extend(audio)
            if audio:
                on_audio()
            n_contexts -= is_last


class Own(Wire):
    PATH = "/v1/audio/speech/stream"

    async def say(self, name: str, text: str) -> None:
        flush, done = {"type": "input.flush", "context": name}, {"type": "input.done", "context": name}
        await self.send({"type": "input.text", "text": text, "context": name}, flush, done)

    def read(self, received: str | bytes) -> tuple[str, bytes, bool]:
        if isinstance(received, bytes):
            return self.current, received, False
        event = json.loads(received)
        assert event["type"] != "error", event
        if event["type"] in ("audio.start", "audio.next"):
            self.current = event["context"]
        return event.get("context") or "", b"", event["type"] == "audio.done"


class ElevenLabs(Wire):
    PATH = "/v1/text-to-speech/af_heart/multi-stream-input?auto_mode=true&output_format=pcm_24000"

    async def say(self, name: str, text: str) -> None:
        spoken = {"text": text, "context_id": name, "flush": True}
        await self.send({"text": " ", "voice_settings": {}, "context_id": name}, spoken)
        await self.send({"context_id": name, "close_context": True})

    def read(self, received: str | bytes) -> tuple[str, bytes, bool]:
        event = json.loads(received)
        assert "error" not in event, event
        return event["contextId"], base64.b64decode(event["audio"] or ""), bool(event["isFinal"])


class Cartesia(Wire):
    PATH = "/tts/websocket"

    async def say(self, name: str, text: str) -> None:
        fields = {"context_id": name, "voice": "af_heart", "output_format": RAW, "max_buffer_delay_ms": 0}
        await self.send({**fields, "add_timestamps": True, "transcript": text})

    def read(self, received: str | bytes) -> tuple[str, bytes, bool]:
        event = json.loads(received)
        assert event["type"] != "error", event
        return event["context_id"], base64.b64decode(event.get("data", "")), event["done"]


class Deepgram(Wire):
    PATH = "/v1/speak?encoding=linear16&sample_rate=24000&model=af_heart"

    async def say(self, name: str, text: str) -> None:
        await self.send({"type": "Speak", "text": text}, {"type": "Flush"})

    def read(self, received: str | bytes) -> tuple[str, bytes, bool]:
        if isinstance(received, bytes):
            return "", received, False
        event = json.loads(received)
        assert event["type"] != "Error", event
        return "", b"", event["type"] == "Flushed"


class Flux(Deepgram):
    PATH = Deepgram.PATH.replace("v1", "v2")


WIRES: dict[str, type[Any]] = {
    "own": Own,
    "elevenlabs": ElevenLabs,
    "cartesia": Cartesia,
    "deepgram": Deepgram,
    "flux": Flux,
}


@asynccontextmanager
async def opened(kind: type[Any], url: str) -> AsyncIterator[Any]:
    async with connect(url.replace("http", "ws", 1) + kind.PATH, max_size=None, ping_interval=None) as socket:
        yield kind(socket)


async def first_audio(url: str, n_rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds from a text to its first audio, of each wire."""
    times: dict[str, list[float]] = {name: [] for name in WIRES}
    chance = random.Random(1)
    async with AsyncExitStack() as stack:
        sockets = {name: await stack.enter_async_context(opened(kind, url)) for name, kind in WIRES.items()}
        for n in range(n_rounds + 5):
            for name in chance.sample(list(WIRES), len(WIRES)):
                first: list[float] = []
                started_s = time.perf_counter()
                await sockets[name].say(f"c{n}", FIRST_TEXT)
                await sockets[name].until_ended(1, lambda first=first: first.append(time.perf_counter()))
                if n >= 5:  # the first ones warm up
                    times[name].append(1000 * (first[0] - started_s))
    own_ms = quantiles(times["own"], n=20)[9]
    rows = {}
    for name, all_ms in times.items():
        cuts = quantiles(all_ms, n=20)
        rows[name] = {
            "p50_ms": round(cuts[9], 2),
            "p95_ms": round(cuts[18], 2),
            "over_own_ms": round(cuts[9] - own_ms, 2),
        }
    return rows


async def expected(url: str) -> list[bytes]:
    """Return what our own socket says to each text of the crowd."""
    async with opened(Own, url) as own:
        for number in range(400):
            await own.say(str(number), crowd_text(number))
            await own.until_ended(1)
        return [bytes(own.audio[str(number)]) for number in range(400)]


async def crowd(url: str, pid: int, n_sockets: int) -> dict[str, Any]:
    """All sockets at once, each with four contexts; count the answers that differ, and watch the memory."""
    answers = await expected(url)
    assert len(set(answers)) == len(answers), "two texts sound alike"
    kinds: Sequence[type[Any]] = (ElevenLabs, Cartesia, Own)
    n_wrong, memory_mb, process = 0, list[float](), psutil.Process(pid)
    processes = [process, *process.children(recursive=True)]
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(opened(kinds[n % 3], url)) for n in range(n_sockets)]
        for number in range(ROUNDS):
            wrong = await asyncio.gather(*(_round(socket, answers, number, n) for n, socket in enumerate(sockets)))
            n_wrong += sum(wrong)
            memory_mb.append(round(sum(each.memory_info().rss for each in processes) / 1e6, 1))
    return {
        "sockets": n_sockets,
        "contexts": n_sockets * N_CONTEXTS,
        "texts": n_sockets * N_CONTEXTS * ROUNDS,
        "wrong": n_wrong,
        "rounds": [{"memory_mb": each} for each in memory_mb],
        "growth_mb": round(memory_mb[-1] - memory_mb[1], 1),
    }


async def _round(socket: Any, answers: list[bytes], number: int, n: int) -> int:
    texts = {f"{number}-{k}": (97 * n + 31 * k + 13 * number) % 400 for k in range(N_CONTEXTS)}
    socket.audio.clear()
    saying: list[Awaitable[None]] = [socket.say(name, crowd_text(which)) for name, which in texts.items()]
    for each in saying:
        await each
    await socket.until_ended(N_CONTEXTS)
    return sum(bytes(socket.audio.get(name, b"")) != answers[which] for name, which in texts.items())


def main(
    rounds: Annotated[int, typer.Option(help="texts of each wire")] = 200,
    sockets: Annotated[int, typer.Option(help="of the crowd")] = 200,
    save: Annotated[bool, typer.Option(help="write the result file")] = True,
) -> None:
    with tone_server("--max-start-s", "120", "--max-queue", "20000", "--timeout-s", "300") as server:
        result: dict[str, Any] = {"first_audio": asyncio.run(first_audio(server.url, rounds))}
        print(json.dumps(result["first_audio"]), flush=True)
        result["crowd"] = asyncio.run(crowd(server.url, server.pid, sockets))
        print(json.dumps(result["crowd"]), flush=True)
    result["worst_over_own_ms"] = max(row["over_own_ms"] for row in result["first_audio"].values())
    if save:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
