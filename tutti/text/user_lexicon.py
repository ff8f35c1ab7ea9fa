"""User pronunciations, from one request or from a file: words and patterns, as IPA or respelled."""

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

import re2

from tutti.errors import InvalidInput
from tutti.text import vocab
from tutti.text.aligned_text import PLACEHOLDER, AlignedText, Replacement
from tutti.text.marks import decompose_ipa

log = logging.getLogger(__name__)

MAX_WORDS = 20_000  # entries of any kind
MAX_PATTERNS = 100  # regular expressions; each is searched in every sentence
MAX_PHRASES = 400  # entries of several words; each is searched in every sentence
MAX_LENGTH = 200  # characters of a word, a pattern, or a pronunciation
MAX_SPOKEN = 10_000  # characters of a sentence in which all words are replaced; sentences have at most 1,000 before
MATCHER_BYTES = 1 << 19  # memory of one pattern's matcher; with less, long texts are searched more slowly
FILE_TYPES = ("tsv", "json", "toml")


@dataclass(frozen=True, slots=True)
class LexiconEntry:
    """How a word is pronounced: IPA, or other words."""

    pronunciation: str
    is_ipa: bool


Columns = tuple[tuple[str, ...], tuple[str, ...], bytes]  # words, pronunciations, whether each is IPA


@dataclass(frozen=True, slots=True)
class UserLexicon:
    """Pronunciations by word. A lower-case word matches any case; one with capitals only as it is written."""

    exact: Mapping[str, LexiconEntry]
    folded: Mapping[str, LexiconEntry]
    phrases: tuple[tuple[str, LexiconEntry], ...] = ()  # several words, or a script without spaces; longest first
    patterns: tuple[tuple[str, LexiconEntry], ...] = ()  # regular expressions

    @classmethod
    def of(cls, entries: Mapping[str, str]) -> "UserLexicon":
        """Build from `{"word": "/ipa/", "word": "other words", "/pattern/": …}`; raise InvalidInput for a bad entry."""
        if len(entries) > MAX_WORDS:
            raise _invalid(f"has {len(entries)} entries; at most {MAX_WORDS:,} fit")
        exact: dict[str, LexiconEntry] = {}
        folded: dict[str, LexiconEntry] = {}
        phrases: dict[str, LexiconEntry] = {}
        patterns: dict[str, LexiconEntry] = {}
        for word, pronunciation in entries.items():
            entry = _entry(word, pronunciation)
            if (pattern := _pattern(word)) is not None:
                patterns[pattern] = entry
            elif not _WORD.fullmatch(word) or _SPACELESS_SCRIPT.search(word):
                phrases[_phrase_pattern(word)] = entry
            elif word == word.lower():
                folded[word] = entry
            else:
                exact[word] = entry
        if len(patterns) > MAX_PATTERNS:
            raise _invalid(f"has {len(patterns)} patterns; at most {MAX_PATTERNS} fit")
        if len(phrases) > MAX_PHRASES:
            raise _invalid(f"has {len(phrases)} entries of several words; at most {MAX_PHRASES} fit")
        longest_first = sorted(phrases.items(), key=lambda phrase: -len(phrase[0]))
        return cls(exact, folded, tuple(longest_first), tuple(patterns.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle in columns: an object for each of 20,000 words would hold the event loop for 80 ms instead of 10."""
        return _from_columns, (_columns(self.exact), _columns(self.folded), self.phrases, self.patterns)

    def __or__(self, over: "UserLexicon") -> "UserLexicon":
        """Merge both; where they differ, the right one wins."""
        return UserLexicon(
            {**self.exact, **over.exact},
            {**self.folded, **over.folded},
            (*over.phrases, *self.phrases),
            (*over.patterns, *self.patterns),
        )

    def apply(self, aligned: AlignedText) -> tuple[AlignedText, dict[int, str]]:
        """Replace listed words of a sentence by their respelling, or by a PLACEHOLDER with its IPA by source offset."""
        ipa_overrides: dict[int, str] = {}
        n_characters = len(aligned)

        def replace(find: Callable[[str], LexiconEntry | None], match: re.Match[str]) -> Replacement:
            nonlocal n_characters
            entry = find(match[0])
            if entry is None or not match[0] or PLACEHOLDER in match[0]:
                return None
            if not entry.is_ipa:
                # One entry may match what another has put in: without a limit, a few of them fill the memory.
                n_characters += len(entry.pronunciation) - len(match[0])
                if n_characters > MAX_SPOKEN:
                    raise _invalid(f"its entries make one sentence longer than {MAX_SPOKEN:,} characters")
                return entry.pronunciation
            ipa_overrides[aligned.source(*match.span())[0]] = entry.pronunciation
            return PLACEHOLDER

        for source, entry in self.patterns:
            aligned = aligned.sub(cast("re.Pattern[str]", _matcher(source)), partial(replace, partial(_always, entry)))
        for source, entry in self.phrases:
            aligned = aligned.sub(re.compile(source), partial(replace, partial(_always, entry)))
        if self.exact or self.folded:
            aligned = aligned.sub(_WORD, partial(replace, self._find))
        return aligned, ipa_overrides

    def _find(self, word: str) -> LexiconEntry | None:
        """Return the entry of a word, or of the word whose possessive it is."""
        if entry := self.exact.get(word) or self.folded.get(word.lower()):
            return entry
        if not word.endswith("'s"):
            return None
        stem = self.exact.get(word[:-2]) or self.folded.get(word[:-2].lower())
        if stem is None or not stem.pronunciation:
            return None
        ending = _possessive(stem.pronunciation) if stem.is_ipa else "'s"
        return LexiconEntry(stem.pronunciation + ending, stem.is_ipa)


def _columns(entries: Mapping[str, LexiconEntry]) -> Columns:
    values = entries.values()
    return tuple(entries), tuple(entry.pronunciation for entry in values), bytes(entry.is_ipa for entry in values)


def _from_columns(exact: Columns, folded: Columns, phrases: Any, patterns: Any) -> UserLexicon:
    def entries(words: tuple[str, ...], pronunciations: tuple[str, ...], ipa: bytes) -> dict[str, LexiconEntry]:
        values = map(LexiconEntry, pronunciations, map(bool, ipa))
        return dict(zip(words, values, strict=True))

    return UserLexicon(entries(*exact), entries(*folded), phrases, patterns)


class LexiconFile:
    """A lexicon file, read again when it changes. If it is bad at the start, that is an error; if it turns bad later,
    the error is logged and the last good content stays in use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stamp = file_stamp(self.path)
        self._lexicon = self._read()

    def words(self) -> UserLexicon:
        """Return the current content."""
        with self._lock:
            stamp = file_stamp(self.path)
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._lexicon = self._read()
                    log.info("lexicon reloaded: %s", self.path)
                except InvalidInput as exc:
                    log.error("%s; the last good version stays in use", exc.message)
            return self._lexicon

    def _read(self) -> UserLexicon:
        file_type = self.path.suffix.lower().removeprefix(".")
        if file_type not in FILE_TYPES:
            raise InvalidInput(f"{self.path}: a lexicon is a .tsv, .json or .toml file", param="lexicon")
        try:
            return UserLexicon.of(parse_entries(self.path.read_text("utf-8-sig"), file_type))
        except (OSError, ValueError, RecursionError, InvalidInput) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else exc
            raise InvalidInput(f"cannot read {self.path}: {reason}", param="lexicon") from exc


def file_stamp(path: Path) -> tuple[int, int]:
    """Return modification time and size of a file; zeros if it does not exist."""
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def parse_entries(data: str, file_type: str) -> Mapping[str, str]:
    """Parse a file: "tsv" (word, tab, pronunciation; # starts a comment), "json" or "toml" (one table of words)."""
    if file_type == "tsv":
        return dict(_lines(data))
    if file_type == "json":
        import json

        table = json.loads(data)
    else:
        import tomllib

        table = tomllib.loads(data)
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise _invalid("it must be one table of words and their pronunciations")
    return table


def _lines(data: str) -> Iterator[tuple[str, str]]:
    for n, line in enumerate(data.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        word, tab, pronunciation = line.partition("\t")
        if not tab or "\t" in pronunciation.strip():
            raise _invalid(f"line {n}: write the word, one tab, and how it is said")
        yield word.strip(), pronunciation.strip()


_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*+")
_SPACELESS_SCRIPT = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]"
)  # Thai to Khmer, Chinese, Japanese
# Python's classes are of Unicode, RE2's of ASCII; by whether they stand in square brackets.
_CLASSES = {
    (r"\w", False): r"[\pL\pN_]",
    (r"\W", False): r"[^\pL\pN_]",
    (r"\w", True): r"\pL\pN_",
    (r"\d", False): r"\p{Nd}",
    (r"\d", True): r"\p{Nd}",
    (r"\D", False): r"\P{Nd}",
}
_TOKEN = re.compile(r"\\.|\[\^?\]?|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LinearPattern:
    """A regular expression that is searched in linear time (RE2). A \\b at its ends is one of Unicode."""

    regex: Any
    word_starts: bool
    word_ends: bool

    def search(self, text: str) -> re.Match[str] | None:
        return next(self.finditer(text), None)

    def finditer(self, text: str, pos: int = 0) -> Iterator[re.Match[str]]:
        for match in self.regex.finditer(text, pos):
            start, end = match.span()
            if (not self.word_starts or _is_boundary(text, start)) and (not self.word_ends or _is_boundary(text, end)):
                yield match


@lru_cache(maxsize=2 * MAX_PATTERNS)
def _matcher(source: str) -> LinearPattern:
    """Compile a pattern; raise re2.error if RE2 cannot."""
    tokens = _TOKEN.findall(source)
    at_edges = "|" not in tokens and len(tokens) > 2  # else RE2's own \b, of ASCII
    word_starts, word_ends = at_edges and tokens[0] == r"\b", at_edges and tokens[-1] == r"\b"
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MATCHER_BYTES
    regex = re2.compile("".join(_unicode(tokens[word_starts : len(tokens) - word_ends])), options)
    return LinearPattern(regex, word_starts, word_ends)


def _unicode(tokens: list[str]) -> Iterator[str]:
    """Yield the parts of a pattern with \\w and \\d as classes of Unicode."""
    in_class = False
    for token in tokens:
        if token[0] == "\\":
            yield _CLASSES.get((token, in_class), token)
            continue
        if token[0] == "[" and not in_class:
            in_class = True
        elif token[-1] == "]":
            in_class = False
        yield token


def _is_boundary(text: str, at: int) -> bool:
    before, after = (bool(_WORD_CHARACTER.match(char)) for char in (text[at - 1 : at] if at else "", text[at : at + 1]))
    return before != after


_WORD_CHARACTER = re.compile(r"\w")


def _always(entry: LexiconEntry, _: str) -> LexiconEntry:
    return entry


def _entry(word: str, pronunciation: str) -> LexiconEntry:
    is_text = isinstance(pronunciation, str)
    if not word.strip() or len(word) > MAX_LENGTH or not is_text or len(pronunciation) > MAX_LENGTH:
        raise _invalid(f"{str(word)[:40]!r}: a word and how it is said have 1 to {MAX_LENGTH} characters")
    pronunciation = pronunciation.strip()
    if not _in_slashes(pronunciation):
        if not pronunciation or PLACEHOLDER in pronunciation:
            raise _invalid(f"{word!r}: write how it is said, as /IPA/ or in other words")
        return LexiconEntry(pronunciation, is_ipa=False)
    ipa = pronunciation[1:-1].strip().replace("g", "ɡ")  # keyboards have the Latin letter, IPA another
    if not vocab.SYMBOLS.keys() >= set(ipa):
        ipa = decompose_ipa(ipa)
    if unknown := vocab.split_known(ipa)[1]:
        raise _invalid(f"{word!r}: Kokoro has no symbol for {' '.join(dict.fromkeys(unknown))}")
    if not ipa.strip("".join(vocab.PUNCTUATION) + " ˈˌ"):
        raise _invalid(f"{word!r}: there is no sound between the slashes")
    return LexiconEntry(ipa, is_ipa=True)


def _in_slashes(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "/"


def _pattern(word: str) -> str | None:
    """Return the regular expression between slashes; raise InvalidInput if it is none that RE2 can search."""
    if not _in_slashes(word):
        return None
    source = word[1:-1]
    try:
        matcher = _matcher(source)
    except re2.error as exc:
        reason = exc.args[0].decode("utf-8", "replace") if exc.args and isinstance(exc.args[0], bytes) else exc
        raise _invalid(
            f"{word!r} is not a regular expression of the kind that takes linear time (RE2): {reason}"
        ) from None
    except UnicodeEncodeError:
        raise _invalid(f"{word!r} has half of a surrogate pair") from None
    if matcher.regex.search(""):
        raise _invalid(f"{word!r} must not match the empty string")
    return source


def _phrase_pattern(phrase: str) -> str:
    """Return the pattern of several words: any case if they are in lower case, any space between them."""
    source = r"\s+".join(map(re.escape, phrase.split()))
    if phrase == phrase.lower():
        source = f"(?i:{source})"
    first, last = phrase.strip()[0], phrase.strip()[-1]
    start = r"(?<!\w)" if first.isalnum() and not _SPACELESS_SCRIPT.match(first) else ""
    end = r"(?!\w)" if last.isalnum() and not _SPACELESS_SCRIPT.match(last) else ""
    return f"{start}{source}{end}"


def _possessive(ipa: str) -> str:
    """Return the sound of an English 's behind a word."""
    last = ipa.rstrip("ː ")[-1:]
    return "ᵻz" if last in "szʃʒʧʤ" else "s" if last in "ptkfθ" else "z"


def _invalid(reason: str) -> InvalidInput:
    return InvalidInput(f"the lexicon {reason}" if reason.startswith("has ") else f"lexicon, {reason}", param="lexicon")
