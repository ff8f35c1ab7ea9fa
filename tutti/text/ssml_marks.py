"""SSML written as text with the fewest marks, for callers that send it to a speech route later."""

import re
from dataclasses import dataclass

from tutti.text.ssml import is_ssml, read_ssml

_OF_WORDS = r"rate:[\d.]+|pitch:[+-][\d.]+|volume:[\d.]+|/volume|emphasis:\w+|/emphasis"
_PROPERTY = rf"\[(?:{_OF_WORDS}|voice:[^\[\]\n]+|/voice|lang:[^\[\]\n]+)\]"
_RUN = re.compile(rf"(\s*)((?:{_PROPERTY})+)(\s*)")
_MARK = re.compile(r"\[(/?)(\w+):?([^\]]*)\]")
_PAUSE = re.compile(r"\s*\[pause:([\d.]+)s\]\s*")
_SPACES = re.compile(r"[ \t]+")
_PARAGRAPHS = re.compile(r"\s*\n\n\s*")
_CLOSING = tuple(".,;:!?…)]”’")
# What each element becomes, for callers that ask.
ELEMENTS = {
    "speak": "the whole text",
    "p": "a paragraph",
    "s": "its text",
    "break": "[pause:1s]",
    "voice": "[voice:name]",
    "lang": "[lang:fr]",
    "prosody": "[rate:1.2], [pitch:+2], [volume:0.5]",
    "emphasis": "[emphasis:strong]",
    "phoneme": "[word](/ipa/)",
    "sub": "its alias",
    "say-as": "its text, spelled out",
    "audio": "its text",
    "mstts:express-as": "[rate:1.1][pitch:+1] of its style",
    "amazon:emotion": "[rate:1.1][pitch:+1] of its name",
}
NO_VOICE = "changes of voice, language, rate, pitch, volume and emphasis are left out, since no voice was given"


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with marks, and notices of what has no effect."""

    text: str
    notices: tuple[str, ...] = ()


def ssml_as_marks(text: str, voice: str) -> MarkedText:
    """Write SSML as marks; after an element that changes the voice comes the mark of `voice`.

    Without a voice only pauses and pronunciations are written. A text that is not SSML stays as it is.
    """
    if not is_ssml(text):
        return MarkedText(text)
    document = read_ssml(text)
    written = _MarkWriter(voice)
    plain = _PAUSE.sub(lambda pause: f" [pause:{round(float(pause[1]), 6)}s] ", document.aligned.text)
    marked = _RUN.sub(written.changes, plain)
    marked = _PARAGRAPHS.sub("\n\n", _SPACES.sub(" ", marked)).strip()
    return MarkedText(marked, (*document.notices, *((NO_VOICE,) if written.n_left_out else ())))


class _MarkWriter:
    """Writes of each run of marks, which set every property, those that change one."""

    def __init__(self, voice: str) -> None:
        self._default = {"voice": voice, "lang": "", "rate": "1.0", "pitch": "0", "volume": "1", "emphasis": ""}
        self._now = dict(self._default)
        self.n_left_out = 0

    def changes(self, run: re.Match[str]) -> str:
        """Return the marks of the properties that this run changes, between the spaces that they need."""
        before, self._now = self._now, self._set_by(run[2])
        names = [name for name, value in self._now.items() if value != before[name]]
        if "voice" in names and self._now["lang"] and "lang" not in names:
            names.append("lang")  # a voice brings its own
        if not self._default["voice"]:
            self.n_left_out += len(names)
            names = []
        is_closed = not run[3] and run.string.startswith(_CLOSING, run.end())
        space_before, space_after = _space(run[1]), "" if is_closed else _space(run[3])
        if names:
            return f"{space_before}{' '.join(self._mark(name) for name in names)}{space_after}"
        return max(space_before, space_after, key=len) if space_after else ""

    def _set_by(self, run: str) -> dict[str, str]:
        values = {**self._now}
        for end, name, value in _MARK.findall(run):
            if name == "voice":
                values["lang"] = ""
            written = value if name in ("voice", "lang", "emphasis") else _number(name, float(value or 1))
            values[name] = self._default[name] if end else written
        return values

    def _mark(self, name: str) -> str:
        value = self._now[name]
        is_default = value == self._default[name] and name not in ("voice", "rate")
        return f"[/{name}]" if is_default else f"[{name}:{value}]"


def _space(written: str) -> str:
    return "\n\n" if "\n\n" in written else " "


def _number(name: str, value: float) -> str:
    """A number as other servers write it, too: rates with a decimal point."""
    return str(round(value, 4)) if name == "rate" else f"{value:+g}" if name == "pitch" and value else f"{value:g}"
