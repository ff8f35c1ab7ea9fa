"""SSML, the part of it that Kokoro can follow, rewritten as text with marks that keeps its ties to the original.

No entity but the five of XML and character numbers, no declarations, no depth without end: nothing can be made to grow.
"""

import math
import re
from dataclasses import dataclass, replace

from tutti.errors import InvalidInput, TuttiError
from tutti.text.aligned_text import AlignedText, Span
from tutti.text.marks import LONGEST_PAUSE_S, MAX_PITCH, MAX_RATE, MIN_RATE

MAX_DEPTH = 32
MAX_DOCUMENT = 100_000  # characters: a document is read as a whole, plain text piece by piece
RATES = {"x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.25, "x-fast": 1.5}
PITCHES = {"x-low": -6.0, "low": -3.0, "medium": 0.0, "default": 0.0, "high": 3.0, "x-high": 6.0}
BREAKS_S = {"none": 0.0, "x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 1.0, "x-strong": 1.5}
KNOWN = ("speak", "p", "s", "break", "voice", "lang", "prosody", "phoneme", "sub")


def is_ssml(text: str) -> bool:
    """Whether the text says of itself that it is SSML; a stray < does not make it so."""
    return _ROOT.match(text) is not None


def marked(text: str) -> AlignedText:
    """The same in plain text and marks. Raises InvalidInput with line and column where it is not well formed."""
    if len(text) > MAX_DOCUMENT:
        raise InvalidInput(
            f"SSML of {len(text):,} characters is too long: send documents of up to {MAX_DOCUMENT:,}, or plain text",
            param="input",
        )
    return _Document(text).read()


@dataclass(frozen=True, slots=True)
class _Manner:
    rate: float = 1.0
    pitch: float = 0.0
    voice: str = ""
    language: str = ""

    def marks(self) -> str:
        """The whole manner, so that it stands alone whatever came before."""
        voice = f"[voice:{self.voice}]" if self.voice else "[/voice]"
        language = f"[lang:{self.language}]" if self.language else ""
        return f"[rate:{self.rate:.4f}][pitch:{self.pitch:+.4f}]{voice}{language}"


@dataclass(frozen=True, slots=True)
class _Open:
    """An element whose end has not come yet."""

    name: str
    at: int  # of its tag
    inside: int  # where its content begins
    manner: _Manner  # of what comes after it
    said: str | None = None  # instead of its content


_ROOT = re.compile(r"\ufeff?\s*(?:<\?xml[^<>]{0,200}\?>\s*)?(?:<!--(?:[^-]|-(?!->))*+-->\s*)*<speak(?=[\s/>])")
_NAME = r"[A-Za-z_][\w.:-]{0,60}+"
_ATTRIBUTE = re.compile(rf"\s++({_NAME})\s*+=\s*+(?:\"([^\"<]*+)\"|'([^'<]*+)')")
_TAG = re.compile(
    rf"<(?P<close>/)?(?P<name>{_NAME})"
    rf"(?P<attributes>(?:\s++{_NAME}\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+)\s*+(?P<empty>/)?>"
)
_SKIPPED = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9A-Fa-f]{1,6}));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_BLANKS = str.maketrans("\n\r\t\x0b\x0c\x85\u2028\u2029", " " * 8)
_TIME = re.compile(r"\+?(\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})(ms|s)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})", re.ASCII)
_UNSAYABLE = re.compile(r"[/()\[\]\n]")


class _Document:
    """The text that is read, what has become of it, and the elements that are open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.open: list[_Open] = []
        self.manner = _Manner()

    def read(self) -> AlignedText:
        text, at, ended = self.text, 0, False
        while at < len(text):
            if text[at] != "<":
                stop = text.find("<", at)
                stop = len(text) if stop < 0 else stop
                if self.open:
                    self._characters(at, stop)
                elif text[at:stop].strip("\ufeff \t\r\n"):
                    raise self._wrong(at, "there is text outside of <speak>")
                at = stop
            elif skipped := _SKIPPED.match(text, at):
                at = skipped.end()
            elif cdata := _CDATA.match(text, at):
                if not self.open:
                    raise self._wrong(at, "there is text outside of <speak>")
                self._add(cdata[1].translate(_BLANKS), *cdata.span(1))
                at = cdata.end()
            elif tag := _TAG.match(text, at):
                if not self.open and (ended or tag["close"] or tag["name"] != "speak"):
                    raise self._wrong(at, "there must be one <speak> around everything")
                self._tag(tag)
                ended = not self.open
                at = tag.end()
            elif text.startswith("<!", at) and not text.startswith(("<!--", "<![CDATA["), at):
                raise self._wrong(at, "declarations are not read")
            else:
                raise self._wrong(at, "this is no tag; write &lt; for a plain <")
        if self.open:
            raise self._wrong(self.open[-1].at, f"<{self.open[-1].name}> is never closed")
        return AlignedText("".join(self.pieces), tuple(self.starts), tuple(self.ends))

    def _tag(self, tag: re.Match[str]) -> None:
        name, at = tag["name"], tag.start()
        if tag["close"]:
            if not self.open or self.open[-1].name != name:
                raise self._wrong(at, f"</{name}> closes nothing that is open")
            self._close(at)
            return
        if name not in KNOWN:
            raise self._wrong(at, f"<{name}> is not understood; known are {', '.join(KNOWN)}")
        if name == "speak" and self.open:
            raise self._wrong(at, "<speak> stands inside of another")
        if len(self.open) >= MAX_DEPTH:
            raise self._wrong(at, f"elements lie more than {MAX_DEPTH} deep")
        if self.open and self.open[-1].said is not None:
            raise self._wrong(at, f"<{self.open[-1].name}> takes only text")
        self._begin(name, self._attributes(tag), tag.span())
        if tag["empty"]:
            self._close(tag.end())

    def _begin(self, name: str, given: dict[str, str], where: Span) -> None:
        at, inside = where
        before, said = self.manner, None
        match name:
            case "p":
                self._mark("\n\n", at)
            case "break":
                self._mark(self._break(given, at), inside)
            case "voice":
                self.manner = replace(self.manner, voice=self._needed(given, "name", name, at), language="")
            case "lang":
                self.manner = replace(self.manner, language=self._needed(given, "xml:lang", name, at))
            case "prosody":
                self.manner = self._prosody(given, at)
            case "phoneme":
                if given.get("alphabet", "ipa") != "ipa":
                    raise self._wrong(at, "the alphabet of <phoneme> must be ipa")
                said = f"[x](/{self._needed(given, 'ph', name, at)}/)"
                if _UNSAYABLE.search(said[5:-2]) or not 0 < len(said[5:-2].strip()) <= 200:
                    raise self._wrong(at, "ph must be 1 to 200 symbols of IPA, without brackets and slashes")
            case "sub":
                said = self._needed(given, "alias", name, at)
        self.open.append(_Open(name, at, inside, before, said))
        if self.manner != before or name == "s":
            self._mark(self.manner.marks(), inside)  # also ends the passage, and so the sentence

    def _close(self, end: int) -> None:
        element = self.open.pop()
        changed, self.manner = self.manner != element.manner, element.manner
        if element.said is not None:
            written = self.text[element.inside : end]
            if not written.strip():
                raise self._wrong(element.at, f"<{element.name}> needs the word that it stands for")
            left = element.inside + len(written) - len(written.lstrip())
            self._add(element.said, left, element.inside + len(written.rstrip()), whole=True)
        if changed or element.name == "s":
            self._mark(self.manner.marks(), end)
        if element.name == "p":
            self._mark("\n\n", end)

    def _prosody(self, given: dict[str, str], at: int) -> _Manner:
        if unknown := sorted(given.keys() - {"rate", "pitch"}):
            raise self._wrong(at, f"of <prosody> only rate and pitch are understood, not {', '.join(unknown)}")
        rate, pitch = self.manner.rate, self.manner.pitch
        if "rate" in given:
            rate *= _rate(given["rate"].strip())
        if "pitch" in given:
            pitch += _pitch(given["pitch"].strip())
        if not MIN_RATE <= rate <= MAX_RATE:
            raise self._wrong(at, f"rate must come to {MIN_RATE} to {MAX_RATE:g}: a number, 120%, +20%, slow or fast")
        if not abs(pitch) <= MAX_PITCH:
            raise self._wrong(at, f"pitch must come to at most {MAX_PITCH:g} semitones: +2st, -10%, low or high")
        return replace(self.manner, rate=rate, pitch=pitch)

    def _break(self, given: dict[str, str], at: int) -> str:
        time = _TIME.fullmatch(given["time"].strip()) if "time" in given else None
        if time:
            pause_s = float(time[1]) / (1000 if time[2] == "ms" else 1)
        elif "time" in given:
            pause_s = math.nan
        else:
            pause_s = BREAKS_S.get(given.get("strength", "medium"), math.nan)
        if not 0 <= pause_s <= LONGEST_PAUSE_S:
            raise self._wrong(at, f'write <break time="500ms"/>, up to {LONGEST_PAUSE_S:.0f}s, or strength="strong"')
        return f"[pause:{pause_s:.6f}s]" if pause_s >= 1e-6 else ""

    def _attributes(self, tag: re.Match[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(tag["attributes"]):
            if match[1] in found:
                raise self._wrong(tag.start(), f"{match[1]} stands twice")
            value = match[2] if match[2] is not None else match[3]
            found[match[1]] = self._decoded(value, tag.start()).translate(_BLANKS)
        return found

    def _needed(self, given: dict[str, str], attribute: str, name: str, at: int) -> str:
        value = given.get(attribute, "").strip()
        if not value:
            raise self._wrong(at, f"<{name}> needs {attribute}")
        if attribute in ("name", "xml:lang") and (len(value) > 120 or _BRACKETS.search(value)):
            raise self._wrong(at, f"{attribute} of <{name}> is no name")
        return value

    def _characters(self, start: int, stop: int) -> None:
        """Text between tags; inside an element that says something else, only checked."""
        quiet = self.open[-1].said is not None or self.open[-1].name == "break"
        if self.open[-1].name == "break" and self.text[start:stop].strip():
            raise self._wrong(start, "<break> holds nothing")
        at = start
        while at < stop:
            amp = self.text.find("&", at, stop)
            plain = stop if amp < 0 else amp
            if plain > at and not quiet:
                self._add(self.text[at:plain].translate(_BLANKS), at, plain)
            at = plain
            if at < stop:
                char, end = self._entity(self.text, at, at)
                if not quiet:
                    self._add(char, at, end, whole=True)
                at = end

    def _decoded(self, value: str, at: int) -> str:
        pieces: list[str] = []
        done = 0
        while (amp := value.find("&", done)) >= 0:
            char, end = self._entity(value, amp, at)
            pieces += (value[done:amp], char)
            done = end
        return "".join((*pieces, value[done:]))

    def _entity(self, text: str, start: int, at: int) -> tuple[str, int]:
        match = _ENTITY.match(text, start)
        if match is None:
            raise self._wrong(at, "only &amp; &lt; &gt; &quot; &apos; and &#…; are known; write &amp; for a plain &")
        if match[1]:
            return _ENTITIES[match[1]], match.end()
        number = int(match[2]) if match[2] else int(match[3], 16)
        if not (0x20 <= number < 0xD800 or 0xE000 <= number < 0x110000 or number in (9, 10, 13)):
            raise self._wrong(at, f"{match[0]} is no character")
        return chr(number).translate(_BLANKS), match.end()

    def _add(self, said: str, start: int, end: int, *, whole: bool = False) -> None:
        self.pieces.append(said)
        self.starts += [start] * len(said) if whole else range(start, end)
        self.ends += [end] * len(said) if whole else range(start + 1, end + 1)

    def _mark(self, mark: str, at: int) -> None:
        self._add(mark, at, at, whole=True)

    def _wrong(self, at: int, why: str) -> TuttiError:
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return InvalidInput(f"SSML, line {line}, column {column}: {why}", param="input")


_BRACKETS = re.compile(r"[\[\]\n]")


def _rate(value: str) -> float:
    """A factor: 1.2, 120%, +20%, slow; nan where it is none of these."""
    if value in RATES:
        return RATES[value]
    number = value.removesuffix("%")
    if not _NUMBER.fullmatch(number):
        return math.nan
    if number == value:
        return float(value)
    return float(number) / 100 + (1 if number[0] in "+-" else 0)


def _pitch(value: str) -> float:
    """Semitones: +2st, +10%, high; nan where it is none of these."""
    if value in PITCHES:
        return PITCHES[value]
    if value.endswith("%") and _NUMBER.fullmatch(value[:-1]):
        factor = 1 + float(value[:-1]) / 100
        return 12 * math.log2(factor) if factor > 0 else math.nan
    number = value.removesuffix("st")
    return float(number) if number != value and _NUMBER.fullmatch(number) else math.nan
