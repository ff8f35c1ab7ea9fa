"""Bytes from the wire into pieces: `feed(bytes)`, then `end()`. No waiting in here."""

import base64
import json
from collections.abc import Iterator
from typing import Protocol

from tutti.client.audio import SAMPLE_BYTES, Piece, Word, words_from
from tutti.client.errors import CutShort, named, worded
from tutti.errors import InvalidInput


class Reader(Protocol):
    def feed(self, data: bytes) -> list[Piece]: ...

    def end(self) -> list[Piece]: ...


class Cutter:
    """Cuts audio into small pieces as it comes, never through a sample, never waiting for a full one."""

    def __init__(self, chunk_bytes: int, sample_rate: int | None) -> None:
        if chunk_bytes < SAMPLE_BYTES:
            raise InvalidInput(f"chunk_bytes must be {SAMPLE_BYTES} or more", param="chunk_bytes")
        self._size = chunk_bytes - chunk_bytes % SAMPLE_BYTES
        self._rate = sample_rate  # of PCM; other formats have no samples to keep whole
        self._odd = b""
        self.n_bytes = 0

    def feed(self, data: bytes) -> list[Piece]:
        if self._rate:
            data = self._odd + data
            whole = len(data) - len(data) % SAMPLE_BYTES
            data, self._odd = data[:whole], data[whole:]
        return list(self._pieces(data))

    def end(self) -> list[Piece]:
        odd, self._odd = self._odd, b""
        if odd:
            raise CutShort("the audio ended in the middle of a sample", n_bytes=self.n_bytes)
        return []

    def _pieces(self, data: bytes) -> Iterator[Piece]:
        for at in range(0, len(data), self._size):
            part = data[at : at + self._size]
            start_s = self.n_bytes / SAMPLE_BYTES / self._rate if self._rate else None
            self.n_bytes += len(part)
            yield Piece(part, (), start_s)


class Events:
    """Server-sent events as OpenAI words them: audio in base64, words beside it, an end that must come."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._tail = b""
        self._done = False

    def feed(self, data: bytes) -> list[Piece]:
        *lines, self._tail = (self._tail + data).split(b"\n")
        return [piece for line in lines for piece in self._line(line)]

    def end(self) -> list[Piece]:
        if not self._done:
            raise CutShort("the stream ended without its last event", n_bytes=self._cutter.n_bytes)
        return self._cutter.end()

    def _line(self, line: bytes) -> list[Piece]:
        name, _, value = line.strip().partition(b":")
        if name != b"data" or value.strip() == b"[DONE]":
            return []  # blank lines, comments and other fields carry no sound
        event = json.loads(value)
        match event.get("type"):
            case "speech.audio.delta":
                return self._cutter.feed(base64.b64decode(event.get("audio") or event.get("delta") or ""))
            case "speech.audio.words":
                words: tuple[Word, ...] = words_from(event.get("words"))
                return [Piece(b"", words)] if words else []
            case "speech.audio.done":
                self._done = True
            case "speech.audio.error":
                message, code, param = worded(json.dumps({"error": event.get("error")}).encode(), 500)
                raise named(message, code, param, 500)
        return []
