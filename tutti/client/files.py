"""Files that are whole or absent, whoever pulls the plug."""

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from tutti.errors import InvalidInput, StorageFull

PARTIAL = ".partial"


def save(path: Path, data: bytes, mode: int = 0o666) -> Path:
    """Writes beside the place, flushes to the disk, then renames: a reader never sees half a file."""
    beside = path.with_name(f".{path.name[:80]}.{token_hex(8)}{PARTIAL}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}", param="path") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            raise StorageFull(f"could not write {path}: {error.strerror}") from error
        raise
    return path
