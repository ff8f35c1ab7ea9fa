"""What a caller gets: a whole sound, or pieces of one."""

import json
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path

from tutti.client.call_stats import Call
from tutti.client.files import save

SAMPLE_RATE = 24_000
SAMPLE_BYTES = 2  # s16le, mono


@dataclass(frozen=True, slots=True)
class Word:
    """A word and when it is heard, in seconds from the start."""

    word: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Piece:
    """Some audio of a stream, and the words that became known with it. A piece of words alone has no bytes."""

    audio: bytes
    words: tuple[Word, ...] = ()
    start_s: float | None = None  # where it lies in the whole; known for PCM


@dataclass(frozen=True, slots=True)
class Audio:
    """A whole sound, as the bytes of its format."""

    data: bytes = field(repr=False)
    format: str
    sample_rate: int = SAMPLE_RATE
    duration_s: float | None = None
    words: tuple[Word, ...] = ()
    call: Call | None = None

    def save(self, path: str | Path) -> Path:
        """Writes the sound so that the file is either all there or not there."""
        return save(Path(path), self.data)

    def _repr_html_(self) -> str:
        """A player, where a notebook shows it."""
        kind = {"mp3": "mpeg", "opus": "ogg", "pcm": "wav"}.get(self.format, self.format)
        shown = wav(self.data, self.sample_rate) if self.format == "pcm" else self.data
        return f'<audio controls src="data:audio/{kind};base64,{b64encode(shown).decode()}"></audio>'


def with_true_sizes(wav: bytes) -> bytes:
    """A WAV that was streamed, with the lengths that are known now that it is whole."""
    at = wav.find(b"data", 12, 4096)
    body = wav[at + 8 :]
    told = int.from_bytes(wav[at + 4 : at + 8], "little")
    if wav[:4] != b"RIFF" or at < 0 or 0 < told <= len(body):
        return wav
    sizes = (len(wav) - 8).to_bytes(4, "little"), len(body).to_bytes(4, "little")
    return b"".join((b"RIFF", sizes[0], wav[8 : at + 4], sizes[1], body))


def wav(pcm: bytes, sample_rate: int = SAMPLE_RATE) -> bytes:
    """PCM as a WAV file."""
    about = (16, 1, 1, sample_rate, sample_rate * SAMPLE_BYTES, SAMPLE_BYTES, 16)
    sized = (number.to_bytes(n, "little") for number, n in zip(about, (4, 2, 2, 4, 4, 2, 2), strict=True))
    head = b"WAVEfmt " + b"".join(sized) + b"data" + len(pcm).to_bytes(4, "little")
    return b"RIFF" + (len(head) + len(pcm)).to_bytes(4, "little") + head + pcm


def described(data: bytes, format: str, content_type: str, duration: str | None) -> Audio:
    """The sound with what its header and its bytes tell about it."""
    if format == "wav":
        data = with_true_sizes(data)
        at = data.find(b"data", 12, 4096)
        rate = int.from_bytes(data[24:28], "little") if data[:4] == b"RIFF" else SAMPLE_RATE
        width = int.from_bytes(data[32:34], "little") if data[:4] == b"RIFF" else SAMPLE_BYTES
        return Audio(data, format, rate, (len(data) - at - 8) / (rate * width) if at > 0 and rate * width else None)
    rate = rate_of(content_type)
    if format == "pcm":
        return Audio(data, format, rate, len(data) / SAMPLE_BYTES / rate)
    return Audio(data, format, rate, float(duration) if duration else None)


def rate_of(content_type: str) -> int:
    """The rate that `audio/pcm;rate=24000` names; else Kokoro's and OpenAI's."""
    for part in content_type.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.lower() == "rate" and value.isdigit() and int(value) > 0:
            return int(value)
    return SAMPLE_RATE


def words_from(told: object) -> tuple[Word, ...]:
    """Word times as they stand in an event; what has another shape is not guessed at."""
    if not isinstance(told, list):
        return ()
    return tuple(
        Word(str(row["word"]), float(row["start"]), float(row["end"]))
        for row in told
        if isinstance(row, dict) and {"word", "start", "end"} <= row.keys()
    )


def words_json(words: tuple[Word, ...]) -> str:
    return json.dumps([{"word": word.word, "start": word.start_s, "end": word.end_s} for word in words])
