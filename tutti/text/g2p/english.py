"""English: tokens, tags, dictionary, unknown words; from plain words to a Reading."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tutti.text import vocab
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading, Word
from tutti.text.g2p import homographs, tagger
from tutti.text.g2p import phonology as sounds
from tutti.text.g2p import suffixes as parts
from tutti.text.g2p.alphabet import ALIASES, FOLDS, NAMES, SAID
from tutti.text.g2p.lexicon import ACCENTS, Entry, Lexicon
from tutti.text.g2p.neural import Letters
from tutti.text.g2p.overrides import Names
from tutti.text.g2p.punctuation import CLAUSE_ENDS, between

OBJECT = "\ufffc"  # stands for a word whose IPA is given

_LETTER = r"[^\W\d_\u0300-\u036f][\u0300-\u036f]*"
_CLIPPED = r"(?:(?<!\w)['’](?i:(?=(?:em|tis|twas|cause|til|bout|n)\b)))?"  # 'em, 'tis
_TOKEN = re.compile(
    r"(?P<initials>(?<![^\W_])(?:[A-Za-z]\.){2,}(?![^\W_]))"
    rf"|(?P<word>{_CLIPPED}(?:{_LETTER})+(?:['’-](?:{_LETTER})+)*(?:(?<=s)['’])?)"
    rf"|(?P<digit>\d)|(?P<object>{OBJECT})|(?P<symbol>[{re.escape(''.join(SAID))}])"
)
_LONG_DRAWN = re.compile(r"(.)\1{2,}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VOWEL_LETTER = re.compile(r"[aeiouy]", re.IGNORECASE)
_CONTEXTUAL = {"a", "an", "am", "by", "in", "the", "to", "used", "that", "that's", *homographs.RULES}
_EMPHATIC = frozenset(
    {"am", "as", "be", "he", "in", "is", "me", "or", "at", "on", "to", "no", "so", "we", "my", "if"}
) | {*("do", "go", "by", "of", "an", "up", "the", "not")}  # short words in capitals that are stressed, not spelled


class English:
    """One accent's reader. Knows nothing of the sentence before; safe to share between threads."""

    def __init__(self, lexicon: Lexicon, letters: Letters, code: str) -> None:
        self.british = code == "en-gb"
        self.code = code
        self._lexicon = lexicon
        self._letters = letters
        self._names = Names(self.british)
        self._entry = lru_cache(maxsize=1 << 15)(self._look_up)
        self._alone = lru_cache(maxsize=1 << 15)(self._without_context)

    @classmethod
    def load(cls, home: Path, code: str) -> "English":
        return cls(Lexicon.load(home, ACCENTS[code]), Letters(code), code)

    def read(self, spoken: AlignedText, given: Mapping[int, str] = {}) -> Reading:
        """A sentence of plain words as words with phonemes."""
        text = spoken.text
        found = list(_TOKEN.finditer(text))
        gaps, unsaid = between(text, [match.span() for match in found])
        tokens = [match.group() for match in found]
        shouted = _shouted(tokens)
        words, places = _context(tokens, [gap.after for gap in gaps[1:]])
        phonemes: list[str] = []
        lost: tuple[str, ...] = ()
        before_vowel: bool | None = None  # None: nothing follows in this clause
        for k in range(len(tokens) - 1, -1, -1):
            if not CLAUSE_ENDS.isdisjoint(gaps[k + 1].after):
                before_vowel = None
            match = found[k]
            if match.lastgroup == "object":
                sound, unknown = vocab.known(given.get(spoken.starts[match.start()], ""))
            else:
                token = tokens[k].lower() if shouted and tokens[k] != "I" else tokens[k]
                sound, unknown = vocab.known(self._say(token, match.lastgroup or "", words, places[k], before_vowel))
                if not sound:
                    unknown = tuple(symbol for symbol in tokens[k] if not symbol.isspace())
            lost = unknown + lost
            phonemes.append(sound)
            before_vowel = _opens_with_vowel(sound, before_vowel)
        phonemes.reverse()
        said: list[Word] = []
        for match, sound, gap, following in zip(found, phonemes, gaps, gaps[1:], strict=False):
            if sound:
                said.append(Word(sound, spoken.span(*match.span()), gap.before, following.after))
        return Reading(tuple(said), (*lost, *unsaid))

    def _say(self, token: str, kind: str, words: Sequence[str], place: int, before_vowel: bool | None) -> str:
        """Phonemes of one token in its sentence; "" where nobody could say it."""
        if kind == "symbol":
            token = SAID[token]
        elif kind == "digit":
            token = NAMES[str(unicodedata.digit(token))]
        sound = self._alone(token)
        return sounds.as_written(sound if sound is not None else self._in_context(token, words, place, before_vowel))

    def _look_up(self, word: str) -> Entry | None:
        """What a person checked first: gold, then our names; what a machine listed only after them."""
        if firm := self._names.firm(word):
            return firm
        entry = self._lexicon.get(word)
        return entry if entry and entry.gold else self._names.get(word) or entry

    def _in_context(self, token: str, words: Sequence[str], place: int, before_vowel: bool | None) -> str:
        word = words[place]
        match word:
            case "a":
                starts = place == 0 or not words[place - 1]  # "A dog", but "plan A"
                return "ɐ" if (token == "a" or starts) and tagger.article(words, place) else "ˈA"
            case "an":
                return "ɐn"
            case "am":
                if token == "AM" and words[:place][-1:] != ["i"]:  # ten AM
                    return self._spelled(token)
                return "ɐm" if token == "am" and before_vowel is not None else self._cased(token, self._listed("am"))
            case "the":
                return "ði" if before_vowel else "ðə"
            case "to":
                return self._listed("to") if before_vowel is None else "tʊ" if before_vowel else "tə"
            case "in":
                return "ˈɪn" if before_vowel is None or tagger.particle(words, place) else "ɪn"
            case "used":
                return self._used(words, place)
            case "that's":
                that = self._entry("that")
                return sounds.plural(that.say("DT", alone=False), self.british) if that else ""
        sound = homographs.choose(words, place, self.british)
        if sound is None:
            entry = self._entry(token) or self._entry(word)
            if entry is None:
                return ""
            tag = tagger.tag(words, place, frozenset(entry.by_tag))
            sound = entry.say(tag, alone=before_vowel is None) or entry.by_tag["DEFAULT"]
        return self._cased(token, sound)

    def _used(self, words: Sequence[str], place: int) -> str:
        entry = self._entry("used")
        if entry is None:
            return ""
        to = words[place + 1 : place + 2] == ["to"]
        return entry.say("VBD" if to and not tagger.passive(words, place) else "VBN", alone=False)

    def _without_context(self, token: str) -> str | None:
        """The sound of a token that is the same everywhere, or None where the sentence decides."""
        word = _folded(token)
        lower = word.lower()
        if word == "I":
            return "ˌI"
        if "." in word:
            return self._spelled(word)
        if token.lower() in ALIASES:
            return ALIASES[token.lower()][self.british]
        if len(word) == 1 and word.isascii() and lower != "a":
            return self._spelled(word)
        acronym = self._acronym(word) if word.isascii() and len(word) > 1 and word[:2].isupper() else None
        if acronym is not None:
            return acronym
        if lower in _CONTEXTUAL:
            return None
        entry = self._entry(word)
        if entry is None and (humps := self._humps(word)):
            return humps
        entry = entry or self._entry(lower)
        if entry is None:
            return self._unlisted(word)
        return None if len(entry.by_tag) > 1 else self._cased(word, entry.by_tag["DEFAULT"])

    def _acronym(self, word: str) -> str | None:
        """Capitals that are letters (URL, US, PCs) or a name of their own (NASA); None for a shouted word."""
        ending = "'s" if word.endswith("'s") else "s" if word.endswith("s") else ""
        stem = word.removesuffix(ending)
        if not (stem.isupper() and stem.isalpha() and len(stem) > 1):
            return None
        lower = stem.lower()
        if lower in _EMPHATIC:
            return None
        entry = self._lexicon.find(stem)
        if entry and not ending and "NOUN" not in entry.by_tag:
            return entry.by_tag["DEFAULT"]
        listed = self._names.get(stem) or self._lexicon.get(lower)
        if entry is None and listed and (listed.gold or len(stem) > 4):
            return None
        if entry is None and len(stem) > 5 and _VOWEL_LETTER.search(stem):
            return None
        sound = self._spelled(stem) if entry is None or "NOUN" in entry.by_tag else entry.by_tag["DEFAULT"]
        return sounds.plural(sound, self.british) if ending and sound else sound

    def _unlisted(self, word: str) -> str:
        """The sound of a word that the dictionary lacks: its parts, its letters, or a good guess."""
        sound = parts.inflected(word, self._known, self.british) or parts.inflected(
            word.lower(), self._known, self.british
        )
        if sound:
            return sound
        if "-" in word:
            return self._compound(word.split("-"))
        lower = word.lower()
        for shorter in (_LONG_DRAWN.sub(r"\1\1", lower), _LONG_DRAWN.sub(r"\1", lower)):  # "shhh", "nooo"
            if shorter != lower and (shorter in ALIASES or self._known(shorter)):
                return self._alone(shorter) or self._listed(shorter)
        plain = "".join(letter for letter in lower if "a" <= letter <= "z")
        if not plain:
            return "".join(self._listed(NAMES[letter]) for letter in lower if letter in NAMES)
        if not _VOWEL_LETTER.search(plain):
            return self._spelled(plain)
        return self._letters.guess(plain)

    def _humps(self, word: str) -> str | None:
        """camelCase, where every hump is a word or a letter in front of one."""
        humps = _CAMEL.split(word)
        if len(humps) < 2 or not all(self._entry(hump) or hump.isupper() for hump in humps) or len(humps[-1]) < 2:
            return None
        return self._compound(humps)

    def _compound(self, pieces: Sequence[str]) -> str:
        said = [self._piece(piece, i == 0) for i, piece in enumerate(pieces) if piece]
        for i in range(len(pieces) - 2, 0, -1):
            if pieces[i].lower() == "to":
                said[i] = "tʊ" if _opens_with_vowel(said[i + 1], False) else "tə"
        if len(said) == 2 and len(pieces[0]) == 1:
            return said[0] + sounds.demoted(said[1])
        return sounds.joined(said)

    def _piece(self, piece: str, first: bool) -> str:
        lower = piece.lower()
        if first and lower in parts.PREFIXES:
            return parts.PREFIXES[lower][self.british]
        return parts.WEAK.get(lower) or self._alone(piece) or self._listed(lower)

    def _known(self, word: str) -> str | None:
        entry = self._entry(word)
        return entry.by_tag["DEFAULT"] or None if entry else None

    def _listed(self, word: str) -> str:
        return self._known(word) or ""

    def _spelled(self, word: str) -> str:
        names = [self._listed(letter.upper()) for letter in word if letter.isalpha()]
        return sounds.spelled([name for name in names if name] or [""])

    @staticmethod
    def _cased(token: str, sound: str) -> str:
        """Capitals lend a stress to a word that has none."""
        if token == token.lower():
            return sound
        if token == token.upper():
            return sounds.emphasised(sound)
        return sounds.with_stress(sound, sounds.SECONDARY)


_HEARD = sounds.VOWELS | sounds.CONSONANTS


def _opens_with_vowel(phonemes: str, otherwise: bool | None) -> bool | None:
    return next((symbol in sounds.VOWELS for symbol in phonemes if symbol in _HEARD), otherwise)


def _folded(token: str) -> str:
    """Without accents: "café" as "cafe"."""
    if token.isascii():
        return token
    token = "".join(FOLDS.get(letter, letter) for letter in token.replace("’", "'"))
    return "".join(c for c in unicodedata.normalize("NFKD", token) if not unicodedata.combining(c))


def _shouted(tokens: Sequence[str]) -> bool:
    """Whether the sentence is written in capitals throughout, so that capitals mean nothing."""
    letters = "".join(token for token in tokens if len(token) > 1)
    return letters.isupper() and sum(len(token) > 1 for token in tokens) > 2


def _context(tokens: Sequence[str], gaps: Sequence[str]) -> tuple[list[str], list[int]]:
    """The words in lower case with "" for every pause, and where each token stands among them."""
    words: list[str] = []
    places: list[int] = []
    for token, gap in zip(tokens, gaps, strict=True):
        places.append(len(words))
        words.append(_folded(token).lower())
        if not CLAUSE_ENDS.isdisjoint(gap):
            words.append("")
    return words, places
