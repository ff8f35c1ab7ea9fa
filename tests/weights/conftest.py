"""Fakes of the outside world: a hub on loopback, `npm` and `pip` with a folder of packages, recorded progress."""

import hashlib
import io
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tutti.weights.manifest import HUB_REPO, HUB_REVISION, File, Member, Package

MakeFile = Callable[..., File]


@pytest.fixture
def make_file() -> MakeFile:
    """A manifest entry for some content."""

    def make(path: str, content: bytes, *parts: Member, hub: bool = True) -> File:
        sha256 = hashlib.sha256(content).hexdigest()
        return File(path, len(content), sha256, parts, hub_path=path if hub else None)

    return make


@dataclass
class RecordedProgress:
    """Records every call."""

    notes: list[str] = field(default_factory=list)
    updates: list[tuple[str, int, int]] = field(default_factory=list)

    def update(self, item: str, done: int, total: int) -> None:
        self.updates.append((item, done, total))

    def note(self, line: str) -> None:
        self.notes.append(line)


@pytest.fixture
def progress() -> RecordedProgress:
    return RecordedProgress()


class FakeHub:
    """Serves `contents` as the hub serves a repository, with faults that a test can set."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []  # method, path in the repository, headers
        self.cut_after: list[int] = []  # bytes after which the next connections break
        self.supports_ranges = True
        self.status: int | None = None
        self.redirects_to: str | None = None  # another host, for what is asked of 127.0.0.1
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer()

            def do_GET(self) -> None:
                self._answer()

            def _answer(self) -> None:
                path = self.path.removeprefix(f"/{HUB_REPO}/resolve/{HUB_REVISION}/")
                headers = {name.lower(): value for name, value in self.headers.items()}
                hub.requests.append((self.command, path, headers))
                if hub.redirects_to and headers["host"].startswith("127."):
                    self.send_response(302)
                    self.send_header("Location", hub.redirects_to + self.path)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = hub.contents.get(path)
                status = hub.status or (404 if body is None else 200)
                body = body if status == 200 and body is not None else b""
                start = 0
                if "range" in headers and hub.supports_ranges and status == 200:
                    start = int(headers["range"].removeprefix("bytes=").removesuffix("-"))
                    status = 206
                self.send_response(status)
                self.send_header("ETag", '"etag"')
                self.send_header("X-Repo-Commit", HUB_REVISION)
                self.send_header("Content-Length", str(len(body) - start))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if hub.cut_after:
                    self.wfile.write(body[start : start + hub.cut_after.pop(0)])
                    self.close_connection = True
                else:
                    self.wfile.write(body[start:])

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def ranges(self) -> list[str | None]:
        return [headers.get("range") for method, _, headers in self.requests if method == "GET"]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def use_endpoint(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes an address the hub."""
    return lambda endpoint: monkeypatch.setenv("HF_ENDPOINT", endpoint)


@pytest.fixture
def hub_server(use_endpoint: Callable[[str], None]) -> Iterator[FakeHub]:
    hub = FakeHub()
    use_endpoint(hub.endpoint)
    yield hub
    hub.close()


CLIENT = """
import pathlib, shutil, sys
registry = pathlib.Path({registry!r})
arguments = sys.argv[1:]
option = lambda name: pathlib.Path(arguments[arguments.index(name) + 1])
with (registry / "calls").open("a") as calls:
    calls.write(" ".join(["{client}", *arguments]) + "\\n")
if "{client}" == "npm":
    name = arguments[1].removeprefix("@").replace("/", "-").replace("@", "-")
    into, ending = option("--pack-destination"), ".tgz"
else:
    name, into, ending = arguments[-1].replace("==", "-"), option("--dest"), ".whl"
failure = registry / "failure"
if failure.exists():
    sys.exit(failure.read_text())
archive = registry / (name + ending)
if not archive.exists():
    sys.exit("npm error code E404\\nnpm error 404 Not Found" if "{client}" == "npm" else "ERROR: no such wheel")
shutil.copy(archive, into)
"""


class FakeRegistry:
    """The packages that the fake npm and pip can fetch, and the calls they got."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def publish(self, client: str, name: str, members: dict[str, bytes]) -> Package:
        """Publish a package whose archive holds the members in this order."""
        package = Package(client, name, "1.0", 1000)  # type: ignore[arg-type]
        if client == "npm":
            flat = name.removeprefix("@").replace("/", "-")  # as npm does with a scope
            with tarfile.open(self.folder / f"{flat}-1.0.tgz", "w:gz") as tarball:
                for member, content in members.items():
                    entry = tarfile.TarInfo(member)
                    entry.size = len(content)
                    tarball.addfile(entry, io.BytesIO(content))
        else:
            with zipfile.ZipFile(self.folder / f"{name}-1.0.whl", "w") as wheel:
                for member, content in members.items():
                    wheel.writestr(member, content)
        return package

    def fail(self, output: str) -> None:
        (self.folder / "failure").write_text(output)

    def recover(self) -> None:
        (self.folder / "failure").unlink()

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRegistry:
    """Fakes of `npm` on PATH and `python -m pip`."""
    folder, bin_folder = tmp_path / "registry", tmp_path / "bin"
    folder.mkdir()
    bin_folder.mkdir()
    npm = bin_folder / "npm"
    npm.write_text(f"#!{sys.executable} -IS\n" + CLIENT.format(registry=str(folder), client="npm"))
    npm.chmod(0o755)
    (bin_folder / "pip.py").write_text(CLIENT.format(registry=str(folder), client="pip"))
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(bin_folder))
    return FakeRegistry(folder)
