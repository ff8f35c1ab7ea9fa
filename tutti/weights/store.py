"""The folder where the official files live: what is missing, what is broken, and how both are mended."""

import logging
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tutti.errors import WeightsCorrupt, WeightsUnavailable
from tutti.weights.disk import bytes_under, has_size, move_whole, require_room, sha256_of, storage_errors
from tutti.weights.manifest import File, described
from tutti.weights.progress import Progress, Silent
from tutti.weights.source import Offer, Refusal, Source

log = logging.getLogger(__name__)


class Store:
    """Owns one folder of official files. A file that lies under its final name was whole when it got there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._scratch = home / ".downloads"

    def path(self, file: File) -> Path:
        return self.home / file.path

    def missing(self, files: Iterable[File]) -> list[File]:
        """Files that are absent or of a wrong size. Reads no contents, so that a start stays fast."""
        return [file for file in files if not has_size(self.path(file), file.size)]

    def verify(self, files: Iterable[File], progress: Progress | None = None) -> None:
        """Check every byte. A wrong file is deleted, so that the next pull brings it again."""
        files = list(files)
        if absent := [file for file in files if not self.path(file).exists()]:
            raise WeightsUnavailable(f"{described(absent)} missing in {self.home}; run `tutti pull`")
        wrong = []
        n_checked = 0
        for file in files:
            got = sha256_of(self.path(file))
            n_checked += file.size
            (progress or Silent()).moved("checking", n_checked, sum(file.size for file in files))
            if got != file.sha256:
                wrong.append(_mismatch(file, got))
                with storage_errors(self.home, 0):
                    self.path(file).unlink()
        if wrong:
            raise WeightsCorrupt(f"{'; '.join(wrong)}; deleted from {self.home}, run `tutti pull` to fetch again")

    def ensure(self, files: Sequence[File], *, sources: Sequence[Source], progress: Progress | None = None) -> None:
        """Make every file present and whole, from the first source that has it; return at once if they are."""
        progress = progress or Silent()
        with storage_errors(self.home, 0):
            missing = self.missing(files)
        if not missing:
            return
        if not sources:
            self._give_up(missing, [Refusal("offline", "nobody was asked")], [])
        with storage_errors(self.home, sum(file.size for file in missing)):
            self.home.mkdir(parents=True, exist_ok=True)
            with self._alone(progress):
                self._pull(files, sources, progress)

    def _pull(self, files: Sequence[File], sources: Sequence[Source], progress: Progress) -> None:
        missing = self.missing(files)
        if not missing:
            return  # another process brought them while we waited
        self._scratch.mkdir(exist_ok=True)
        require_room(self.home, sum(file.size for file in missing) - bytes_under(self._scratch))
        refusals: list[Refusal] = []
        corrupt: list[str] = []
        for file in missing:
            if self.path(file).exists():
                self.path(file).unlink()
                corrupt.append(f"{file.path} has a wrong size, deleted")
                self._say(progress, corrupt[-1])
        for source in sources:
            for answer in source.fetch(self.missing(missing), self._scratch, progress):
                match answer:
                    case Refusal(place, reason):
                        refusals.append(answer)
                        log.info("weights place=%s refused: %s", place, reason)
                    case Offer(file, path):
                        got = sha256_of(path)
                        if got == file.sha256:
                            move_whole(path, self.path(file))
                            log.info("weights file=%s bytes=%d from=%s", file.path, file.size, source.name)
                        else:
                            path.unlink()
                            corrupt.append(f"{_mismatch(file, got)}, from {source.name}, deleted")
                            self._say(progress, corrupt[-1])
            if not self.missing(missing):
                break
        else:
            self._give_up(self.missing(missing), refusals, corrupt)
        shutil.rmtree(self._scratch, ignore_errors=True)

    @contextmanager
    def _alone(self, progress: Progress) -> Iterator[None]:
        """One download at a time in this folder; the others wait and find the files there."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.home / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self._say(progress, f"another tutti is downloading into {self.home}, waiting")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _say(self, progress: Progress, line: str) -> None:
        log.info("weights %s", line)  # a warning would reach stderr beside the progress
        progress.note(line)

    def _give_up(self, missing: list[File], refusals: list[Refusal], corrupt: list[str]) -> NoReturn:
        """Say once what is missing, who was asked, what they answered, and what helps."""
        broken = [f"{file.path} has a wrong size" for file in missing if self.path(file).exists()]
        asked = "; ".join(f"{refusal.place}: {refusal.reason}" for refusal in refusals)
        message = (
            f"{described(missing)} missing in {self.home}. {'. '.join([*corrupt, *broken, asked])}."
            " Run `tutti pull` on a machine with internet, copy its folder here and run `tutti pull --from DIR`"
        )
        raise (WeightsCorrupt if corrupt or broken else WeightsUnavailable)(message)


def _mismatch(file: File, got: str) -> str:
    return f"{file.path} has wrong bytes: sha256 {file.sha256} expected, {got} got"
