"""Requests of the soak, and their answers."""

import asyncio
import json
import re
import time
import wave
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.heard import fault, listen
from benchmarks.recognisers import Recogniser
from benchmarks.soak_report import OUTCOMES
from tutti.speech import SAMPLE_RATE, Samples

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
