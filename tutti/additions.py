"""What callers of a server add to it as files: the name of each file says who has added it, and who may use it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from filelock import FileLock, Timeout

from tutti.errors import NotReady
from tutti.files import write_error

Access = Literal["private", "shared"]
ANYONE = "anyone"  # the caller of a server without keys
ID_DIGITS = 12  # of the hash of a key
LOCK = ".lock"
LOCK_S = 10.0  # to wait for another process that adds a file, which takes milliseconds
_PREFIX = re.compile(rf"(?P<owner>{ANYONE}|[0-9a-f]{{{ID_DIGITS}}})\.(?P<access>{'|'.join(get_args(Access))})\.")


def key_id(key: str) -> str:
    """Return the name of a key that may be shown and stored."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]


class Addition(NamedTuple):
    """Who has added something over HTTP, and who may use it."""

    owner: str  # key_id of a key; "" on a server without keys
    access: Access

    def file_name(self, name: str) -> str:
        return f"{self.owner or ANYONE}.{self.access}.{name}"

    @property
    def reader(self) -> str | None:
        """The only caller that may use it; none if all may."""
        return self.owner if self.access == "private" else None


def split_addition(file_name: str) -> tuple[Addition | None, str]:
    """Return what the name of a file says of its addition, and the rest of the name."""
    match = _PREFIX.match(file_name)
    if match is None:
        return None, file_name
    access: Access = "private" if match["access"] == "private" else "shared"
    return Addition("" if match["owner"] == ANYONE else match["owner"], access), file_name[match.end() :]


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Let no other process add a file to a folder."""
    lock = FileLock(folder / LOCK, timeout=LOCK_S)
    try:
        lock.acquire()
    except Timeout as exc:
        raise NotReady(f"another program is adding a {what}, and does not end; try again", param="file") from exc
    except OSError as exc:
        raise write_error(folder, exc, "file") from exc
    try:
        yield
    finally:
        lock.release()
