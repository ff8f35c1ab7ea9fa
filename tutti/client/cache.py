"""Audio kept by content: the latest in memory, more of it in files that several processes may share."""

import asyncio
import json
import os
import sys
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tutti.client.audio import Audio, Word, words_from, words_json
from tutti.client.files import PARTIAL, save
from tutti.errors import TuttiError

SUFFIX = ".tutti"
STALE_S = 3600  # a half-written file older than this belongs to a process that died


def user_folder() -> Path:
    """Where this system keeps what may be thrown away."""
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/tutti/audio"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tutti/audio"


class MemoryCache:
    """The latest sounds, up to so many bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._n_bytes = 0
        self._kept: OrderedDict[str, Audio] = OrderedDict()

    def get(self, key: str) -> Audio | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: str, audio: Audio) -> None:
        if len(audio.data) > self.max_bytes:
            return
        if old := self._kept.pop(key, None):
            self._n_bytes -= len(old.data)
        self._kept[key] = audio
        self._n_bytes += len(audio.data)
        while self._n_bytes > self.max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self._n_bytes -= len(dropped.data)


@dataclass(slots=True)
class FileCache:
    """One file for each sound: a line of JSON that also holds its checksum, then its bytes.

    Files appear by renaming and are only ever replaced by equals, so processes need no lock; one that another
    process removed is a miss.
    """

    folder: Path
    max_bytes: int
    _until_tidy: int = 0  # bytes that may be written before the folder is counted again

    def get(self, key: str) -> Audio | None:
        path = self.folder / f"{key}{SUFFIX}"
        try:
            content = path.read_bytes()
            os.utime(path)  # used now, so thrown away last
        except OSError:
            return None
        if (audio := unpacked(content)) is None:
            path.unlink(missing_ok=True)
        return audio

    def put(self, key: str, audio: Audio) -> None:
        """Keeps it if there is room to be had. A disk that is full or read-only costs the cache, not the call."""
        content = packed(audio)
        if len(content) > self.max_bytes:
            return
        with suppress(TuttiError, OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            save(self.folder / f"{key}{SUFFIX}", content, mode=0o600)
            self._until_tidy -= len(content)
            if self._until_tidy <= 0:
                self._until_tidy = self.max_bytes // 20
                self.tidy(self.max_bytes - self._until_tidy, time.time())

    def tidy(self, max_bytes: int, now: float) -> None:
        """Throws away what was not used for the longest time, until the rest fits."""
        known = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if entry.name.endswith(SUFFIX):
                    known.append((about.st_mtime, about.st_size, entry.path))
                elif entry.name.endswith(PARTIAL) and now - about.st_mtime > STALE_S:
                    os.unlink(entry.path)
        n_bytes = sum(size for _, size, _ in known)
        for _, size, path in sorted(known):
            if n_bytes <= max_bytes:
                return
            with suppress(OSError):  # another process was faster
                os.unlink(path)
            n_bytes -= size


class Cache:
    """Both, asked from an event loop: memory first, files beside the loop."""

    def __init__(self, memory: MemoryCache, files: FileCache | None) -> None:
        self._memory = memory
        self._files = files
        self.max_bytes = max(memory.max_bytes, files.max_bytes if files else 0)

    async def get(self, key: str) -> Audio | None:
        if (kept := self._memory.get(key)) or self._files is None:
            return kept
        if kept := await asyncio.to_thread(self._files.get, key):
            self._memory.put(key, kept)
        return kept

    async def put(self, key: str, audio: Audio) -> None:
        self._memory.put(key, audio)
        if self._files is not None:
            await asyncio.to_thread(self._files.put, key, audio)


def packed(audio: Audio) -> bytes:
    about = {
        "sha256": sha256(audio.data).hexdigest(),
        "format": audio.format,
        "sample_rate": audio.sample_rate,
        "duration_s": audio.duration_s,
        "words": json.loads(words_json(audio.words)),
    }
    return json.dumps(about, separators=(",", ":")).encode() + b"\n" + audio.data


def unpacked(content: bytes) -> Audio | None:
    """The sound, or nothing where the bytes are not those that were written."""
    head, _, data = content.partition(b"\n")
    try:
        about = json.loads(head)
        if about["sha256"] != sha256(data).hexdigest():
            return None
        words: tuple[Word, ...] = words_from(about["words"])
        return Audio(data, str(about["format"]), int(about["sample_rate"]), about["duration_s"], words)
    except (ValueError, KeyError, TypeError):
        return None
