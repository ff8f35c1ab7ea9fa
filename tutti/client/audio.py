"""What a caller receives: whole audio, or the pieces of a stream."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tutti.client.call_stats import Call
from tutti.files import save

SAMPLE_RATE = 24_000
SAMPLE_BYTES = 2  # s16le, mono


@dataclass(frozen=True, slots=True)
class Word:
    """A word and when it is spoken, in seconds from the start of the audio."""

    word: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Sound:
    """A phoneme as IPA, or a viseme (a shape of the mouth), and when it is spoken."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a stream: audio bytes; or times, or what was not spoken as written, with no bytes."""

    audio: bytes
    words: tuple[Word, ...] = ()
    start_s: float | None = None  # position in the whole audio; known for PCM only
    phonemes: tuple[Sound, ...] = ()
    visemes: tuple[Sound, ...] = ()
    notices: tuple[str, ...] = ()  # what was not spoken as written, in sentences


@dataclass(frozen=True, slots=True)
class Audio:
    """Complete audio, as bytes in its format."""

    data: bytes = field(repr=False)
    format: str
    sample_rate: int = SAMPLE_RATE
    duration_s: float | None = None
    words: tuple[Word, ...] = ()
    call: Call | None = None
    phonemes: tuple[Sound, ...] = ()
    visemes: tuple[Sound, ...] = ()
    notices: tuple[str, ...] = ()  # what was not spoken as written, in sentences

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


def parse_facts(event: Mapping[str, object]) -> list[Piece]:
    """Parse times and notices of an event; anything of another form is ignored. The list is empty if there are none."""
    words = tuple(Word(*row) for row in _rows(event, "word"))
    phonemes, visemes = (tuple(Sound(*row) for row in _rows(event, name)) for name in ("phoneme", "viseme"))
    piece = Piece(b"", words, None, phonemes, visemes, parse_notices(event))
    return [piece] if piece != Piece(b"") else []


def parse_notices(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return what was not spoken as written, in sentences."""
    symbols, count, sentences = (fields.get(name) for name in ("unspoken", "unspoken_count", "notices"))
    unspoken: list[str] = []
    if isinstance(symbols, list):
        unspoken = [f"symbols that could not be spoken, {count} in all: {' '.join(map(str, symbols))}"]
    return (*unspoken, *map(str, sentences if isinstance(sentences, list) else ()))


def notices_of_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the same from the headers of a response, which have JSON in them."""
    fields: dict[str, object] = {}
    for name in ("unspoken", "unspoken_count", "notices"):
        with suppress(ValueError):
            fields[name] = json.loads(headers.get(f"x-{name.replace('_', '-')}", "null"))
    return parse_notices(fields)


def with_facts(audio: Audio, pieces: Sequence[Piece]) -> Audio:
    """Return the audio with the times and notices of these pieces."""
    return replace(
        audio,
        words=tuple(word for piece in pieces for word in piece.words),
        phonemes=tuple(sound for piece in pieces for sound in piece.phonemes),
        visemes=tuple(sound for piece in pieces for sound in piece.visemes),
        notices=tuple(dict.fromkeys(notice for piece in pieces for notice in piece.notices)),
    )


def facts_json(audio: Audio) -> dict[str, object]:
    """Return times and notices as `parse_facts` reads them."""
    sounds = {"phoneme": audio.phonemes, "viseme": audio.visemes}
    return {
        "words": [{"word": word.word, "start": word.start_s, "end": word.end_s} for word in audio.words],
        **{f"{name}s": [{name: s.name, "start": s.start_s, "end": s.end_s} for s in of] for name, of in sounds.items()},
        "notices": list(audio.notices),
    }


def _rows(event: Mapping[str, object], name: str) -> list[tuple[str, float, float]]:
    rows = event.get(f"{name}s")
    return [
        (str(row[name]), float(row["start"]), float(row["end"]))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and {name, "start", "end"} <= row.keys()
    ]
