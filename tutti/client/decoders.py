"""Decode response bytes into pieces of audio: `feed(bytes)`, then `end()`. Nothing here waits."""

import base64
import json
from collections.abc import Iterator

from tutti.client.audio import SAMPLE_BYTES, Piece, parse_facts
from tutti.client.errors import CutShort, event_error
from tutti.errors import InvalidInput


class AudioSplitter:
    """Splits raw audio into small pieces as it arrives: never inside a sample, never waiting for a full piece."""

    def __init__(self, chunk_bytes: int, sample_rate: int | None) -> None:
        if chunk_bytes < SAMPLE_BYTES:
            raise InvalidInput(f"chunk_bytes must be {SAMPLE_BYTES} or more", param="chunk_bytes")
        self._size = chunk_bytes - chunk_bytes % SAMPLE_BYTES
        self._rate = sample_rate  # of PCM; None for compressed formats, which have no samples to keep whole
        self._half_sample = b""
        self.n_bytes = 0

    def feed(self, data: bytes) -> list[Piece]:
        if self._rate:
            data = self._half_sample + data
            whole = len(data) - len(data) % SAMPLE_BYTES
            data, self._half_sample = data[:whole], data[whole:]
        return list(self._split(data))

    def end(self) -> list[Piece]:
        half_sample, self._half_sample = self._half_sample, b""
        if half_sample:
            raise CutShort("the audio ended in the middle of a sample", n_bytes=self.n_bytes)
        return []

    def _split(self, data: bytes) -> Iterator[Piece]:
        for at in range(0, len(data), self._size):
            part = data[at : at + self._size]
            start_s = self.n_bytes / SAMPLE_BYTES / self._rate if self._rate else None
            self.n_bytes += len(part)
            yield Piece(part, (), start_s)


class SseParser:
    """Extracts the data of server-sent events, one line each as OpenAI and tutti send them; all else is ignored."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes]:
        *lines, self._tail = (self._tail + data).split(b"\n")
        fields = (line.strip().partition(b":") for line in lines)
        return [value.strip() for name, _, value in fields if name == b"data"]


class EventDecoder:
    """Decodes OpenAI's speech events: audio in base64, tutti's times, and a mandatory last event."""

    def __init__(self, splitter: AudioSplitter) -> None:
        self._splitter = splitter
        self._parser = SseParser()
        self._has_ended = False

    def feed(self, data: bytes) -> list[Piece]:
        return [piece for event in self._parser.feed(data) if event != b"[DONE]" for piece in self._decode(event)]

    def end(self) -> list[Piece]:
        if not self._has_ended:
            raise CutShort("the stream ended without its last event", n_bytes=self._splitter.n_bytes)
        return self._splitter.end()

    def _decode(self, data: bytes) -> list[Piece]:
        event = json.loads(data)
        match event.get("type"):
            case "speech.audio.delta":
                return self._splitter.feed(base64.b64decode(event.get("audio") or event.get("delta") or ""))
            case "speech.audio.words" | "speech.audio.phonemes" | "speech.audio.visemes" | "speech.audio.notice":
                return parse_facts(event)
            case "speech.audio.done":
                self._has_ended = True
            case "speech.audio.error":
                raise event_error(event)
        return []
