"""Keyboard keys and combinations: "Ctrl+C" is "control C"."""

import re

from tutti.text.aligned_text import AlignedText

_NAMES = {
    "ctrl": "control", "cmd": "command", "opt": "option", "esc": "escape", "del": "delete", "ins": "insert",
    "pgup": "page up", "pgdn": "page down", "win": "windows", "fn": "function", "prtsc": "print screen",
}  # fmt: skip
_MODIFIERS = "Ctrl|Control|Alt|Option|Opt|Cmd|Command|Shift|Win|Super|Meta|Fn"
_COMBINATION = re.compile(
    rf"(?<![\w+-])(?:(?:{_MODIFIERS})\s?\+\s?|(?:Ctrl|Cmd|Alt)-)(?:(?:{_MODIFIERS})\s?[+-]\s?){{0,4}}[A-Za-z0-9]{{1,9}}(?![\w+-])"
)
_SINGLE_KEY = re.compile(r"(?<![\w-])(?:Ctrl|Cmd|Esc|PgUp|PgDn|PrtSc)(?![\w-]|\.\w)")
_KEY = re.compile(r"[A-Za-z0-9]+")


def expand(aligned: AlignedText) -> AlignedText:
    """Write keys by their names, those of a combination one after the other."""
    aligned = aligned.sub(_COMBINATION, lambda match: " ".join(_name(key) for key in _KEY.findall(match[0])))
    return aligned.sub(_SINGLE_KEY, lambda match: _name(match[0]))


def _name(key: str) -> str:
    return key.upper() if len(key) == 1 else _NAMES.get(key.lower(), key if key[-1].isdecimal() else key.lower())
