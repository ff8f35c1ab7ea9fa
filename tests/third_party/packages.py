"""Other people's clients, each with its own dependencies in a folder of its own, fetched once."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

CACHE = user_cache_path("tutti-clients")
# Whoever wants PyTorch is told that there is none: it is gigabytes, and no client of ours needs it.
NEVER = "torch==0\ntorchaudio==0\nnvidia-cublas-cu12==0\n"
# What pip and npm say of a registry that they cannot reach.
UNREACHED = ("from versions: none", "Temporary failure in name resolution", "ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT")


class Unreachable(Exception):
    """No registry answered; nothing can be said about this client."""


def pip(*requirements: str, python: str | None = None) -> Path:
    """The folder with these packages, for PYTHONPATH of `python`, which is this interpreter's own unless told."""
    version = _run([python or base_python(), "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).strip()
    folder = CACHE / f"python{version}-{_name(requirements)}"
    with _alone(folder):
        return folder if folder.exists() else _pip(folder, requirements, python or base_python())


def _pip(folder: Path, requirements: tuple[str, ...], python: str) -> Path:
    part = _empty(folder)
    constraint = ["--constraint", str(CACHE / "never.txt")]
    Path(constraint[1]).write_text(NEVER)
    quick = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
    pip_here = [sys.executable, "-m", "pip", "--python", python, "install"]
    _run([*pip_here, *quick, *constraint, "--target", str(part), *requirements])
    return part.rename(folder)


def npm(*requirements: str) -> Path:
    """The folder whose node_modules has these packages."""
    folder = CACHE / f"npm-{_name(requirements)}"
    with _alone(folder):
        return folder if folder.exists() else _npm(folder, requirements)


def _npm(folder: Path, requirements: tuple[str, ...]) -> Path:
    part = _empty(folder)
    (part / "package.json").write_text("{}")
    _run(["npm", "install", "--silent", "--no-audit", "--no-fund", *requirements], cwd=part)
    return part.rename(folder)


def base_python() -> str:
    """The interpreter without this environment's packages."""
    return str(getattr(sys, "_base_executable", sys.executable))


def version(folder: Path, package: str) -> str:
    """Of a package that lies there."""
    if (folder / "node_modules").exists():
        return str(json.loads((folder / "node_modules" / package / "package.json").read_text())["version"])
    prefix = package.replace("-", "_").lower()
    (info,) = (path for path in folder.glob("*.dist-info") if path.name.lower().startswith(f"{prefix}-"))
    return info.name.removesuffix(".dist-info").rsplit("-", 1)[1]


def _name(requirements: tuple[str, ...]) -> str:
    digest = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:8]
    words = "".join(char if char.isalnum() or char in ".-" else "_" for char in "-".join(requirements))
    return f"{words[:60]}-{digest}"


def _empty(folder: Path) -> Path:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    return part


def _alone(folder: Path) -> FileLock:
    """Two runs at once fetch once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{folder}.lock")


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        said = done.stdout + done.stderr
        if any(words in said for words in UNREACHED):
            raise Unreachable(f"no registry could be reached for: {command[-1]}")
        raise RuntimeError(f"{' '.join(command)}\n{said[-2000:]}")
    return done.stdout
