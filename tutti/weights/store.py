"""The folder of official files: find missing and broken ones, and fetch them."""

import logging
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tutti.errors import WeightsCorrupt, WeightsUnavailable
from tutti.files import bytes_under, move_file
from tutti.weights.disk import has_size, require_space, sha256_of, storage_errors
from tutti.weights.manifest import File, describe
from tutti.weights.progress import DownloadProgress, SilentProgress
from tutti.weights.source import Offer, Source, Unavailable

log = logging.getLogger(__name__)


class Store:
    """Owns one folder of official files. A file under its final name was complete when it got there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._scratch = home / ".downloads"

    def path(self, file: File) -> Path:
        return self.home / file.path

    def missing(self, files: Iterable[File]) -> list[File]:
        """Files that are absent or of a wrong size. Does not read them, to keep the start fast."""
        return [file for file in files if not has_size(self.path(file), file.size)]

    def verify(self, files: Iterable[File], progress: DownloadProgress | None = None) -> None:
        """Check every byte. A wrong file is deleted, so that the next pull fetches it again."""
        files = list(files)
        if absent := [file for file in files if not self.path(file).exists()]:
            raise WeightsUnavailable(f"{describe(absent)} missing in {self.home}; run `tutti pull`")
        wrong = []
        n_checked = 0
        for file in files:
            sha256 = sha256_of(self.path(file))
            n_checked += file.size
            (progress or SilentProgress()).update("checking", n_checked, sum(file.size for file in files))
            if sha256 != file.sha256:
                wrong.append(_mismatch(file, sha256))
                with storage_errors(self.home, 0):
                    self.path(file).unlink()
        if wrong:
            raise WeightsCorrupt(f"{'; '.join(wrong)}; deleted from {self.home}, run `tutti pull` to fetch again")

    def ensure(
        self, files: Sequence[File], *, sources: Sequence[Source], progress: DownloadProgress | None = None
    ) -> None:
        """Fetch every file that is missing or of a wrong size, from the first source that has it."""
        progress = progress or SilentProgress()
        with storage_errors(self.home, 0):
            missing = self.missing(files)
        if not missing:
            return
        if not sources:
            self._give_up(missing, [Unavailable("offline", "no source was tried")], [])
        with storage_errors(self.home, sum(file.size for file in missing)):
            self.home.mkdir(parents=True, exist_ok=True)
            with self._lock(progress):
                self._pull(files, sources, progress)

    def _pull(self, files: Sequence[File], sources: Sequence[Source], progress: DownloadProgress) -> None:
        missing = self.missing(files)
        if not missing:
            return  # another process fetched them while we waited
        self._scratch.mkdir(exist_ok=True)
        require_space(self.home, sum(file.size for file in missing) - bytes_under(self._scratch))
        failures: list[Unavailable] = []
        corrupt: list[str] = []
        for file in missing:
            if self.path(file).exists():
                self.path(file).unlink()
                corrupt.append(f"{file.path} has a wrong size, deleted")
                self._note(progress, corrupt[-1])
        for source in sources:
            for answer in source.fetch(self.missing(missing), self._scratch, progress):
                match answer:
                    case Unavailable(name, reason):
                        failures.append(answer)
                        log.info("weights source=%s unavailable: %s", name, reason)
                    case Offer(file, path):
                        sha256 = sha256_of(path)
                        if sha256 == file.sha256:
                            self.path(file).parent.mkdir(parents=True, exist_ok=True)
                            move_file(path, self.path(file))
                            log.info("weights file=%s bytes=%d from=%s", file.path, file.size, source.name)
                        else:
                            path.unlink()
                            corrupt.append(f"{_mismatch(file, sha256)}, from {source.name}, deleted")
                            self._note(progress, corrupt[-1])
            if not self.missing(missing):
                break
        else:
            self._give_up(self.missing(missing), failures, corrupt)
        shutil.rmtree(self._scratch, ignore_errors=True)

    @contextmanager
    def _lock(self, progress: DownloadProgress) -> Iterator[None]:
        """Hold the folder's lock: one download at a time; other processes wait and then find the files."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.home / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self._note(progress, f"another tutti is downloading into {self.home}, waiting")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _note(self, progress: DownloadProgress, line: str) -> None:
        log.info("weights %s", line)  # a warning would also go to stderr, next to the progress
        progress.note(line)

    def _give_up(self, missing: list[File], failures: list[Unavailable], corrupt: list[str]) -> NoReturn:
        """Raise one error: what is missing, what each source answered, and what to do."""
        broken = [f"{file.path} has a wrong size" for file in missing if self.path(file).exists()]
        answers = "; ".join(f"{failure.source}: {failure.reason}" for failure in failures)
        message = (
            f"{describe(missing)} missing in {self.home}. {'. '.join([*corrupt, *broken, answers])}."
            " Run `tutti pull` on a machine with internet, copy its folder here and run `tutti pull --from DIR`"
        )
        raise (WeightsCorrupt if corrupt or broken else WeightsUnavailable)(message)


def _mismatch(file: File, sha256: str) -> str:
    return f"{file.path} has wrong bytes: sha256 {file.sha256} expected, {sha256} got"
