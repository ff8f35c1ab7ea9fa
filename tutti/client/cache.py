"""Cache of audio by request: the latest in memory, more in files that processes may share."""

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

from tutti.client.audio import Audio, facts_json, parse_facts, with_facts
from tutti.errors import TuttiError
from tutti.files import PARTIAL, save

SUFFIX = ".tutti"
STALE_S = 3600  # a partial file older than this was left by a process that died


def user_cache_folder() -> Path:
    """Return the folder in which this system keeps a user's caches."""
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/tutti/audio"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tutti/audio"


class MemoryCache:
    """Least recently used cache, bounded by bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._n_bytes = 0
        self._entries: OrderedDict[str, Audio] = OrderedDict()

    def get(self, key: str) -> Audio | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: str, audio: Audio) -> None:
        if len(audio.data) > self.max_bytes:
            return
        if old := self._entries.pop(key, None):
            self._n_bytes -= len(old.data)
        self._entries[key] = audio
        self._n_bytes += len(audio.data)
        while self._n_bytes > self.max_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._n_bytes -= len(dropped.data)


@dataclass(slots=True)
class FileCache:
    """One file for each audio: a line of JSON with its checksum, then the bytes.

    Files are written atomically and replaced only by equal ones, so processes need no lock. A file that another
    process removed is a miss.
    """

    folder: Path
    max_bytes: int
    _until_evict: int = 0  # bytes that may be written before the folder is measured again

    def get(self, key: str) -> Audio | None:
        path = self.folder / f"{key}{SUFFIX}"
        try:
            content = path.read_bytes()
            os.utime(path)  # used now: evicted last
        except OSError:
            return None
        if (audio := deserialise(content)) is None:
            path.unlink(missing_ok=True)
        return audio

    def put(self, key: str, audio: Audio) -> None:
        """Store the audio if it fits. A full or read-only disk is ignored: the call succeeds without the cache."""
        content = serialise(audio)
        if len(content) > self.max_bytes:
            return
        with suppress(TuttiError, OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            save(self.folder / f"{key}{SUFFIX}", content, mode=0o600)
            self._until_evict -= len(content)
            if self._until_evict <= 0:
                self._until_evict = self.max_bytes // 20
                self.evict(self.max_bytes - self._until_evict, time.time())

    def evict(self, max_bytes: int, now: float) -> None:
        """Delete the least recently used files until the rest fits, and stale partial files."""
        entries = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                info = entry.stat(follow_symlinks=False)
                if entry.name.endswith(SUFFIX):
                    entries.append((info.st_mtime, info.st_size, entry.path))
                elif entry.name.endswith(PARTIAL) and now - info.st_mtime > STALE_S:
                    os.unlink(entry.path)
        n_bytes = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if n_bytes <= max_bytes:
                return
            with suppress(OSError):  # another process deleted it first
                os.unlink(path)
            n_bytes -= size


class AudioCache:
    """Memory first, then files, which are read and written in a thread."""

    def __init__(self, memory: MemoryCache, files: FileCache | None) -> None:
        self._memory = memory
        self._files = files
        self.max_bytes = max(memory.max_bytes, files.max_bytes if files else 0)

    async def get(self, key: str) -> Audio | None:
        if (audio := self._memory.get(key)) or self._files is None:
            return audio
        if audio := await asyncio.to_thread(self._files.get, key):
            self._memory.put(key, audio)
        return audio

    async def put(self, key: str, audio: Audio) -> None:
        self._memory.put(key, audio)
        if self._files is not None:
            await asyncio.to_thread(self._files.put, key, audio)


def serialise(audio: Audio) -> bytes:
    """Return the content of a cache file."""
    header = {
        "sha256": sha256(audio.data).hexdigest(),
        "format": audio.format,
        "sample_rate": audio.sample_rate,
        "duration_s": audio.duration_s,
        **facts_json(audio),
    }
    return json.dumps(header, separators=(",", ":")).encode() + b"\n" + audio.data


def deserialise(content: bytes) -> Audio | None:
    """Return the audio of a cache file, or None if the file is damaged."""
    first_line, _, data = content.partition(b"\n")
    try:
        header = json.loads(first_line)
        if header["sha256"] != sha256(data).hexdigest():
            return None
        audio = Audio(data, str(header["format"]), int(header["sample_rate"]), header["duration_s"])
        return with_facts(audio, parse_facts(header))
    except (ValueError, KeyError, TypeError):
        return None
