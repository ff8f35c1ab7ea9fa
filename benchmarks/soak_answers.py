"""Requests of the soak, and their answers."""

import asyncio
import json
import time
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutti.speech import SAMPLE_RATE, Samples

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


async def read_answer(
    reader: asyncio.StreamReader, head: bytes, started_s: float
) -> tuple[bytes, tuple[tuple[float, int], ...]]:
    """Read a body to its end, and return it, and when which part came; raise if it breaks off."""
    audio, parts = bytearray(), list[tuple[float, int]]()
    chunked = b"transfer-encoding" in head
    if not chunked:
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        audio += await reader.readexactly(int(length.split(b":")[1]))
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
