"""A local folder as a source: a copy from another machine, a USB stick, a hub cache."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tutti.errors import InvalidInput
from tutti.weights.disk import sha256_of
from tutti.weights.manifest import File, describe
from tutti.weights.progress import DownloadProgress, GroupProgress
from tutti.weights.source import Offer, Unavailable


class Folder:
    """Offers the files in `root` and one level below that have the right bytes, under any name."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidInput(f"{root} is not a folder", param="from")
        self.root = root

    @property
    def name(self) -> str:
        return f"folder {self.root}"

    def fetch(self, files: Sequence[File], scratch: Path, progress: DownloadProgress) -> Iterator[Offer | Unavailable]:
        paths = [path for path in sorted([*self.root.glob("*"), *self.root.glob("*/*")]) if _readable(path)]
        sizes = {path: path.stat().st_size for path in paths}
        sha256: dict[Path, str] = {}
        group_progress = GroupProgress(files, progress)
        missing = []
        for file in files:
            # Try the file of the right name first: all voices have the same size.
            candidates = sorted((p for p in paths if sizes[p] == file.size), key=lambda path: path.name != file.name)
            for path in candidates:
                if path not in sha256:
                    sha256[path] = sha256_of(path)
                if sha256[path] == file.sha256:
                    yield Offer(file, _link_or_copy(path, scratch / file.sha256))
                    group_progress.update(file, file.size)
                    break
            else:
                missing.append(file)
        names = {path.name for path in paths}
        yield from (Unavailable(self.name, f"{f.name} is not the official one") for f in missing if f.name in names)
        if absent := [file for file in missing if file.name not in names]:
            yield Unavailable(self.name, f"has no readable {describe(absent)}")


def _readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)


def _link_or_copy(path: Path, target: Path) -> Path:
    """Make a hard link if the disk allows one, else a copy."""
    target.unlink(missing_ok=True)
    try:
        os.link(path.resolve(), target)
    except OSError:
        shutil.copyfile(path, target)
    return target
