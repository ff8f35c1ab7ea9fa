"""Rewrite SSML as text with marks, keeping the sources; what Kokoro cannot follow is named in a notice.

Only XML's five entities and character numbers, no declarations, limited depth: no input can expand without limit.
"""

import math
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from tutti.cloud_voices import stand_in, stand_in_notice
from tutti.errors import InvalidInput, TuttiError
from tutti.speech import EMPHASIS_NAMES
from tutti.text.aligned_text import AlignedText, SourceRange
from tutti.text.marks import BREAKS_S, MAX_PAUSE_S, MAX_PITCH, MAX_RATE, MAX_VOLUME, MIN_RATE
from tutti.text.say_as import say_as
from tutti.text.ssml_values import STYLES, parse_pitch, parse_rate, parse_volume

MAX_DEPTH = 32  # nested elements
MAX_DOCUMENT = 100_000  # characters; a document is parsed as a whole, unlike plain text
PARSED_AT_ONCE = 1000  # tags and texts between them; more makes other texts wait longer
ELEMENTS = ("speak", "p", "s", "break", "voice", "lang", "prosody", "emphasis", "phoneme", "sub", "say-as", "audio")
# Elements of the standard and of cloud services that have no effect: their text is spoken, or it is not speech.
SPOKEN = frozenset(("w", "token", "lookup", "par", "seq", "media"))
UNSPOKEN = frozenset(("mark", "bookmark", "lexicon", "meta", "metadata", "desc"))
VENDORS = ("mstts:", "amazon:", "google:")


@dataclass(frozen=True, slots=True)
class SsmlText:
    """Plain text with marks, and notices of what has no effect."""

    aligned: AlignedText
    notices: tuple[str, ...] = ()


def is_ssml(text: str) -> bool:
    """Tell whether the text starts with <speak>; any other < does not make it SSML."""
    return _ROOT.match(text) is not None


def ssml_to_marks(text: str) -> AlignedText:
    """Convert to plain text with marks."""
    return read_ssml(text).aligned


def read_ssml(text: str, code: str = "en-us", voice_names: Container[str] = ()) -> SsmlText:
    """Convert to plain text with marks. Raises InvalidInput with line and column if it is not well formed.

    `voice_names` are names that the server has given to voices; no other voice stands in for them.
    """
    parser = SsmlParser(text, code, voice_names)
    while parser.parse_some():
        pass
    return parser.document()


@dataclass(frozen=True, slots=True)
class _SsmlStyle:
    rate: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    emphasis: str = ""
    voice: str = ""
    language: str = ""

    def marks(self, before: "_SsmlStyle | None" = None) -> str:
        """Return marks that set what differs from the style before them, or everything, which ends a sentence."""
        voice = f"[voice:{self.voice}]" if self.voice else "[/voice]"
        language = f"[lang:{self.language}]" if self.language else ""
        volume = f"[volume:{self.volume:.4f}]" if self.volume != 1 else "[/volume]"
        emphasis = f"[emphasis:{self.emphasis}]" if self.emphasis else "[/emphasis]"
        of_words = f"[rate:{self.rate:.4f}][pitch:{self.pitch:+.4f}]{volume}{emphasis}"
        is_same_voice = before is not None and (before.voice, before.language) == (self.voice, self.language)
        return of_words if is_same_voice else f"{of_words}{voice}{language}"


@dataclass(frozen=True, slots=True)
class _OpenElement:
    """An element that is not closed yet."""

    name: str
    at: int  # where its tag starts
    content_start: int  # where its content starts
    style: _SsmlStyle  # in force after it
    replacement: str | None = None  # spoken instead of its content
    say_as: Mapping[str, str] | None = None  # how its content is spoken


_ROOT = re.compile(r"\ufeff?\s*+(?:<\?xml[^<>]{0,200}\?>\s*+)?(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*<speak(?=[\s/>])")
_NAME = r"[A-Za-z_][\w.:-]{0,60}+"
_ATTRIBUTE = re.compile(rf"\s++({_NAME})\s*+=\s*+(?:\"([^\"<]*+)\"|'([^'<]*+)')")
_TAG = re.compile(
    rf"<(?P<close>/)?(?P<name>{_NAME})"
    rf"(?P<attributes>(?:\s++{_NAME}\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+)\s*+(?P<empty>/)?>"
)
_COMMENT_OR_INSTRUCTION = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9A-Fa-f]{1,6}));")
_ENTITY_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_WHITE_SPACE = str.maketrans("\n\r\t\x0b\x0c\x85\u2028\u2029", " " * 8)
_TIME = re.compile(r"\+?(\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})(ms|s)", re.ASCII)
_HERTZ = re.compile(r"\s*[+-]?\d{1,4}(?:\.\d{0,3})?\s*Hz\s*", re.IGNORECASE)
_NOT_IPA = re.compile(r"[/()\[\]\n]")


class SsmlParser:
    """Single-pass parser: the document, the output with its sources, and the open elements."""

    def __init__(self, text: str, code: str, voice_names: Container[str]) -> None:
        if len(text) > MAX_DOCUMENT:
            raise InvalidInput(
                f"SSML of {len(text):,} characters is too long: send documents of up to {MAX_DOCUMENT:,}, "
                "or plain text",
                param="input",
            )
        self.text = text
        self._at = 0
        self._has_root_ended = False
        self.code = code
        self.voice_names = voice_names
        self.notices: list[str] = []
        self.pieces: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.elements: list[_OpenElement] = []
        self.style = _SsmlStyle()

    def parse_some(self) -> bool:
        """Parse a part of the document, and tell whether there is more of it."""
        for _ in range(PARSED_AT_ONCE):
            if self._at >= len(self.text):
                break
            self._at = self._parse_next(self._at)
        return self._at < len(self.text)

    def document(self) -> SsmlText:
        """The document, when all of it was parsed."""
        if self.elements:
            raise self._error(self.elements[-1].at, f"<{self.elements[-1].name}> is never closed")
        aligned = AlignedText("".join(self.pieces), tuple(self.starts), tuple(self.ends))
        return SsmlText(aligned, tuple(dict.fromkeys(self.notices)))

    def _parse_next(self, at: int) -> int:
        """Parse one tag, or the text before the next one; return where it ends."""
        text = self.text
        if text[at] != "<":
            stop = text.find("<", at)
            stop = len(text) if stop < 0 else stop
            if self.elements:
                self._add_text(at, stop)
            elif text[at:stop].strip("\ufeff \t\r\n"):
                raise self._error(at, "text stands outside of <speak>")
            return stop
        if comment := _COMMENT_OR_INSTRUCTION.match(text, at):
            return comment.end()
        if cdata := _CDATA.match(text, at):
            if not self.elements:
                raise self._error(at, "text stands outside of <speak>")
            self._add(cdata[1].translate(_WHITE_SPACE), *cdata.span(1))
            return cdata.end()
        if tag := _TAG.match(text, at):
            if not self.elements and (self._has_root_ended or tag["close"] or tag["name"] != "speak"):
                raise self._error(at, "everything must stand in one <speak>")
            self._handle_tag(tag)
            self._has_root_ended = not self.elements
            return tag.end()
        if text.startswith("<!", at) and not text.startswith(("<!--", "<![CDATA["), at):
            raise self._error(at, "declarations are not supported")
        raise self._error(at, "this is not a tag; write &lt; for a plain <")

    def _handle_tag(self, tag: re.Match[str]) -> None:
        name, at = tag["name"], tag.start()
        if tag["close"]:
            if not self.elements or self.elements[-1].name != name:
                raise self._error(at, f"</{name}> closes nothing that is open")
            self._close(at)
            return
        if name not in ELEMENTS and name not in SPOKEN | UNSPOKEN and not name.startswith(VENDORS):
            raise self._error(at, f"<{name}> is not supported; supported are {', '.join(ELEMENTS)}")
        if name == "speak" and self.elements:
            raise self._error(at, "<speak> is inside of another <speak>")
        if len(self.elements) >= MAX_DEPTH:
            raise self._error(at, f"elements are nested more than {MAX_DEPTH} deep")
        if self.elements and self.elements[-1].replacement is not None:
            raise self._error(at, f"<{self.elements[-1].name}> may contain only text")
        self._open(name, self._parse_attributes(tag), tag.span())
        if tag["empty"]:
            self._close(tag.end())

    def _open(self, name: str, attributes: dict[str, str], tag: SourceRange) -> None:
        at, content_start = tag
        before, replacement, kind = self.style, None, None
        match name:
            case "p":
                self._add_mark("\n\n", at)
            case "break":
                self._add_mark(self._break_mark(attributes, at), content_start)
            case "voice" if "name" not in attributes and attributes.keys() & {"gender", "language", "variant", "age"}:
                self.notices.append("<voice> without a name is ignored")
            case "voice":
                voice = self._stand_in(self._required(attributes, "name", name, at))
                self.style = replace(self.style, voice=voice, language="")
            case "lang":
                self.style = replace(self.style, language=self._required(attributes, "xml:lang", name, at))
            case "prosody":
                self.style = self._prosody(attributes, at)
            case "emphasis":
                self.style = replace(self.style, emphasis=self._emphasis(attributes, at))
            case "phoneme" if attributes.get("alphabet", "ipa") != "ipa":
                alphabet = attributes["alphabet"][:20]
                self.notices.append(f"<phoneme> is ignored in the alphabet {alphabet}; only ipa is supported")
            case "phoneme":
                replacement = self._required(attributes, "ph", name, at)
                if _NOT_IPA.search(replacement) or len(replacement) > 200:
                    raise self._error(at, "ph must be 1 to 200 symbols of IPA, without brackets and slashes")
            case "sub":
                replacement = self._required(attributes, "alias", name, at)
            case "say-as":
                replacement, kind = "", attributes
            case "audio":
                self.notices.append("<audio> is not played; its text is spoken")
            case "amazon:effect" if attributes.get("name") == "whispered":
                self.style = replace(self.style, emphasis="whispered")
            case "mstts:express-as" | "amazon:emotion":
                self._express(attributes.get("style") or attributes.get("name", ""), name)
            case _ if name in SPOKEN | UNSPOKEN or name.startswith(VENDORS):
                self.notices.append(f"<{name}> has no effect")
        self.elements.append(_OpenElement(name, at, content_start, before, replacement, kind))
        if self.style != before or name == "s":
            self._add_mark(self.style.marks(None if name == "s" else before), content_start)

    def _close(self, end: int) -> None:
        element = self.elements.pop()
        before, self.style = self.style, element.style
        if element.replacement is not None:
            written = self.text[element.content_start : end]
            if not written.strip():
                raise self._error(element.at, f"<{element.name}> needs the word that it replaces")
            start = element.content_start + len(written) - len(written.lstrip())
            spoken = element.replacement if element.say_as is None else self._say_as(written, element)
            if element.name == "phoneme":
                word = _BRACKETS.sub(" ", self._decode(written, element.at)).strip()[:200]
                spoken = f"[{word or 'x'}](/{spoken}/)"
            self._add(spoken, start, element.content_start + len(written.rstrip()), whole=True)
        if self.style != before or element.name == "s":
            self._add_mark(self.style.marks(None if element.name == "s" else before), end)
        if element.name == "p":
            self._add_mark("\n\n", end)

    def _say_as(self, written: str, element: _OpenElement) -> str:
        """Return what to read for the content of a <say-as>."""
        text = self._decode(written, element.at).translate(_WHITE_SPACE).strip()
        attributes = element.say_as or {}
        spoken = say_as(text, attributes, english=(self.style.language or self.code).lower().startswith("en"))
        if spoken is None:
            kind = attributes.get("interpret-as", "")[:40]
            self.notices.append(f'<say-as interpret-as="{kind}"> is not supported; its text is read as written')
        return text if spoken is None else spoken

    def _stand_in(self, name: str) -> str:
        """Return the voice that stands for that of another service, or the name itself."""
        voice = None if name.strip().lower() in self.voice_names else stand_in(name)
        if voice is not None:
            self.notices.append(stand_in_notice(name, voice))
        return voice or name

    def _express(self, style: str, name: str) -> None:
        """Apply a style of another service, as far as rate and pitch can."""
        factor, semitones = STYLES.get(style.strip().lower(), (1.0, 0.0))
        rate, pitch = self.style.rate * factor, self.style.pitch + semitones
        if style.strip().lower() in STYLES and MIN_RATE <= rate <= MAX_RATE and abs(pitch) <= MAX_PITCH:
            self.style = replace(self.style, rate=rate, pitch=pitch)
            self.notices.append(f"<{name}> changes only rate and pitch")
        else:
            self.notices.append(f'<{name} style="{style[:40]}"> has no effect')

    def _prosody(self, attributes: dict[str, str], at: int) -> _SsmlStyle:
        if unknown := sorted(attributes.keys() - {"rate", "pitch", "volume", "contour", "range", "duration"}):
            raise self._error(at, f"<prosody> supports rate, pitch and volume, not {', '.join(unknown)}")
        for name in ("contour", "range", "duration"):
            if name in attributes:
                self.notices.append(f"{name} of <prosody> has no effect")
        attributes = dict(attributes)
        if _HERTZ.fullmatch(attributes.get("pitch", "")):
            self.notices.append("pitch of <prosody> in hertz has no effect; use semitones: +2st")
            del attributes["pitch"]
        rate, pitch, volume = self.style.rate, self.style.pitch, self.style.volume
        if "volume" in attributes:
            volume = parse_volume(attributes["volume"].strip(), volume)
        if not 0 <= volume <= MAX_VOLUME:
            raise self._error(at, f"volume must come to 0 to {MAX_VOLUME:g} times: +6dB, 80, -20%, soft or loud")
        if "rate" in attributes:
            rate *= parse_rate(attributes["rate"].strip())
        if "pitch" in attributes:
            pitch += parse_pitch(attributes["pitch"].strip())
        if not MIN_RATE <= rate <= MAX_RATE:
            raise self._error(at, f"rate must come to {MIN_RATE} to {MAX_RATE:g}: a number, 120%, +20%, slow or fast")
        if not abs(pitch) <= MAX_PITCH:
            raise self._error(at, f"pitch must come to at most {MAX_PITCH:g} semitones: +2st, -10%, low or high")
        return replace(self.style, rate=rate, pitch=pitch, volume=volume)

    def _emphasis(self, attributes: dict[str, str], at: int) -> str:
        level = attributes.get("level", "moderate").strip().lower()
        if level not in (*EMPHASIS_NAMES, "none"):
            raise self._error(at, f"level of <emphasis> must be {', '.join(EMPHASIS_NAMES)} or none")
        return "" if level == "none" else level

    def _break_mark(self, attributes: dict[str, str], at: int) -> str:
        time = _TIME.fullmatch(attributes["time"].strip()) if "time" in attributes else None
        if time:
            pause_s = float(time[1]) / (1000 if time[2] == "ms" else 1)
        elif "time" in attributes:
            pause_s = math.nan
        else:
            pause_s = BREAKS_S.get(attributes.get("strength", "medium"), math.nan)
        if not 0 <= pause_s <= MAX_PAUSE_S:
            raise self._error(at, f'write <break time="500ms"/>, up to {MAX_PAUSE_S:.0f}s, or strength="strong"')
        return f"[pause:{pause_s:.6f}s]" if pause_s >= 1e-6 else ""

    def _parse_attributes(self, tag: re.Match[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(tag["attributes"]):
            if match[1] in values:
                raise self._error(tag.start(), f"{match[1]} is given twice")
            value = match[2] if match[2] is not None else match[3]
            values[match[1]] = self._decode(value, tag.start()).translate(_WHITE_SPACE)
        return values

    def _required(self, attributes: dict[str, str], attribute: str, name: str, at: int) -> str:
        value = attributes.get(attribute, "").strip()
        if not value:
            raise self._error(at, f"<{name}> needs {attribute}")
        if attribute in ("name", "xml:lang") and (len(value) > 120 or _BRACKETS.search(value)):
            raise self._error(at, f"{attribute} of <{name}> is not a name")
        return value

    def _add_text(self, start: int, stop: int) -> None:
        """Add text between tags; inside an element with a replacement, only check it."""
        element = self.elements[-1]
        silent = element.replacement is not None or element.name == "break" or element.name in UNSPOKEN
        if self.elements[-1].name == "break" and self.text[start:stop].strip():
            raise self._error(start, "<break> must be empty")
        at = start
        while at < stop:
            amp = self.text.find("&", at, stop)
            plain = stop if amp < 0 else amp
            if plain > at and not silent:
                self._add(self.text[at:plain].translate(_WHITE_SPACE), at, plain)
            at = plain
            if at < stop:
                char, end = self._decode_entity(self.text, at, at)
                if not silent:
                    self._add(char, at, end, whole=True)
                at = end

    def _decode(self, value: str, at: int) -> str:
        pieces: list[str] = []
        start = 0
        while (amp := value.find("&", start)) >= 0:
            char, end = self._decode_entity(value, amp, at)
            pieces += (value[start:amp], char)
            start = end
        return "".join((*pieces, value[start:]))

    def _decode_entity(self, text: str, start: int, at: int) -> tuple[str, int]:
        match = _ENTITY.match(text, start)
        if match is None:
            raise self._error(
                at, "only &amp; &lt; &gt; &quot; &apos; and &#…; are supported; write &amp; for a plain &"
            )
        if match[1]:
            return _ENTITY_CHARACTERS[match[1]], match.end()
        number = int(match[2]) if match[2] else int(match[3], 16)
        if not (0x20 <= number < 0xD800 or 0xE000 <= number < 0x110000 or number in (9, 10, 13)):
            raise self._error(at, f"{match[0]} is not a character")
        return chr(number).translate(_WHITE_SPACE), match.end()

    def _add(self, output: str, start: int, end: int, *, whole: bool = False) -> None:
        """Append text that reads start..end of the source: character by character, or each of them the `whole`."""
        self.pieces.append(output)
        self.starts += [start] * len(output) if whole else range(start, end)
        self.ends += [end] * len(output) if whole else range(start + 1, end + 1)

    def _add_mark(self, mark: str, at: int) -> None:
        self._add(mark, at, at, whole=True)

    def _error(self, at: int, reason: str) -> TuttiError:
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return InvalidInput(f"SSML, line {line}, column {column}: {reason}", param="input")


_BRACKETS = re.compile(r"[\[\]\n]")
