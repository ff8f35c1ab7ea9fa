"""English: from plain words to phonemes by dictionary, part of speech and, for unknown words, a neural network."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tutti.text import vocab
from tutti.text.aligned_text import LETTER_A, PLACEHOLDER, AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.g2p import capitals, french, homographs, phonology, suffixes, tagger
from tutti.text.g2p.alphabet import ALIASES, FOLDS, LETTER_NAMES, SIGN_NAMES
from tutti.text.g2p.lexicon import ACCENTS, DictionaryEntry, Lexicon
from tutti.text.g2p.neural import NeuralG2P
from tutti.text.g2p.overrides import Overrides
from tutti.text.g2p.punctuation import CLAUSE_ENDS, gaps_between
from tutti.text.split import MAX_WORD

_LETTER = r"[^\W\d_\u0300-\u036f][\u0300-\u036f]*"
_LEADING_APOSTROPHE = r"(?:(?<!\w)['’](?i:(?=(?:em|tis|twas|cause|til|bout|n)\b)))?"  # 'em, 'tis
_TOKEN = re.compile(
    r"(?P<initials>(?<![^\W_])(?:[A-Za-z]\.){2,}(?![^\W_]))"
    rf"|(?P<word>{_LEADING_APOSTROPHE}(?:{_LETTER})+(?:['’-](?:{_LETTER})+)*(?:(?<=s)['’])?)"
    rf"|(?P<digit>\d)|(?P<placeholder>{PLACEHOLDER})|(?P<symbol>[{re.escape(''.join(SIGN_NAMES))}])"
)
_REPEATED_LETTER = re.compile(r"(.)\1{2,}")
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VOWEL_LETTER = re.compile(r"[aeiouy]", re.IGNORECASE)
_CONTEXT_DEPENDENT = {"a", "an", "am", "by", "in", "the", "to", "used", "that", "that's", *homographs.RULES}
_STRESSED_IN_CAPITALS = frozenset(
    {"am", "as", "be", "he", "in", "is", "me", "or", "at", "on", "to", "no", "so", "we", "my", "if"}
) | {*("do", "go", "by", "of", "an", "up", "the", "not")}  # short words in capitals that are stressed, not spelled out


class English:
    """G2P of one accent. Keeps no state between sentences; safe to share between threads."""

    def __init__(self, lexicon: Lexicon, neural: NeuralG2P, code: str) -> None:
        self.british = code == "en-gb"
        self.code = code
        self._lexicon = lexicon
        self._neural = neural
        self._overrides = Overrides(self.british)
        self._entry = lru_cache(maxsize=1 << 15)(self._look_up)
        self._context_free = lru_cache(maxsize=1 << 15)(self._pronounce_alone)

    @classmethod
    def load(cls, home: Path, code: str) -> "English":
        return cls(Lexicon.load(home, ACCENTS[code]), NeuralG2P(code), code)

    def pronounce(self, aligned: AlignedText, ipa_overrides: Mapping[int, str] = {}) -> Pronunciation:
        """Pronounce a sentence of plain words."""
        text = aligned.text
        matches = list(_TOKEN.finditer(text))
        gaps, unsaid = gaps_between(text, [match.span() for match in matches])
        tokens = [match.group() for match in matches]
        words, places = _context(tokens, [gap.after for gap in gaps[1:]])
        shouted = [capitals.is_shouted(tokens, k, self._is_ordinary) for k in range(len(tokens))]
        borrowed = french.phrase_sounds(words, self.british)
        phonemes: list[str] = []
        dropped: tuple[str, ...] = ()
        before_vowel: bool | None = None  # None: nothing follows in this clause
        for k in range(len(tokens) - 1, -1, -1):
            if not CLAUSE_ENDS.isdisjoint(gaps[k + 1].after):
                before_vowel = None
            match = matches[k]
            if match.lastgroup == "placeholder":
                sound, unknown = vocab.split_known(ipa_overrides.get(aligned.starts[match.start()], ""))
            else:
                token = self._without_capitals(tokens[k], words, places[k]) if shouted[k] else tokens[k]
                kind = match.lastgroup or ""
                sound, unknown = vocab.split_known(
                    borrowed.get(places[k]) or self._pronounce_token(token, kind, words, places[k], before_vowel)
                )
                if not sound:
                    unknown = tuple(symbol for symbol in tokens[k] if not symbol.isspace())
                elif not token.isascii():
                    unknown += _unsaid_letters(token)
            dropped = unknown + dropped
            phonemes.append(sound)
            before_vowel = _starts_with_vowel(sound, before_vowel)
        phonemes.reverse()
        phoneme_words: list[PhonemeWord] = []
        for match, sound, gap, following in zip(matches, phonemes, gaps, gaps[1:], strict=False):
            if sound:
                phoneme_words.append(PhonemeWord(sound, aligned.source(*match.span()), gap.before, following.after))
        return Pronunciation(tuple(phoneme_words), (*dropped, *unsaid))

    def listed(self, word: str) -> dict[str, str]:
        """Return the sounds of a word in the dictionary, by part of speech."""
        entry = self._entry(word) or self._entry(word.lower())
        return {tag: phonology.to_kokoro(sound) for tag, sound in entry.by_tag.items() if sound} if entry else {}

    def spelled(self, word: str) -> str:
        """Return the names of the letters of a word."""
        return phonology.to_kokoro(self._spell(_fold(word)[:MAX_WORD]))

    def guessed(self, word: str) -> str:
        """Return what the network makes of the letters of a word."""
        letters = "".join(letter for letter in _fold(word).lower() if "a" <= letter <= "z")
        return phonology.to_kokoro(self._neural.guess(letters[:MAX_WORD])) if letters else ""

    def _pronounce_token(
        self, token: str, kind: str, words: Sequence[str], place: int, before_vowel: bool | None
    ) -> str:
        """Return the phonemes of one token in its sentence; "" if it has none."""
        if kind == "symbol":
            token = SIGN_NAMES[token]
        elif kind == "digit":
            token = LETTER_NAMES[str(unicodedata.digit(token))]
        sound = self._context_free(token)
        return phonology.to_kokoro(sound if sound is not None else self._in_context(token, words, place, before_vowel))

    def _look_up(self, word: str) -> DictionaryEntry | None:
        """Find a word in, by rank: priority overrides, gold dictionary, other overrides, silver dictionary."""
        if entry := self._overrides.priority(word):
            return entry
        entry = self._lexicon.get(word)
        return entry if entry and entry.gold else self._overrides.get(word) or entry

    def _in_context(self, token: str, words: Sequence[str], place: int, before_vowel: bool | None) -> str:
        word = words[place]
        match word:
            case "a":
                starts = place == 0 or not words[place - 1]  # "A dog", but "plan A"
                spelled = token == "A" and len("".join(words[place + 1 : place + 2])) == 1  # A B C
                return "ɐ" if (token == "a" or starts) and tagger.article(words, place) and not spelled else "ˈA"
            case "an":
                return "ɐn"
            case "am":
                if token == "AM" and "i" not in (*words[:place][-1:], *words[place + 1 : place + 2]):  # ten AM
                    return self._spell(token)
                if token == "am" and before_vowel is not None:
                    return "ɐm"
                return self._stress_capitals(token, self._phonemes("am"))
            case "the":
                return "ði" if before_vowel else "ðə"
            case "to":
                return self._phonemes("to") if before_vowel is None else "tʊ" if before_vowel else "tə"
            case "in":
                return "ˈɪn" if before_vowel is None or tagger.particle(words, place) else "ɪn"
            case "used":
                return self._used(words, place)
            case "that's":
                that = self._entry("that")
                return phonology.add_plural(that.phonemes("DT", alone=False), self.british) if that else ""
        sound = homographs.choose(words, place, self.british)
        if sound is None:
            entry = self._entry(token) or self._entry(word)
            if entry is None:
                return ""
            tag = tagger.tag(words, place, frozenset(entry.by_tag))
            sound = entry.phonemes(tag, alone=before_vowel is None) or entry.by_tag["DEFAULT"]
        return self._stress_capitals(token, sound)

    def _used(self, words: Sequence[str], place: int) -> str:
        entry = self._entry("used")
        if entry is None:
            return ""
        to = words[place + 1 : place + 2] == ["to"]
        return entry.phonemes("VBD" if to and not tagger.passive(words, place) else "VBN", alone=False)

    def _pronounce_alone(self, token: str) -> str | None:
        """Return the phonemes of a token that do not depend on its sentence, or None if they do."""
        word = _fold(token)
        lower = word.lower()
        if word == "I":
            return "ˌI"
        if "." in word:
            return self._spell(word)
        if token.lower() in ALIASES:
            return ALIASES[token.lower()][self.british]
        if not token.isascii() and (sound := french.word_sound(token, self.british)):
            return sound
        if len(word) == 1 and word.isascii() and lower != "a":
            return self._spell(word)
        acronym = self._acronym(word) if word.isascii() and len(word) > 1 and word[:2].isupper() else None
        if acronym is not None:
            return acronym
        if lower in _CONTEXT_DEPENDENT:
            return None
        entry = self._entry(word)
        if entry is None and (sound := self._camel_case(word)):
            return sound
        entry = entry or self._entry(lower)
        if entry is None:
            return self._guess(word)
        return None if len(entry.by_tag) > 1 else self._stress_capitals(word, entry.by_tag["DEFAULT"])

    def _is_ordinary(self, token: str) -> bool:
        """Tell whether a token in capitals is a word of the dictionary and no acronym."""
        entry = self._entry(token.lower())
        return entry is not None and entry.gold and self._lexicon.find(token) is None

    def _without_capitals(self, token: str, words: Sequence[str], place: int) -> str:
        """Return a token of a shouted sentence in lower case, unless it is an acronym there as well."""
        stem, ending = (token[:-2], "'s") if token.endswith("'S") else (token, "")
        acronym = self._lexicon.find(stem)
        if acronym and "NOUN" in acronym.by_tag:
            spelled = capitals.is_acronym(words, place)
        else:
            entry = self._entry(stem.lower())
            entry = entry if entry and entry.gold else self._without_s(stem) or entry
            spelled = entry is None or not (entry.gold or len(stem) > 4)
        if token == "I" or (spelled and len(stem) > 1 and stem.isascii() and stem.isalpha()):
            return stem + ending
        return token.lower()

    def _without_s(self, word: str) -> DictionaryEntry | None:
        """Return the entry of a shouted word without its -S or -ES, if that is no acronym: WINS, HITS, ADS."""
        if not word.endswith("S") or word.endswith("SS"):
            return None
        stems: tuple[str, ...] = (word[:-1], word.removesuffix("ES"), word.removesuffix("IES") + "Y")
        words = (
            one for one in stems if len(one) > 1 and one != word and (word == "ADS" or not self._lexicon.find(one))
        )
        return next(filter(None, (self._entry(one.lower()) for one in words)), None)

    def _acronym(self, word: str) -> str | None:
        """Pronounce capitals that are spelled out (URL, US, PCs) or a name (NASA); None for an emphasised word."""
        ending = "'s" if word.endswith("'s") else "s" if word.endswith("s") else ""
        stem = word.removesuffix(ending)
        if not (stem.isupper() and stem.isalpha() and len(stem) > 1):
            return None
        lower = stem.lower()
        if lower in _STRESSED_IN_CAPITALS:
            return None
        entry = self._lexicon.find(stem)
        if entry and not ending and "NOUN" not in entry.by_tag:
            return entry.by_tag["DEFAULT"]
        listed = self._overrides.get(stem) or self._lexicon.get(lower)
        if entry is None and listed and (listed.gold or len(stem) > 4):
            return None
        if entry is None and len(stem) > 5 and _VOWEL_LETTER.search(stem):
            return None
        sound = self._spell(stem) if entry is None or "NOUN" in entry.by_tag else entry.by_tag["DEFAULT"]
        return phonology.add_plural(sound, self.british) if ending and sound else sound

    def _guess(self, word: str) -> str:
        """Return the phonemes of a word that the dictionary lacks: from its parts, its letters, or the network."""
        for spelling in (word, word.lower()):
            if sound := suffixes.inflect(spelling, self._listed, self.british):
                return sound
        if "-" in word:
            return self._compound(word.split("-"))
        lower = word.lower()
        for shorter in (_REPEATED_LETTER.sub(r"\1\1", lower), _REPEATED_LETTER.sub(r"\1", lower)):  # "shhh", "nooo"
            if shorter != lower and (shorter in ALIASES or self._listed(shorter)):
                return self._context_free(shorter) or self._phonemes(shorter)
        plain = "".join(letter for letter in lower if "a" <= letter <= "z")
        if not plain:
            return "".join(self._phonemes(LETTER_NAMES[letter]) for letter in lower if letter in LETTER_NAMES)
        if not _VOWEL_LETTER.search(plain):
            return self._spell(plain)
        # In parts: a thousand letters between apostrophes are one word, and would take half a second.
        return "".join(self._neural.guess(plain[n : n + MAX_WORD]) for n in range(0, len(plain), MAX_WORD))

    def _camel_case(self, word: str) -> str | None:
        """Pronounce camelCase if every part is a word or capital letters; else None."""
        parts = _CAMEL_CASE.split(word)
        if len(parts) < 2 or not all(self._entry(part) or part.isupper() for part in parts) or len(parts[-1]) < 2:
            return None
        return self._compound(parts)

    def _compound(self, parts: Sequence[str]) -> str:
        sounds = [self._compound_part(part, i == 0) for i, part in enumerate(parts) if part]
        for i in range(len(parts) - 2, 0, -1):
            if parts[i].lower() == "to":
                sounds[i] = "tʊ" if _starts_with_vowel(sounds[i + 1], False) else "tə"
        if len(sounds) == 2 and len(parts[0]) == 1:
            return sounds[0] + phonology.demote(sounds[1])
        return phonology.join_compound(sounds)

    def _compound_part(self, part: str, first: bool) -> str:
        lower = part.lower()
        if first and part == "A":  # A-level
            return ALIASES[LETTER_A][self.british]
        if first and lower in suffixes.PREFIXES:
            return suffixes.PREFIXES[lower][self.british]
        return suffixes.WEAK.get(lower) or self._context_free(part) or self._phonemes(lower)

    def _listed(self, word: str) -> str | None:
        """Return the default phonemes of a word in the dictionary."""
        entry = self._entry(word)
        return entry.by_tag["DEFAULT"] or None if entry else None

    def _phonemes(self, word: str) -> str:
        """Return the default phonemes of a word, "" if it is not in the dictionary."""
        return self._listed(word) or ""

    def _spell(self, word: str) -> str:
        names = [self._phonemes(letter.upper()) for letter in word if letter.isalpha()]
        return phonology.join_letters([name for name in names if name] or [""])

    @staticmethod
    def _stress_capitals(token: str, sound: str) -> str:
        """Add a stress to a word in capitals that has none."""
        if token == token.lower():
            return sound
        if token == token.upper():
            return phonology.emphasise(sound)
        return phonology.with_stress(sound, phonology.SECONDARY)


_SOUNDS = phonology.VOWELS | phonology.CONSONANTS


def _starts_with_vowel(phonemes: str, otherwise: bool | None) -> bool | None:
    return next((symbol in phonology.VOWELS for symbol in phonemes if symbol in _SOUNDS), otherwise)


def _unsaid_letters(token: str) -> tuple[str, ...]:
    """Return the letters of other alphabets in a word, which have no sound there; a Greek letter alone has its name."""
    letters = [letter for letter in _fold(token) if letter.isalpha() and letter != LETTER_A]
    mixed = any(map(str.isascii, letters))
    return tuple(one for one in letters if not one.isascii() and (mixed or one.lower() not in LETTER_NAMES))


def _fold(token: str) -> str:
    """Remove accents: "café" becomes "cafe"."""
    if token.isascii():
        return token
    token = "".join(FOLDS.get(letter, letter) for letter in token.replace("’", "'"))
    return "".join(c for c in unicodedata.normalize("NFKD", token) if not unicodedata.combining(c))


def _context(tokens: Sequence[str], gaps: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the words in lower case with "" for every pause, and the index of each token among them."""
    words: list[str] = []
    places: list[int] = []
    for token, gap in zip(tokens, gaps, strict=True):
        places.append(len(words))
        words.append(_fold(token).lower())
        if not CLAUSE_ENDS.isdisjoint(gap):
            words.append("")
    return words, places
