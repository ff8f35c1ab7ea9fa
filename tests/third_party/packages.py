"""Third-party clients, each installed once with its dependencies into its own folder."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

CACHE = user_cache_path("tutti-clients")
# Impossible versions, so that pip does not download PyTorch: it is gigabytes, and no client here needs it.
EXCLUDED = "torch==0\ntorchaudio==0\nnvidia-cublas-cu12==0\n"
# Messages of pip and npm if they cannot reach the registry.
UNREACHABLE = ("from versions: none", "Temporary failure in name resolution", "ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT")


class Unreachable(Exception):
    """The package registry cannot be reached, so this client cannot be checked."""


def pip(*requirements: str, python: str | None = None) -> Path:
    """Return a folder with these packages for the PYTHONPATH of `python`; default: the base interpreter."""
    version = _run([python or base_python(), "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).strip()
    folder = CACHE / f"python{version}-{_folder_name(requirements)}"
    with _lock(folder):
        return folder if folder.exists() else _pip(folder, requirements, python or base_python())


def _pip(folder: Path, requirements: tuple[str, ...], python: str) -> Path:
    part = _empty_folder(folder)
    constraint = ["--constraint", str(CACHE / "never.txt")]
    Path(constraint[1]).write_text(EXCLUDED)
    options = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
    install = [sys.executable, "-m", "pip", "--python", python, "install"]
    _run([*install, *options, *constraint, "--target", str(part), *requirements])
    return part.rename(folder)


def npm(*requirements: str) -> Path:
    """Return a folder whose node_modules has these packages."""
    folder = CACHE / f"npm-{_folder_name(requirements)}"
    with _lock(folder):
        return folder if folder.exists() else _npm(folder, requirements)


def _npm(folder: Path, requirements: tuple[str, ...]) -> Path:
    part = _empty_folder(folder)
    (part / "package.json").write_text("{}")
    _run(["npm", "install", "--silent", "--no-audit", "--no-fund", *requirements], cwd=part)
    return part.rename(folder)


def base_python() -> str:
    """Return the interpreter without the packages of this environment."""
    return str(getattr(sys, "_base_executable", sys.executable))


def version(folder: Path, package: str) -> str:
    """Return the version of an installed package."""
    if (folder / "node_modules").exists():
        return str(json.loads((folder / "node_modules" / package / "package.json").read_text())["version"])
    prefix = package.replace("-", "_").lower()
    (info,) = (path for path in folder.glob("*.dist-info") if path.name.lower().startswith(f"{prefix}-"))
    return info.name.removesuffix(".dist-info").rsplit("-", 1)[1]


def _folder_name(requirements: tuple[str, ...]) -> str:
    digest = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:8]
    words = "".join(char if char.isalnum() or char in ".-" else "_" for char in "-".join(requirements))
    return f"{words[:60]}-{digest}"


def _empty_folder(folder: Path) -> Path:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    return part


def _lock(folder: Path) -> FileLock:
    """Lock a folder, so that parallel runs install only once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{folder}.lock")


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        output = done.stdout + done.stderr
        if any(words in output for words in UNREACHABLE):
            raise Unreachable(f"no registry could be reached for: {command[-1]}")
        raise RuntimeError(f"{' '.join(command)}\n{output[-2000:]}")
    return done.stdout
