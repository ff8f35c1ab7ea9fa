"""Atomic file writes of the client."""

from pathlib import Path

from tutti.files import PARTIAL, write_error, write_file

__all__ = ["PARTIAL", "save"]


def save(path: Path, data: bytes, mode: int = 0o666) -> Path:
    """Write a whole file atomically, or raise InvalidInput or StorageFull."""
    try:
        write_file(path, data, mode)
    except OSError as exc:
        raise write_error(path, exc, param="path") from exc
    return path
