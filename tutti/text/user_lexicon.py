"""A listener's own pronunciations, for one request or from a file: words and patterns, as IPA or respelled."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tutti.errors import InvalidInput
from tutti.text import vocab
from tutti.text.aligned_text import AlignedText, Said
from tutti.text.clean import OBJECT
from tutti.text.marks import symbols

MAX_WORDS = 20_000
MAX_PATTERNS = 100
MAX_PHRASES = 400
MAX_LENGTH = 200  # of a word, a pattern, or what is said


@dataclass(frozen=True, slots=True)
class Sound:
    """How a word is said: IPA, or other words."""

    said: str
    ipa: bool


@dataclass(frozen=True, slots=True)
class UserLexicon:
    """Words with their sounds. A word in lower case is found in any case; one with capitals only as it is written."""

    exact: Mapping[str, Sound]
    folded: Mapping[str, Sound]
    phrases: tuple[tuple[str, Sound], ...] = ()  # what is more than one word, or of a script without spaces
    patterns: tuple[tuple[str, Sound], ...] = ()  # regular expressions

    @classmethod
    def of(cls, entries: Mapping[str, str]) -> "UserLexicon":
        """From `{"word": "/ipa/", "word": "other words", "/pattern/": …}`. Raises InvalidInput with the bad entry."""
        if len(entries) > MAX_WORDS:
            raise _wrong(f"has {len(entries)} entries; at most {MAX_WORDS:,} fit")
        exact: dict[str, Sound] = {}
        folded: dict[str, Sound] = {}
        phrases: dict[str, Sound] = {}
        patterns: dict[str, Sound] = {}
        for word, said in entries.items():
            sound = _sound(word, said)
            if (pattern := _pattern(word)) is not None:
                patterns[pattern] = sound
            elif not _WORD.fullmatch(word) or _SPACELESS.search(word):
                phrases[_phrase(word)] = sound
            elif word == word.lower():
                folded[word] = sound
            else:
                exact[word] = sound
        if len(patterns) > MAX_PATTERNS:
            raise _wrong(f"has {len(patterns)} patterns; at most {MAX_PATTERNS} fit")
        if len(phrases) > MAX_PHRASES:
            raise _wrong(f"has {len(phrases)} entries of several words; at most {MAX_PHRASES} fit")
        longest_first = sorted(phrases.items(), key=lambda phrase: -len(phrase[0]))
        return cls(exact, folded, tuple(longest_first), tuple(patterns.items()))

    def __or__(self, over: "UserLexicon") -> "UserLexicon":
        """Both; where they differ, the second is right."""
        return UserLexicon(
            {**self.exact, **over.exact},
            {**self.folded, **over.folded},
            (*over.phrases, *self.phrases),
            (*over.patterns, *self.patterns),
        )

    def put(self, spoken: AlignedText) -> tuple[AlignedText, dict[int, str]]:
        """A sentence in which own words are OBJECTs with their IPA, or respelled; ties kept."""
        given: dict[int, str] = {}

        def said(find: Callable[[str], Sound | None], match: re.Match[str]) -> Said:
            sound = find(match[0])
            if sound is None or not match[0] or OBJECT in match[0]:
                return None
            if not sound.ipa:
                return sound.said
            given[spoken.span(*match.span())[0]] = sound.said
            return OBJECT

        for source, sound in (*self.patterns, *self.phrases):
            spoken = spoken.sub(re.compile(source), partial(said, partial(_always, sound)))
        if self.exact or self.folded:
            spoken = spoken.sub(_WORD, partial(said, self._of))
        return spoken, given

    def _of(self, word: str) -> Sound | None:
        """Of the word, or of the word whose possessive it is."""
        if found := self.exact.get(word) or self.folded.get(word.lower()):
            return found
        if not word.endswith("'s"):
            return None
        owner = self.exact.get(word[:-2]) or self.folded.get(word[:-2].lower())
        if owner is None or not owner.said:
            return None
        return Sound(owner.said + (_possessive(owner.said) if owner.ipa else "'s"), owner.ipa)


_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*+")
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NESTED = re.compile(r"\[\^?\[|--|&&|~~|\|\|")  # Python will read these otherwise one day, and warns
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")


def _always(sound: Sound, _: str) -> Sound:
    return sound


def _sound(word: str, said: str) -> Sound:
    if not word.strip() or len(word) > MAX_LENGTH or not isinstance(said, str) or len(said) > MAX_LENGTH:
        raise _wrong(f"{str(word)[:40]!r}: a word and how it is said have 1 to {MAX_LENGTH} characters")
    said = said.strip()
    if not (len(said) > 2 and said[0] == said[-1] == "/"):
        if not said or OBJECT in said:
            raise _wrong(f"{word!r}: write how it is said, as /IPA/ or in other words")
        return Sound(said, ipa=False)
    ipa = symbols(said[1:-1]).replace("g", "ɡ")  # the Latin letter is what keyboards have
    if unknown := vocab.known(ipa)[1]:
        raise _wrong(f"{word!r}: Kokoro has no symbol for {' '.join(dict.fromkeys(unknown))}")
    if not ipa.strip("".join(vocab.PUNCTUATION) + " ˈˌ"):
        raise _wrong(f"{word!r}: there is no sound between the slashes")
    return Sound(ipa, ipa=True)


def _pattern(word: str) -> str | None:
    """What stands between slashes, if it is a regular expression that cannot run away."""
    if not (len(word) > 2 and word[0] == word[-1] == "/"):
        return None
    source = word[1:-1]
    if _NESTED.search(source):
        raise _wrong(f"{word!r} is no regular expression: sets of sets are not known")
    try:
        compiled = re.compile(source)
    except (re.error, OverflowError, RecursionError) as exc:
        raise _wrong(f"{word!r} is no regular expression: {exc}") from None
    signs = _CLASS.sub("x", _ESCAPED.sub(lambda escaped: "1" if escaped[1].isdigit() else "x", source))
    signs = re.sub(r"\(\?(?:[:=!]|<[=!]|P<\w+>|[aimsux]+\))", "(", signs)
    loops = len(re.findall(r"[*+{]", signs))
    if loops > 1 or signs.count("|") + signs.count("?") > 8 or re.search(r"\)[*+{?]|\(\?", signs) or compiled.match(""):
        raise _wrong(
            f"{word!r} is too free: one of * + {{}} and eight of ? | at most, none of them behind a group, "
            "and it must not match nothing"
        )
    return source


def _phrase(words: str) -> str:
    """Several words, in any case where they are written in lower case, with any space between."""
    source = r"\s+".join(map(re.escape, words.split()))
    if words == words.lower():
        source = f"(?i:{source})"
    start = r"(?<!\w)" if words.strip()[0].isalnum() and not _SPACELESS.match(words.strip()[0]) else ""
    end = r"(?!\w)" if words.strip()[-1].isalnum() and not _SPACELESS.match(words.strip()[-1]) else ""
    return f"{start}{source}{end}"


def _possessive(ipa: str) -> str:
    """The sound of an English 's behind a word."""
    last = ipa.rstrip("ː ")[-1:]
    return "ᵻz" if last in "szʃʒʧʤ" else "s" if last in "ptkfθ" else "z"


def _wrong(why: str) -> InvalidInput:
    return InvalidInput(f"the lexicon {why}" if why.startswith("has ") else f"lexicon, {why}", param="lexicon")


def parsed(data: str, kind: str) -> Mapping[str, str]:
    """The entries of a file: "tsv" (word, tab, sound; # begins a comment), "json" or "toml" (a table of words)."""
    if kind == "tsv":
        return dict(_lines(data))
    if kind == "json":
        import json

        table = json.loads(data)
    else:
        import tomllib

        table = tomllib.loads(data)
    if not isinstance(table, dict) or not all(isinstance(said, str) for said in table.values()):
        raise _wrong("it must be one table of words and how each is said")
    return table


def _lines(data: str) -> Iterator[tuple[str, str]]:
    for n, line in enumerate(data.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        word, tab, said = line.partition("\t")
        if not tab or "\t" in said.strip():
            raise _wrong(f"line {n}: write the word, one tab, and how it is said")
        yield word.strip(), said.strip()
