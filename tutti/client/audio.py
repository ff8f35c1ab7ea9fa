"""What a caller receives: whole audio, or the pieces of a stream."""

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
    """A word and when it is spoken, in seconds from the start of the audio."""

    word: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a stream: audio bytes, or word times with no bytes."""

    audio: bytes
    words: tuple[Word, ...] = ()
    start_s: float | None = None  # position in the whole audio; known for PCM only


@dataclass(frozen=True, slots=True)
class Audio:
    """Complete audio, as bytes in its format."""

    data: bytes = field(repr=False)
    format: str
    sample_rate: int = SAMPLE_RATE
    duration_s: float | None = None
    words: tuple[Word, ...] = ()
    call: Call | None = None

    def save(self, path: str | Path) -> Path:
        """Write the audio to a file atomically."""
        return save(Path(path), self.data)

    def _repr_html_(self) -> str:
        """Show a player in a notebook."""
        kind = {"mp3": "mpeg", "opus": "ogg", "pcm": "wav"}.get(self.format, self.format)
        content = wav(self.data, self.sample_rate) if self.format == "pcm" else self.data
        return f'<audio controls src="data:audio/{kind};base64,{b64encode(content).decode()}"></audio>'


def fix_wav_sizes(wav: bytes) -> bytes:
    """Fill in the lengths of a WAV that was streamed, now that they are known."""
    at = wav.find(b"data", 12, 4096)
    body = wav[at + 8 :]
    declared = int.from_bytes(wav[at + 4 : at + 8], "little")
    if wav[:4] != b"RIFF" or at < 0 or 0 < declared <= len(body):
        return wav
    sizes = (len(wav) - 8).to_bytes(4, "little"), len(body).to_bytes(4, "little")
    return b"".join((b"RIFF", sizes[0], wav[8 : at + 4], sizes[1], body))


def wav(pcm: bytes, sample_rate: int = SAMPLE_RATE) -> bytes:
    """Wrap PCM in a WAV file."""
    fields = (16, 1, 1, sample_rate, sample_rate * SAMPLE_BYTES, SAMPLE_BYTES, 16)
    packed = (number.to_bytes(n, "little") for number, n in zip(fields, (4, 2, 2, 4, 4, 2, 2), strict=True))
    head = b"WAVEfmt " + b"".join(packed) + b"data" + len(pcm).to_bytes(4, "little")
    return b"RIFF" + (len(head) + len(pcm)).to_bytes(4, "little") + head + pcm


def parse_audio(data: bytes, format: str, content_type: str, duration: str | None) -> Audio:
    """Read sample rate and duration from the audio's own header, else from those of the response."""
    if format == "wav":
        data = fix_wav_sizes(data)
        at = data.find(b"data", 12, 4096)
        rate = int.from_bytes(data[24:28], "little") if data[:4] == b"RIFF" else SAMPLE_RATE
        width = int.from_bytes(data[32:34], "little") if data[:4] == b"RIFF" else SAMPLE_BYTES
        return Audio(data, format, rate, (len(data) - at - 8) / (rate * width) if at > 0 and rate * width else None)
    rate = sample_rate_of(content_type)
    if format == "pcm":
        return Audio(data, format, rate, len(data) / SAMPLE_BYTES / rate)
    return Audio(data, format, rate, float(duration) if duration else None)


def sample_rate_of(content_type: str) -> int:
    """Parse the rate of `audio/pcm;rate=24000`; without one, that of Kokoro and OpenAI."""
    for part in content_type.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.lower() == "rate" and value.isdigit() and int(value) > 0:
            return int(value)
    return SAMPLE_RATE


def parse_words(rows: object) -> tuple[Word, ...]:
    """Parse the word times of an event; anything of another form is ignored."""
    if not isinstance(rows, list):
        return ()
    return tuple(
        Word(str(row["word"]), float(row["start"]), float(row["end"]))
        for row in rows
        if isinstance(row, dict) and {"word", "start", "end"} <= row.keys()
    )


def words_json(words: tuple[Word, ...]) -> str:
    return json.dumps([{"word": word.word, "start": word.start_s, "end": word.end_s} for word in words])
