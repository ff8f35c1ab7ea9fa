"""Checkpoints of others, from a hub on loopback: whole, checked, once, and only what is needed."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tutti.errors import InvalidInput, WeightsCorrupt, WeightsUnavailable
from tutti.weights.repository import KNOWN, Repository, fetch, find_repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = Repository("someone/kokoro-french", "v1")
FILES = {
    "config.json": b'{"vocab": {"a": 43}}',
    "README.md": b"---\nlicense: mit\n---\n",
    "kokoro.safetensors": b"weights" * 1000,
    "voices/martin.pt": b"a voice",
    "samples/hello.wav": b"not needed",
    "train.py": b"not needed",
}
LARGE = "kokoro.safetensors"

pytestmark = pytest.mark.server


class FakeHub:
    """Answers as the hub does for one repository: what it has at a revision, and each file."""

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.sizes = {name: len(data) for name, data in FILES.items()}
        self.sha256 = hashlib.sha256(FILES[LARGE]).hexdigest()
        self.downloads: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer()

            def do_GET(self) -> None:
                self._answer()

            def _answer(self) -> None:
                path = self.path.partition("?")[0]
                at = f"/{REPOSITORY.name}/resolve/{COMMIT}/"
                if path == f"/api/models/{REPOSITORY.name}/revision/{REPOSITORY.revision}":
                    self._send(200, json.dumps(hub.info()).encode())
                elif path.startswith(at) and path.removeprefix(at) in hub.files:
                    if self.command == "GET":
                        hub.downloads.append(path.removeprefix(at))
                    self._send(200, hub.files[path.removeprefix(at)])
                else:
                    self._send(404, b"{}")

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def info(self) -> dict[str, object]:
        files: list[dict[str, object]] = []
        for name in self.files:
            lfs = {"lfs": {"sha256": self.sha256, "size": self.sizes[name], "pointerSize": 1}} if name == LARGE else {}
            data = FILES.get(name, self.files[name])
            blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
            files.append({"rfilename": name, "size": self.sizes[name], "blobId": blob, **lfs})
        return {"id": REPOSITORY.name, "sha": COMMIT, "siblings": files, "tags": [], "private": False}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    hub = FakeHub()
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    yield hub
    hub.close()


def test_a_source_names_a_repository_and_its_revision() -> None:
    assert find_repository("hub:someone/kokoro-french@v1") == REPOSITORY
    assert find_repository("hub:a/b") == Repository("a/b", "main")
    assert find_repository("hub:a/b@v1#model.pth") == Repository("a/b", "v1", "model.pth")
    assert find_repository("/path/folder") is None
    for name, known in KNOWN.items():
        assert find_repository(name) == known.repository
        assert known.licence


@pytest.mark.parametrize(
    "source", ["hub:", "hub:a", "hub:a/b/c", "hub:../x", "hub:a/b@", "hub:a/b@../../c", "hub:a/.."]
)
def test_a_source_that_is_none_is_refused(source: str) -> None:
    with pytest.raises(InvalidInput, match="hub:owner/name@revision"):
        find_repository(source)


def test_a_repository_becomes_a_folder_once_and_with_what_is_needed(hub: FakeHub, tmp_path: Path) -> None:
    folder = fetch(REPOSITORY, tmp_path)
    assert folder == REPOSITORY.folder(tmp_path)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {"config.json", "README.md", LARGE, "voices/martin.pt"}
    assert all((folder / name).read_bytes() == FILES[name] for name in names)
    n_downloads = len(hub.downloads)
    assert fetch(REPOSITORY, tmp_path, offline=True) == folder
    assert len(hub.downloads) == n_downloads


def test_one_of_several_files_of_weights_may_be_named(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["epoch5.pth"] = b"weights"
    hub.sizes |= {"epoch5.pth": 7, LARGE: 10**8}
    chosen = Repository(REPOSITORY.name, REPOSITORY.revision, "epoch5.pth")
    folder = fetch(chosen, tmp_path)
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"config.json", "README.md", "epoch5.pth"}
    assert folder != REPOSITORY.folder(tmp_path)


def test_wrong_bytes_are_refused_and_fetched_again(hub: FakeHub, tmp_path: Path) -> None:
    hub.files[LARGE] = b"weighty" * 1000
    with pytest.raises(WeightsCorrupt, match=LARGE):
        fetch(REPOSITORY, tmp_path)
    assert not REPOSITORY.folder(tmp_path).exists()
    hub.files[LARGE] = FILES[LARGE]
    assert (fetch(REPOSITORY, tmp_path) / LARGE).read_bytes() == FILES[LARGE]
    hub.files["config.json"] = b"{}"
    with pytest.raises(WeightsCorrupt, match=r"config\.json"):
        fetch(REPOSITORY, tmp_path / "other")


def test_a_repository_that_is_missing_too_large_or_offline_says_so(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="404"):
        fetch(Repository("someone/else"), tmp_path)
    with pytest.raises(WeightsUnavailable, match="tutti pull"):
        fetch(REPOSITORY, tmp_path, offline=True)
    hub.sizes[LARGE] = 10**10
    with pytest.raises(InvalidInput, match=r"10\.0 GB, too much"):
        fetch(REPOSITORY, tmp_path)
    assert not REPOSITORY.folder(tmp_path).exists()
