"""Lexicons that callers of a server have stored by name: JSON files in a folder, found when they are used."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tutti.additions import Addition, locked, split_addition
from tutti.errors import InvalidInput, NotYourLexicon, TooManyLexicons, UnknownLexicon, did_you_mean
from tutti.files import save, write_error
from tutti.text.ssml import is_ssml
from tutti.text.user_lexicon import UserLexicon

MAX_READ = 32  # lexicons in memory, up to some megabytes each; with more in turn the files are read again
MAX_AT_ONCE = 10  # lexicons of one request
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}", re.ASCII)
_SUFFIX = ".json"
_SSML_ELEMENT = re.compile(r"<lexicon(\s[^<>]*+)(?:(?<=/)>|>\s*+</lexicon>)")
_SSML_NAME = re.compile(r"""\suri=["']([\w-]{1,60})["']""", re.ASCII)


@dataclass(frozen=True, slots=True)
class LexiconContent:
    """Pronunciations by word, and what its author says of them."""

    entries: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    description: str = ""

    @property
    def version(self) -> str:
        """A text that changes with the entries."""
        return sha256(json.dumps(list(self.entries.items())).encode()).hexdigest()[:20]


Change = Callable[[LexiconContent], LexiconContent]


class StoredLexicon(NamedTuple):
    """A lexicon in a file, as it was when the folder was read."""

    id: str
    addition: Addition
    path: Path
    stamp: tuple[int, int, int]

    @property
    def created_s(self) -> int:
        return self.stamp[0] // 10**9


class Lexicons:
    """The lexicons of a folder. Each caller has names of its own, beside those that are shared."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read = lru_cache(MAX_READ)(_read)

    def all(self, caller: str = "") -> dict[str, StoredLexicon]:
        """Return the lexicons that a caller may use, its private ones before those of all, by id."""
        lexicons = sorted(self._files(), key=lambda lexicon: (lexicon.addition.reader is None, lexicon.id))
        by_id: dict[str, StoredLexicon] = {}
        for lexicon in lexicons:
            if lexicon.addition.reader in (None, caller):
                by_id.setdefault(lexicon.id, lexicon)
        return by_id

    def find(self, id: str, caller: str = "", param: str = "id") -> StoredLexicon:
        lexicons = self.all(caller)
        if id not in lexicons:
            raise UnknownLexicon(f"there is no lexicon {id[:60]!r}{did_you_mean(id, lexicons)}", param=param)
        return lexicons[id]

    def content(self, lexicon: StoredLexicon) -> LexiconContent:
        return self._read(lexicon)

    def merged(self, ids: Sequence[str], caller: str, param: str) -> dict[str, str]:
        """Return the entries of several lexicons; where they differ, the first wins."""
        if len(ids) > MAX_AT_ONCE:
            raise InvalidInput(f"a request takes {MAX_AT_ONCE} lexicons, not {len(ids)}", param=param)
        entries: dict[str, str] = {}
        for id in reversed(ids):
            entries.update(self.content(self.find(id, caller, param)).entries)
        return entries

    def put(
        self, id: str, change: Change, addition: Addition, limit: int, *, keeps_access: bool = False
    ) -> StoredLexicon:
        """Store what `change` makes of a lexicon of this owner, or of an empty one; raise if an entry is wrong.

        `keeps_access`: who may use it stays as it is, if there is one.
        """
        check_id(id)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise write_error(self.folder, exc, "id") from exc
        with locked(self.folder, "lexicon"):
            before = self._before(id, addition, limit)
            content = change(self.content(before) if before else LexiconContent())
            UserLexicon.of(content.entries)
            used = before.addition if before and keeps_access else addition
            path = self.folder / used.file_name(id + _SUFFIX)
            data = {"name": content.name, "description": content.description, "entries": dict(content.entries)}
            save(path, json.dumps(data), mode=0o600, param="id")
            if before and before.path != path:
                before.path.unlink(missing_ok=True)
        return self.find(id, addition.owner)

    def remove(self, id: str, owner: str) -> None:
        lexicon = self.find(id, owner)
        check_owner(lexicon, owner)
        lexicon.path.unlink(missing_ok=True)

    def _before(self, id: str, addition: Addition, limit: int) -> StoredLexicon | None:
        """Return the lexicon that is replaced; raise if it is of somebody else, or there are too many."""
        before = self.all(addition.owner).get(id)
        if before is not None:
            check_owner(before, addition.owner)
            return before
        if sum(lexicon.addition.owner == addition.owner for lexicon in self._files()) >= limit:
            raise TooManyLexicons(f"you have stored {limit} lexicons, the limit (TUTTI_MAX_LEXICONS); delete some")
        return None

    def _files(self) -> list[StoredLexicon]:
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []
        lexicons = []
        for file_name in names:
            addition, rest = split_addition(file_name)
            if addition is None or not rest.endswith(_SUFFIX) or not _ID.fullmatch(rest.removesuffix(_SUFFIX)):
                continue
            with suppress(OSError):  # it was just removed
                status = os.stat(path := self.folder / file_name)
                stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
                lexicons.append(StoredLexicon(rest.removesuffix(_SUFFIX), addition, path, stamp))
        return lexicons


@dataclass(frozen=True, slots=True)
class LexiconsOfCaller:
    """The lexicons that one caller may use."""

    lexicons: Lexicons
    caller: str = ""

    def merged(self, ids: Sequence[str], param: str = "lexicon_id") -> dict[str, str]:
        return self.lexicons.merged(ids, self.caller, param)

    def content(self, id: str, param: str) -> LexiconContent:
        return self.lexicons.content(self.lexicons.find(id, self.caller, param))


def named_lexicons(text: str) -> tuple[str, list[str]]:
    """Return SSML with blanks for each <lexicon uri="name"/>, and the names. One with an address stays: no effect."""
    names: list[str] = []

    def blank(element: re.Match[str]) -> str:
        if name := _SSML_NAME.search(element[1]):
            names.append(name[1])
        return re.sub(r"\S", " ", element[0]) if name else element[0]

    return (_SSML_ELEMENT.sub(blank, text), names) if is_ssml(text) else (text, names)


def check_id(id: str) -> str:
    if not _ID.fullmatch(id):
        rule = "up to 60 lower-case letters, digits, - and _, the first no sign"
        raise InvalidInput(f"{id[:60]!r} is not an id of a lexicon: {rule}", param="id")
    return id


def check_owner(lexicon: StoredLexicon, owner: str) -> None:
    if lexicon.addition.owner != owner:
        raise NotYourLexicon(f"lexicon {lexicon.id} was not stored with your key, so it stays as it is", param="id")


def _read(lexicon: StoredLexicon) -> LexiconContent:
    try:
        data = json.loads(lexicon.path.read_bytes())
        return LexiconContent(data["entries"], data["name"], data["description"])
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise UnknownLexicon(f"the file of lexicon {lexicon.id} cannot be read; store it again", param="id") from exc
