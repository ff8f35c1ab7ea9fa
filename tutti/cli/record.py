"""A stream of speech, written down: to a pipe as it comes, or to a file that is whole once it has its name."""

import errno
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from tutti.audio import encoder, true_header
from tutti.errors import InvalidInput, StorageFull, TuttiError
from tutti.speech import SAMPLE_RATE, Speech, WordTime

Show = Callable[[int], None]  # told how far into the text the speech has come


class Heard:
    """What remains to be told once the samples are written. The samples are not kept: a book would fill the memory."""

    def __init__(self) -> None:
        self.words: list[WordTime] = []
        self.dropped: Counter[str] = Counter()
        self.n_samples = 0

    def add(self, speech: Speech) -> None:
        self.words += speech.words
        self.dropped.update(speech.dropped)
        self.n_samples += len(speech.samples)

    @property
    def duration_s(self) -> float:
        return self.n_samples / SAMPLE_RATE


async def record(
    stream: AsyncIterator[Speech], out: BinaryIO, format: str, sample_rate: int | None, show: Show
) -> Heard:
    """Encodes the stream into `out`, each chunk as soon as it is spoken."""
    encoding = encoder(format, sample_rate=sample_rate)
    heard = Heard()
    async for speech in stream:
        out.write(encoding.encode(speech.samples))
        out.flush()
        heard.add(speech)
        show(speech.span[1])
    out.write(encoding.flush())
    out.flush()
    return heard


async def record_file(
    stream: AsyncIterator[Speech], path: Path, format: str, sample_rate: int | None, show: Show
) -> Heard:
    """Records beside the target and renames at the end; the header is written again with the true length."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with unfinished.open("wb") as file:
            heard = await record(stream, file, format, sample_rate, show)
            file.seek(0)
            file.write(true_header(format, sample_rate=sample_rate, n_samples=heard.n_samples))
        unfinished.replace(path)
    except OSError as exc:
        raise _cannot_write(path, exc) from exc
    finally:
        unfinished.unlink(missing_ok=True)
    return heard


def save_words(path: Path, words: Sequence[WordTime]) -> None:
    """The words with their times in seconds and their places in the original text, as JSON."""
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
        raise _cannot_write(path, exc) from exc


def _cannot_write(path: Path, exc: OSError) -> TuttiError:
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no room left to write {path}")
    return InvalidInput(f"cannot write {path}: {exc.strerror}", param="out")
