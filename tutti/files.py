"""Atomic file writes: after a crash or a power cut the old file is there, or the new one, never a part of it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from tutti.errors import InvalidInput, StorageFull, TuttiError

PARTIAL = ".partial"  # suffix of an unfinished file; a killed process leaves one behind
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors that freeing some space solves


@contextmanager
def atomic_write(path: Path, mode: int = 0o666, *, buffering: int = -1, locked: bool = False) -> Iterator[BinaryIO]:
    """Give a file beside `path` that replaces it when the block ends, and is removed if the block raises.

    With `locked` no other process writes `path`: the next write reuses what a killed process has left behind.
    """
    name = path.name if locked else f"{path.name[:40]}.{token_hex(8)}"
    partial = path.with_name(f".{name}{PARTIAL}")
    try:
        # The umask applies to `mode`, as for any new file.
        with open(partial, "wb+", buffering, opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _rename(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink()


def write_file(path: Path, data: bytes | str, mode: int = 0o666) -> None:
    """Write a whole file atomically; text is UTF-8."""
    with atomic_write(path, mode) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


def save(path: Path, data: bytes | str, mode: int = 0o666, *, param: str = "path") -> Path:
    """Write a whole file atomically, or raise InvalidInput or StorageFull."""
    try:
        write_file(path, data, mode)
    except OSError as exc:
        raise write_error(path, exc, param) from exc
    return path


def move_file(source: Path, target: Path) -> None:
    """Move a finished file within one file system; it is on the disk before it has its new name."""
    _sync(source)
    _rename(source, target)


def bytes_under(folder: Path) -> int:
    """Bytes of all files in a folder; files that disappear meanwhile are skipped."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(root, name)).st_size
    return total


def write_error(path: Path, exc: OSError, param: str = "out") -> TuttiError:
    """The error that a user sees for an OSError while writing `path`."""
    if exc.errno in FULL:
        return StorageFull(f"no room left to write {path} ({exc.strerror}); free some space and try again")
    return InvalidInput(f"cannot write {path}: {exc.strerror or exc}", param=param)


def _rename(source: Path, target: Path) -> None:
    source.replace(target)
    with suppress(OSError):  # some file systems cannot sync a folder
        _sync(target.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
