"""Checkpoints of others on the Hugging Face hub: one repository at one revision becomes one folder."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path, PurePosixPath
from typing import Any

from tutti.errors import InvalidInput, WeightsCorrupt, WeightsUnavailable
from tutti.weights.disk import storage_errors
from tutti.weights.hub import Hub, endpoint, file_url, is_offline, open_client
from tutti.weights.manifest import File
from tutti.weights.progress import show_progress
from tutti.weights.store import Store

SCHEME = "hub:"
MAIN = "main"
MAX_BYTES = 4e9  # of all files of a checkpoint; Kokoro has 330 MB
MAX_VOICE = 5e6  # bytes; a larger file is one of weights
MAX_FILES = 500  # 103 voices and the rest
SUFFIXES = (".onnx", ".safetensors", ".pth", ".pt", ".npy", ".bin", ".json", ".md")
FOLDERS = (".", "onnx", "voices", "voicepacks")  # of a repository, with what a checkpoint needs
_SOURCE = re.compile(
    r"hub:(?P<name>[\w.-]{1,96}/[\w.-]{1,96})(@(?P<revision>[\w.-]{1,96}))?(#(?P<weights>[\w.-]{1,96}))?", re.ASCII
)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on the hub, at a commit, a tag or a branch."""

    name: str  # owner/name
    revision: str = MAIN
    weights: str = ""  # the only file of weights that is needed; all if none is named

    def folder(self, home: Path) -> Path:
        """Where it is kept."""
        return home / "hub" / self.name.replace("/", "--") / "-".join(filter(None, (self.revision, self.weights)))

    def __str__(self) -> str:
        return f"{SCHEME}{self.name}@{self.revision}" + (f"#{self.weights}" if self.weights else "")


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """What the card of a checkpoint says; none of them was tried here, since their weights were not at hand."""

    repository: Repository
    language: str  # code
    licence: str
    about: str


# By the short names that TUTTI_MODELS takes. Facts from their cards and threads of November 2026.
KNOWN: Mapping[str, KnownCheckpoint] = {
    "kokoro-zh": KnownCheckpoint(
        Repository("hexgrad/Kokoro-82M-v1.1-zh"), "zh", "Apache-2.0", "Kokoro 1.1: 100 Chinese voices, three English"
    ),
    "german-martin": KnownCheckpoint(
        Repository("kikiri-tts/kikiri-german-martin"), "de", "Apache-2.0", "one German voice, male"
    ),
    "german-victoria": KnownCheckpoint(
        Repository("kikiri-tts/kikiri-german-victoria"), "de", "Apache-2.0", "one German voice, female"
    ),
    "german-kerstin": KnownCheckpoint(
        Repository("cryptomilk/kokoro-german-kerstin"), "de", "Apache-2.0", "one German voice, female"
    ),
    "german-thorsten": KnownCheckpoint(
        Repository("Thorsten-Voice/Kokoro", weights="model.pth"), "de", "Apache-2.0", "Thorsten's voice"
    ),
    "swedish": KnownCheckpoint(
        Repository("Joakim/swedish-kokoro", weights="kokoro_sv.pth"), "sv", "Apache-2.0", "one Swedish voice, female"
    ),
    "russian": KnownCheckpoint(
        Repository("zaakirio/kokoro-ru", weights="kokoro-ru-v2-base.pth"), "ru", "OpenRAIL", "Russian: sveta, masha"
    ),
    "vietnamese": KnownCheckpoint(
        Repository("contextboxai/Kokoro-Vietnamese", weights="kokoro_vi.pth"), "vi", "Apache-2.0", "14 voices"
    ),
    "arabic": KnownCheckpoint(
        Repository("oddadmix/Nabra-82M-v0.1"), "ar", "Apache-2.0", "one voice; expects vowel signs"
    ),
}


def find_repository(source: str) -> Repository | None:
    """Return the repository of `hub:owner/name@revision` or of a short name; none for any other source."""
    if source in KNOWN:
        return KNOWN[source].repository
    if not source.startswith(SCHEME):
        return None
    match = _SOURCE.fullmatch(source)
    if match is None or ".." in source:
        raise InvalidInput(f"models: write hub:owner/name@revision or …#file.pth, not {source[:80]!r}", param="models")
    return Repository(match["name"], match["revision"] or MAIN, match["weights"] or "")


def fetch(repository: Repository, home: Path, *, offline: bool = False) -> Path:
    """Return the folder of a repository; download it once, whole or not at all, each file checked."""
    from filelock import FileLock

    folder = repository.folder(home)
    if folder.is_dir():
        return folder
    if offline or is_offline():
        raise WeightsUnavailable(f"{repository} is not in {folder}, and nothing may be downloaded; run: tutti pull")
    partial = folder.with_name(f".{folder.name}.partial")
    with storage_errors(home, 0):
        partial.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():  # else another process has fetched it meanwhile
                _download(repository, partial)
                partial.rename(folder)
    log.info("weights repository=%s folder=%s", repository, folder)
    return folder


def _download(repository: Repository, folder: Path) -> None:
    import httpx2

    try:
        with open_client() as client:
            answer = client.get(f"{endpoint()}/api/models/{repository.name}/revision/{repository.revision}?blobs=true")
            info = answer.raise_for_status().json()
            entries = [entry for entry in info["siblings"] if _is_needed(entry, repository.weights)]
            _check_size(repository, entries)
            for entry in entries:
                if "lfs" not in entry:
                    url = file_url(repository.name, info["sha"], entry["rfilename"])
                    data = client.get(url).raise_for_status().content
                    _save_small(folder / entry["rfilename"], data, entry)
    except httpx2.HTTPStatusError as exc:
        status = f"{exc.response.status_code} {exc.response.reason_phrase}"
        raise WeightsUnavailable(f"the hub answered {status} for {repository}; check its name and revision") from exc
    except httpx2.TransportError as exc:
        raise WeightsUnavailable(f"no connection to the hub for {repository} ({exc}); copy the folder here") from exc
    except (ValueError, LookupError, TypeError) as exc:
        raise WeightsUnavailable(f"the hub does not describe {repository} as it should ({exc!r})") from exc
    files = [_large_file(entry) for entry in entries if "lfs" in entry]
    with show_progress() as progress:
        Store(folder).ensure(files, sources=[Hub(repository.name, info["sha"])], progress=progress)
    (folder / ".lock").unlink(missing_ok=True)


def _is_needed(entry: Mapping[str, Any], weights: str) -> bool:
    name = entry["rfilename"]
    path = PurePosixPath(name)
    if weights and path.name != weights and (entry.get("size") or 0) > MAX_VOICE:
        return False
    return path.suffix in SUFFIXES and str(path.parent) in FOLDERS and ".." not in name


def _check_size(repository: Repository, entries: Sequence[Mapping[str, Any]]) -> None:
    n_bytes = sum(entry.get("size") or 0 for entry in entries)
    if n_bytes > MAX_BYTES or len(entries) > MAX_FILES:
        size = f"{len(entries)} files with {n_bytes / 1e9:.1f} GB"
        raise InvalidInput(
            f"{repository} has {size}, too much for a checkpoint of Kokoro; copy what is needed into a folder",
            param="models",
        )


def _large_file(entry: Mapping[str, Any]) -> File:
    name, lfs = entry["rfilename"], entry["lfs"]
    return File(name, lfs["size"], lfs["sha256"], (), hub_path=name)


def _save_small(path: Path, data: bytes, entry: Mapping[str, Any]) -> None:
    """Write a file that git itself keeps; raise if its hash there is another."""
    blob = sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
    if entry.get("blobId", blob) != blob:
        raise WeightsCorrupt(f"{path.name} has wrong bytes; try again")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
