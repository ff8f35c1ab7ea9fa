"""An atomic write leaves the old file or the new one, with ordinary permissions."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from tutti.errors import InvalidInput, StorageFull
from tutti.files import atomic_write, move_file, write_error, write_file

KILLED = """
import os, signal, sys
from pathlib import Path
from tutti.files import atomic_write
with atomic_write(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_text_and_bytes_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, expected in ((b"\xff", b"\xff"), ("é\n", "é\n".encode())):
        write_file(path, content)
        assert path.read_bytes() == expected
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyError

    with pytest.raises(KeyError), atomic_write(path) as file:
        fail(file)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.process
def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    write_file(path, "new")
    assert path.read_text() == "new"


def test_a_locked_write_clears_what_a_killed_one_has_left(tmp_path: Path) -> None:
    (tmp_path / ".x.partial").write_text("half of a killed process")
    with atomic_write(tmp_path / "x", locked=True) as file:
        file.write(b"new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "new")]


def test_the_data_is_on_the_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "x", list[bool]()
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(path.exists()))
    write_file(path, b"data")
    assert seen == [False, True]  # the file, then its folder
    seen.clear()
    path.rename(tmp_path / "source")
    move_file(tmp_path / "source", path)
    assert seen == [False, True]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "x", b"")
        write_file(tmp_path / "private", b"", mode=0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == mode
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


def test_a_long_name_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / ("語" * 85)  # 255 bytes, the most a name may have
    write_file(path, b"data")
    assert path.read_bytes() == b"data"


def test_an_error_names_the_file_and_what_to_do() -> None:
    full = write_error(Path("a.wav"), OSError(errno.ENOSPC, "No space left on device"))
    assert isinstance(full, StorageFull)
    assert full.message.startswith("no room left to write a.wav")
    refused = write_error(Path("a.wav"), OSError(errno.EACCES, "Permission denied"))
    assert isinstance(refused, InvalidInput)
    assert (refused.message, refused.param) == ("cannot write a.wav: Permission denied", "out")
