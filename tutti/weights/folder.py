"""A folder on this machine as a source: a copy from another machine, a USB stick, a hub cache."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tutti.errors import InvalidInput
from tutti.weights.disk import sha256_of
from tutti.weights.manifest import File, described
from tutti.weights.progress import Progress, Tally
from tutti.weights.source import Offer, Refusal


class Folder:
    """Offers whatever in `root` (and one folder below) has the right bytes, whatever it is called."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidInput(f"{root} is not a folder", param="from")
        self.root = root

    @property
    def name(self) -> str:
        return f"folder {self.root}"

    def fetch(self, files: Sequence[File], scratch: Path, progress: Progress) -> Iterator[Offer | Refusal]:
        paths = [path for path in sorted([*self.root.glob("*"), *self.root.glob("*/*")]) if _readable(path)]
        sizes = {path: path.stat().st_size for path in paths}
        sha256: dict[Path, str] = {}
        tally = Tally(files, progress)
        absent = []
        for file in files:
            # What bears the right name is looked at first: all voices have one size.
            candidates = sorted((p for p in paths if sizes[p] == file.size), key=lambda path: path.name != file.name)
            for path in candidates:
                if path not in sha256:
                    sha256[path] = sha256_of(path)
                if sha256[path] == file.sha256:
                    yield Offer(file, _taken(path, scratch / file.sha256))
                    tally.now(file, file.size)
                    break
            else:
                absent.append(file)
        names = {path.name for path in paths}
        yield from (Refusal(self.name, f"{f.name} is not the official one") for f in absent if f.name in names)
        if unnamed := [file for file in absent if file.name not in names]:
            yield Refusal(self.name, f"has no readable {described(unnamed)}")


def _readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)


def _taken(path: Path, target: Path) -> Path:
    """A hard link where the disk allows one, else a copy."""
    target.unlink(missing_ok=True)
    try:
        os.link(path.resolve(), target)
    except OSError:
        shutil.copyfile(path, target)
    return target
