"""The pronunciations that an operator keeps in a file, read again whenever the file changes."""

import logging
import threading
from pathlib import Path

from tutti.errors import InvalidInput
from tutti.text.user_lexicon import UserLexicon, parsed

log = logging.getLogger(__name__)

KINDS = ("tsv", "json", "toml")


class LexiconFile:
    """A lexicon file. Broken at the start, it is refused; broken later, it is named in the log and the last good one
    stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._changing = threading.Lock()
        self._seen = stamp(self.path)
        self._words = self._read()

    def words(self) -> UserLexicon:
        """As the file stands now."""
        with self._changing:
            now = stamp(self.path)
            if now != self._seen:
                self._seen = now
                try:
                    self._words = self._read()
                    log.info("lexicon read again: %s", self.path)
                except InvalidInput as exc:
                    log.error("%s; the last good one stays", exc.message)
            return self._words

    def _read(self) -> UserLexicon:
        kind = self.path.suffix.lower().removeprefix(".")
        if kind not in KINDS:
            raise InvalidInput(f"{self.path}: a lexicon is a .tsv, .json or .toml file", param="lexicon")
        try:
            return UserLexicon.of(parsed(self.path.read_text("utf-8-sig"), kind))
        except (OSError, ValueError, RecursionError, InvalidInput) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            raise InvalidInput(f"cannot read {self.path}: {why}", param="lexicon") from exc


def stamp(path: Path) -> tuple[int, int]:
    """When the file was written and how long it is; zeros where it is not there."""
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size
