"""Write a stream of speech to a pipe as it comes, or to a file that appears when it is complete."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from tutti.audio import encoder, true_header
from tutti.files import atomic_write, write_error
from tutti.speech import SAMPLE_RATE, Speech, WordTime

OnProgress = Callable[[int], None]  # called with the number of characters spoken so far


class Sink(Protocol):
    """Where encoded audio goes: a file, a pipe, the sound card."""

    def write(self, audio: bytes, /) -> object: ...

    def flush(self) -> object: ...


class Recording:
    """Words, dropped symbols and length of what was recorded, without the samples, which may not fit in memory."""

    def __init__(self) -> None:
        self.words: list[WordTime] = []
        self.dropped: Counter[str] = Counter()
        self.notices: dict[str, None] = {}  # in order
        self.n_samples = 0

    def add(self, speech: Speech) -> None:
        self.words += speech.words
        self.dropped.update(speech.dropped)
        self.notices |= dict.fromkeys(speech.notices)
        self.n_samples += len(speech.samples)

    @property
    def duration_s(self) -> float:
        return self.n_samples / SAMPLE_RATE


async def record(
    stream: AsyncGenerator[Speech], out: Sink, format: str, sample_rate: int | None, on_progress: OnProgress
) -> Recording:
    """Encode the stream into `out`, each chunk as soon as it is spoken."""
    encoding = encoder(format, sample_rate=sample_rate)
    recording = Recording()
    async with aclosing(stream):  # the pipe may be closed at any time
        async for speech in stream:
            out.write(encoding.encode(speech.samples))
            out.flush()
            recording.add(speech)
            on_progress(speech.span[1])
    out.write(encoding.flush())
    out.flush()
    return recording


async def record_file(
    stream: AsyncGenerator[Speech], path: Path, format: str, sample_rate: int | None, on_progress: OnProgress
) -> Recording:
    """Record into a file that appears when it is complete; the header is written again with the true length."""
    try:
        with atomic_write(path) as file:
            recording = await record(stream, file, format, sample_rate, on_progress)
            file.seek(0)
            file.write(true_header(format, sample_rate=sample_rate, n_samples=recording.n_samples))
    except OSError as exc:
        raise write_error(path, exc) from exc
    return recording


def save_words(path: Path, words: Sequence[WordTime]) -> None:
    """Write words as JSON, with their times in seconds and their spans in the original text."""
    rows = [
        {
            "word": word.word,
            "start": round(word.start_s, 3),
            "end": round(word.end_s, 3),
            "from": word.span[0],
            "to": word.span[1],
        }
        for word in words
    ]
    save_text(path, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def save_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise write_error(path, exc) from exc
