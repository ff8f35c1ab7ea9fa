"""Your own voices: the files of a folder, by name, and below it those that callers of a server have added.

The folders are looked at when they are used, at most once a second or for a name that is not there, and each file again
whenever its voice speaks. So a file that is added, replaced or removed counts at once, without a thread that watches.
"""

import logging
import os
import re
import threading
import time
from collections import ChainMap, defaultdict
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import inf
from pathlib import Path

from tutti.additions import Addition, locked, split_addition
from tutti.cloud_voices import OPENAI_VOICES, stand_in
from tutti.errors import InvalidInput, TooManyVoices, UnknownVoice, did_you_mean
from tutti.files import save, write_error
from tutti.text.language import LANGUAGES, find_language
from tutti.voice_file import READERS, Table, check_name, read_voice, shown

LOOK_S = 1.0  # between two looks at the folder; longer finds new voices later
AT_ONCE = 20  # new files that one look reads, about a millisecond each; the next look reads more
MAX_DIGESTS = 4096  # hashes of tables that are kept
SETTLED_S = 2.0  # since a folder has changed, after which its time tells every further change
MAX_TABLES = 64  # in memory, 0.5 MB each; with more voices in turn the files are read again
DEFAULT_LANGUAGE = "en-us"  # of a name that says none
ADDED = "added"  # folder below that of the operator, for voices that callers have added
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
    addition: Addition | None = None  # none: the operator's, for all

    @property
    def reader(self) -> str | None:
        """The only caller that may use it; none if all may."""
        return self.addition.reader if self.addition else None


class OwnVoices:
    """The voices of a folder. A bad file is a problem by its name, and disturbs no other."""

    def __init__(
        self,
        folder: Path | None,
        taken: Container[str] | None = (),
        clock: Callable[[], float] = time.monotonic,
        language: str = DEFAULT_LANGUAGE,
    ) -> None:
        """Without a folder there are no voices.

        `taken`: names that no file may have, beside those of other services; none: any name is free. `language`: code,
        of names that do not say one.
        """
        self.folder = folder
        self._taken = taken
        self._language = language
        self._clock = clock
        self._results: dict[Path, tuple[Stamp, OwnVoice | str]] = {}  # of each file: its voice, or what is wrong
        self._voices: dict[str, OwnVoice] = {}  # for all
        self._private: Mapping[str, dict[str, OwnVoice]] = {}  # by the only caller that may use them
        self._problems: dict[str, str] = {}
        self._looked_s = -inf
        self._looking = threading.Lock()  # a voice is added in a thread
        self._folder_times: tuple[int, ...] = ()
        self._table = lru_cache(MAX_TABLES)(_read_again)
        self._digest = lru_cache(MAX_DIGESTS)(_digest)
        self._look(at_once=None)

    def all(self, caller: str = "") -> Mapping[str, OwnVoice]:
        """Return the voices that a caller may use: its private ones, and those of all."""
        self.refresh()
        private = self._private.get(caller)
        return ChainMap(private, self._voices) if private else self._voices

    def problems(self) -> dict[str, str]:
        """What is wrong with the operator's files, by their names."""
        self.refresh()
        return self._problems

    def refresh(self, *, now: bool = False) -> None:
        """Look at the folders if they have changed, unless that was done a moment ago or is wanted `now`."""
        is_due = self._clock() >= self._looked_s + LOOK_S
        if self.folder is None or not (is_due or now):
            return
        if self._times() != self._folder_times or (is_due and self._problems):
            self._look(AT_ONCE)
        elif is_due:
            self._looked_s = self._clock()

    def find(self, name: str, caller: str = "") -> OwnVoice | None:
        """Return the voice as its file is now."""
        voice = self.all(caller).get(name)
        if voice is not None and _stamp(voice.path) != voice.stamp:
            self._results.pop(voice.path, None)
            self._look(at_once=None)
            voice = self.all(caller).get(name)
        return voice

    def table(self, voice: OwnVoice) -> Table:
        return self._table(voice)

    def digest(self, voice: OwnVoice) -> str:
        """Return the hash of its table."""
        return self._digest(voice)

    def add(
        self, name: str, language: str | None, table: Table, addition: Addition | None = None, limit: int | None = None
    ) -> OwnVoice:
        """Store a voice; raise if its name is taken. `language`: only if the name does not begin with it.

        `limit`: how many voices its owner may have.
        """
        if self.folder is None:
            raise InvalidInput("there is no folder for own voices", param="file")
        file = f"{check_name(name)}.{find_language(language).code}.bin" if language else f"{check_name(name)}.bin"
        name_and_language(file)
        self._check_free(name)
        path = self._place(file, addition)
        with locked(path.parent, "voice"):
            self._look(at_once=None)
            self._check_room(name, addition, limit)
            save(path, table.tobytes(), param="file")
            self._look(at_once=None)
        return self.all(addition.owner if addition else "")[name]

    def remove(self, name: str, caller: str = "") -> OwnVoice:
        """Delete the file of a voice that a caller may use, and return what it was."""
        voice = self.find(name, caller)
        if voice is None:
            similar = did_you_mean(name, self.all(caller))
            raise UnknownVoice(f"there is no own voice {name[:60]!r}{similar}", param="name")
        try:
            voice.path.unlink(missing_ok=True)
        except OSError as exc:
            raise write_error(voice.path, exc, "name") from exc
        self._look(at_once=None)
        return voice

    def _place(self, file: str, addition: Addition | None) -> Path:
        """Return the path for a new file, in a folder that is there."""
        assert self.folder is not None
        path = self.folder / file
        if addition is not None:
            path = self.folder / ADDED / addition.file_name(file)
        try:
            path.parent.mkdir(mode=0o777 if addition is None else 0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise write_error(path.parent, exc, "file") from exc
        return path

    def _check_room(self, name: str, addition: Addition | None, limit: int | None) -> None:
        """Raise if the name is taken for those who would see the voice, or its owner has as many as it may."""
        if name in self.all(addition.owner if addition else ""):
            raise InvalidInput(f"there is a voice {name} already; choose another name, or remove it", param="name")
        if addition is None or limit is None:
            return
        voices = [voice for voices in (self._voices, *self._private.values()) for voice in voices.values()]
        if sum(voice.addition is not None and voice.addition.owner == addition.owner for voice in voices) >= limit:
            raise TooManyVoices(f"you have added {limit} voices, the limit (TUTTI_MAX_VOICES); delete some")

    def _look(self, at_once: int | None) -> None:
        with self._looking:
            self._look_locked(at_once)

    def _look_locked(self, at_once: int | None) -> None:
        self._looked_s = self._clock()
        times = self._times()
        files, problems = self._files()
        changed = [path for path, stamp in files.items() if self._results.get(path, (None,))[0] != stamp]
        is_whole = at_once is None or len(changed) <= at_once
        self._folder_times = times if is_whole and time.time_ns() - max(times, default=0) > SETTLED_S * 1e9 else ()
        for path in changed[:at_once]:
            result = self._read(path, files[path])
            self._results[path] = files[path], result
            if isinstance(result, str):
                log.warning("voice file refused: %s", result)
        self._results = {path: self._results[path] for path in files if path in self._results}
        voices: dict[str | None, dict[str, OwnVoice]] = defaultdict(dict)
        for path, (_, result) in self._results.items():
            if isinstance(result, str):
                problems[path.name] = result
            elif (first := voices[result.reader].setdefault(result.name, result)) is not result:
                problems[path.name] = f"{shown(path.name)}: {first.path.name} has this name already; rename one"
        self._problems = {name: text for name, text in problems.items() if not split_addition(name)[0]}
        self._voices = voices.pop(None, {})
        self._private = {owner: own for owner, own in voices.items() if owner is not None}

    def _times(self) -> tuple[int, ...]:
        """Return when files were last added to the folders, replaced or removed."""
        return tuple(map(_folder_time_ns, self._folders()))

    def _folders(self) -> tuple[Path, ...]:
        return (self.folder, self.folder / ADDED) if self.folder else ()

    def _files(self) -> tuple[dict[Path, Stamp], dict[str, str]]:
        """Return every voice file in the folders, and what prevents looking at them."""
        stamps, problems = dict[Path, Stamp](), dict[str, str]()
        for folder in self._folders():
            try:
                names = sorted(os.listdir(folder))
            except FileNotFoundError:
                continue
            except OSError as exc:
                problems[folder.name] = f"cannot read the folder {folder}: {exc.strerror}"
                continue
            paths = (folder / name for name in names if not name.startswith(".") and Path(name).suffix in READERS)
            stamps |= {path: stamp for path in paths if (stamp := _stamp(path)) is not None}
        return stamps, problems

    def _read(self, path: Path, stamp: Stamp) -> OwnVoice | str:
        try:
            addition, file = split_addition(path.name) if path.parent.name == ADDED else (None, path.name)
            name, language = name_and_language(file, self._language)
            self._check_free(name)
            read_voice(path)
            return OwnVoice(name, language, path, stamp, addition)
        except InvalidInput as exc:
            return exc.message if path.name in exc.message else f"{shown(path.name)}: {exc.message}"

    def _check_free(self, name: str) -> None:
        """Raise InvalidInput if this name means another voice."""
        if self._taken is None:
            return
        if name in self._taken or name in OPENAI_VOICES or name == "default" or stand_in(name):
            cure = "choose another" if has_prefix(name) else f"choose another, such as af_{name}"
            raise InvalidInput(f"the name {name} stands for another voice already; {cure}", param="name")


def name_and_language(file: str, default: str = DEFAULT_LANGUAGE) -> tuple[str, str]:
    """Return the name and the language that a file's name says: `af_jadzia.pt`, `jadzia.pt`, `jadzia.en-gb.pt`."""
    name, _, code = Path(file).stem.partition(".")
    check_name(name)
    written = find_language(code).code if code else None
    if not has_prefix(name):
        return name, written or default
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
