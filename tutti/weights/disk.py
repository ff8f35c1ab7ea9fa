"""Disk operations for the weights: free space, checksums, atomic moves, and errors that name the remedy."""

import errno
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tutti.errors import StorageFull, WeightsUnavailable
from tutti.files import FULL
from tutti.weights.manifest import megabytes

_DENIED = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST}


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except (FileNotFoundError, NotADirectoryError):
        return False


def require_space(folder: Path, n_bytes: int) -> None:
    """Raise StorageFull if the disk has less space than this."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise _full(folder, n_bytes, free)


@contextmanager
def storage_errors(folder: Path, n_bytes: int) -> Iterator[None]:
    """Turn disk errors into ours, which name the folder and the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise _full(folder, n_bytes, shutil.disk_usage(_existing(folder)).free) from error
        if error.errno in _DENIED:
            raise WeightsUnavailable(
                f"cannot read and write {folder} ({error.strerror}); set TUTTI_HOME to a folder that you own"
            ) from error
        raise


def _full(folder: Path, n_bytes: int, free: int) -> StorageFull:
    return StorageFull(
        f"not enough space in {folder}: {n_bytes:,} bytes needed ({megabytes(n_bytes)}), {free:,} free;"
        " free some space or set TUTTI_HOME to another disk"
    )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
