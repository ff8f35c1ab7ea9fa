"""Your own voices: the files of a folder, by name.

The folder is looked at when it is used, at most once a second, and each file again whenever its voice speaks. So a
file that is added, replaced or removed counts at once, without a thread that watches it.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import inf
from pathlib import Path

from tutti.cloud_voices import OPENAI_VOICES, stand_in
from tutti.errors import InvalidInput, UnknownVoice, did_you_mean
from tutti.files import save, write_error
from tutti.text.language import LANGUAGES, find_language
from tutti.voice_file import READERS, Table, check_name, read_voice, shown

LOOK_S = 1.0  # between two looks at the folder; longer finds new voices later
AT_ONCE = 20  # new files that one look reads, about a millisecond each; the next look reads more
MAX_DIGESTS = 4096  # hashes of tables that are kept
SETTLED_S = 2.0  # since a folder has changed, after which its time tells every further change
UNSETTLED = -1  # the time of a folder that is to be looked at again in any case
MAX_TABLES = 64  # in memory, 0.5 MB each; with more voices in turn the files are read again
DEFAULT_LANGUAGE = "en-us"  # of a name that says none
_PREFIX = re.compile("[" + "".join(language.letter for language in LANGUAGES) + "][fm]_", re.ASCII)
log = logging.getLogger(__name__)

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class OwnVoice:
    """A voice in a file, as it was when it was read."""

    name: str
    language: str  # code
    path: Path
    stamp: Stamp


class OwnVoices:
    """The voices of a folder. A bad file is a problem by its name, and disturbs no other."""

    def __init__(
        self, folder: Path | None, taken: Container[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`taken`: names that no file may have. Without a folder there are no voices."""
        self.folder = folder
        self._taken = taken
        self._clock = clock
        self._results: dict[Path, tuple[Stamp, OwnVoice | str]] = {}  # of each file: its voice, or what is wrong
        self._voices: dict[str, OwnVoice] = {}
        self._problems: dict[str, str] = {}
        self._looked_s = -inf
        self._folder_time_ns = UNSETTLED
        self._table = lru_cache(MAX_TABLES)(_read_again)
        self._digest = lru_cache(MAX_DIGESTS)(_digest)
        self._look(at_once=None)

    def all(self) -> dict[str, OwnVoice]:
        self.refresh()
        return self._voices

    def problems(self) -> dict[str, str]:
        """What is wrong, by the name of the file."""
        self.refresh()
        return self._problems

    def refresh(self) -> None:
        """Look at the folder, unless that was done a moment ago."""
        if self.folder is not None and self._clock() >= self._looked_s + LOOK_S:
            if self._problems or _folder_time_ns(self.folder) != self._folder_time_ns:
                self._look(AT_ONCE)
            self._looked_s = self._clock()

    def find(self, name: str) -> OwnVoice | None:
        """Return the voice as its file is now."""
        voice = self.all().get(name)
        if voice is not None and _stamp(voice.path) != voice.stamp:
            self._results.pop(voice.path)
            self._look(at_once=None)
            voice = self._voices.get(name)
        return voice

    def table(self, voice: OwnVoice) -> Table:
        return self._table(voice)

    def digest(self, voice: OwnVoice) -> str:
        """Return the hash of its table."""
        return self._digest(voice)

    def add(self, name: str, language: str | None, table: Table) -> OwnVoice:
        """Store a voice; raise if its name is taken. `language`: only if the name does not begin with it."""
        if self.folder is None:
            raise InvalidInput("there is no folder for own voices", param="file")
        file = f"{check_name(name)}.{find_language(language).code}.bin" if language else f"{check_name(name)}.bin"
        name_and_language(file)
        self._check_free(name)
        self._look(at_once=None)
        if name in self._voices:
            raise InvalidInput(f"there is a voice {name} already; choose another name, or remove it", param="name")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise write_error(self.folder, exc, "file") from exc
        save(self.folder / file, table.tobytes(), param="file")
        self._look(at_once=None)
        return self._voices[name]

    def remove(self, name: str) -> OwnVoice:
        """Delete the file of a voice, and return what it was."""
        voice = self.find(name)
        if voice is None:
            raise UnknownVoice(f"there is no own voice {name[:60]!r}{did_you_mean(name, self._voices)}", param="name")
        try:
            voice.path.unlink(missing_ok=True)
        except OSError as exc:
            raise write_error(voice.path, exc, "name") from exc
        self._look(at_once=None)
        return voice

    def _look(self, at_once: int | None) -> None:
        self._looked_s = self._clock()
        time_ns = _folder_time_ns(self.folder) if self.folder else 0
        files, problems = self._files()
        changed = [path for path, stamp in files.items() if self._results.get(path, (None,))[0] != stamp]
        is_whole = at_once is None or len(changed) <= at_once
        self._folder_time_ns = time_ns if is_whole and time.time_ns() - time_ns > SETTLED_S * 1e9 else UNSETTLED
        for path in changed[:at_once]:
            result = self._read(path, files[path])
            self._results[path] = files[path], result
            if isinstance(result, str):
                log.warning("voice file refused: %s", result)
        self._results = {path: self._results[path] for path in files if path in self._results}
        self._voices, self._problems = {}, problems
        for path, (_, result) in self._results.items():
            if isinstance(result, str):
                self._problems[path.name] = result
            elif (first := self._voices.setdefault(result.name, result)) is not result:
                self._problems[path.name] = f"{shown(path.name)}: {first.path.name} has this name already; rename one"

    def _files(self) -> tuple[dict[Path, Stamp], dict[str, str]]:
        """Return every voice file in the folder, and what prevents looking at it."""
        if self.folder is None:
            return {}, {}
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return {}, {}
        except OSError as exc:
            return {}, {self.folder.name: f"cannot read the folder {self.folder}: {exc.strerror}"}
        paths = [self.folder / name for name in names if not name.startswith(".") and Path(name).suffix in READERS]
        stamps = {path: _stamp(path) for path in paths}
        return {path: stamp for path, stamp in stamps.items() if stamp is not None}, {}

    def _read(self, path: Path, stamp: Stamp) -> OwnVoice | str:
        try:
            name, language = name_and_language(path.name)
            self._check_free(name)
            read_voice(path)
            return OwnVoice(name, language, path, stamp)
        except InvalidInput as exc:
            return exc.message if path.name in exc.message else f"{shown(path.name)}: {exc.message}"

    def _check_free(self, name: str) -> None:
        """Raise InvalidInput if this name means another voice."""
        if name in self._taken or name in OPENAI_VOICES or name == "default" or stand_in(name):
            cure = "choose another" if has_prefix(name) else f"choose another, such as af_{name}"
            raise InvalidInput(f"the name {name} stands for another voice already; {cure}", param="name")


def name_and_language(file: str) -> tuple[str, str]:
    """Return the name and the language that a file's name says: `af_jadzia.pt`, `jadzia.pt`, `jadzia.en-gb.pt`."""
    name, _, code = Path(file).stem.partition(".")
    check_name(name)
    written = find_language(code).code if code else None
    if not has_prefix(name):
        return name, written or DEFAULT_LANGUAGE
    language = find_language(name[0])
    if written and written != language.code:
        raise InvalidInput(
            f"a name that begins with {name[:3]} is {language.name}; choose another one", param="language"
        )
    return name, language.code


def has_prefix(name: str) -> bool:
    """Whether a name begins as Kokoro's, with the letters of a language and a gender."""
    return _PREFIX.match(name) is not None


def _stamp(path: Path) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _folder_time_ns(folder: Path) -> int:
    """Return when a file was last added to a folder, replaced or removed; 0 if that is not known."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _digest(voice: OwnVoice) -> str:
    return sha256(_read_again(voice).tobytes()).hexdigest()


def _read_again(voice: OwnVoice) -> Table:
    table = read_voice(voice.path)
    if _stamp(voice.path) != voice.stamp:
        raise InvalidInput(f"the file of voice {voice.name} is being changed; try again", param="voice")
    return table
