"""Keys of a keyboard and what is pressed together: "Ctrl+C" is "control C"."""

import re

from tutti.text.aligned_text import AlignedText

_NAMES = {
    "ctrl": "control", "cmd": "command", "opt": "option", "esc": "escape", "del": "delete", "ins": "insert",
    "pgup": "page up", "pgdn": "page down", "win": "windows", "fn": "function", "prtsc": "print screen",
}  # fmt: skip
_HELD = "Ctrl|Control|Alt|Option|Opt|Cmd|Command|Shift|Win|Super|Meta|Fn"
_COMBINATION = re.compile(
    rf"(?<![\w+-])(?:(?:{_HELD})\s?\+\s?|(?:Ctrl|Cmd|Alt)-)(?:(?:{_HELD})\s?[+-]\s?){{0,4}}[A-Za-z0-9]{{1,9}}(?![\w+-])"
)
_LONE = re.compile(r"(?<![\w-])(?:Ctrl|Cmd|Esc|PgUp|PgDn|PrtSc)(?![\w-]|\.\w)")
_KEY = re.compile(r"[A-Za-z0-9]+")


def say(spoken: AlignedText) -> AlignedText:
    """Keys by their names, those held together one after the other."""
    spoken = spoken.sub(_COMBINATION, lambda match: " ".join(_name(key) for key in _KEY.findall(match[0])))
    return spoken.sub(_LONE, lambda match: _name(match[0]))


def _name(key: str) -> str:
    return key.upper() if len(key) == 1 else _NAMES.get(key.lower(), key if key[-1].isdecimal() else key.lower())
