"""Punctuation between English words, in Kokoro's symbols."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CLAUSE_ENDS = frozenset(";:,.!?—…")  # quotes and brackets do not end a clause
_OPENING = '“("'
_EQUIVALENT = (
    dict.fromkeys("–―‒−", "—")
    | dict.fromkeys("‥⋯", "…")
    | dict.fromkeys("、，·•", ",")
    | dict.fromkeys("。।", ".")
    | dict.fromkeys("«„‟‹「", "“")
    | dict.fromkeys("»›」", "”")
    | dict.fromkeys("[{（", "(")
    | dict.fromkeys("]}）", ")")
    | {"！": "!", "？": "?", "；": ";", "：": ":", "¡": "", "¿": ""}
)
_SILENT = frozenset("'’‘‚`´_-‐‑/\\")  # not spoken, and no pause
_ALLOWED = frozenset(';:,.!?—…"()“” ')
_DASH = re.compile(r"(?<=\s)-+(?=\s)|^--+$")  # " - " and "so--yes", but not the "--" of an option
_DOTS = re.compile(r"\.{2,}|…[.…]*")
_EMPTY = re.compile(r"\(\s*\)|“\s*”|[:;]-?[()]")  # empty brackets and smileys
_REPEATED = re.compile(r"([;:,—…])\1+|([!?])\2{2,}")


@dataclass(frozen=True, slots=True)
class Gap:
    """The symbols between two words: those behind the left one, those in front of the right one."""

    after: str
    before: str


def gaps_between(text: str, places: Sequence[tuple[int, int]]) -> tuple[list[Gap], list[str]]:
    """Return the gaps before, between and behind the words at `places`, and the characters without a symbol."""
    gaps: list[Gap] = []
    dropped: list[str] = []
    end = 0
    for start, stop in [*places, (len(text), len(text))]:
        first, last = not gaps, start == len(text)
        raw = text[end:start]
        if raw == " " and not first and not last:
            gaps.append(_SPACE)
        else:
            gaps.append(_gap(text, end, start, first, last, dropped))
        end = stop
    return gaps, dropped


_SPACE = Gap(" ", "")


def _gap(text: str, start: int, end: int, first: bool, last: bool, dropped: list[str]) -> Gap:
    raw = _DOTS.sub("…", text[start:end])
    raw = _DASH.sub("—", (" " if first else "") + raw + (" " if last else ""))
    symbols: list[str] = []
    for i, char in enumerate(raw):
        if char.isspace():
            symbol = " "
        elif char == '"':
            opens = (i == 0 and first) or (i > 0 and (raw[i - 1].isspace() or raw[i - 1] in "([—“"))
            symbol = "“" if opens and not (last and not raw[i:].strip('" ')) else "”"
        else:
            symbol = _EQUIVALENT.get(char, char)
        if symbol in _ALLOWED:
            symbols.append(symbol)
        elif symbol in _SILENT:
            symbols.append(" " if symbol in "_/\\" else "")
        elif symbol:
            dropped.append(symbol)
    punctuation = _REPEATED.sub(lambda m: m[1] or m[2] * 3, " ".join(_EMPTY.sub(" ", "".join(symbols)).split()))
    if first:
        return Gap("", punctuation)
    closes = "".join(symbols)[:1] != " "
    body = punctuation.rstrip(_OPENING + " ")
    opening = punctuation[len(body) :].replace(" ", "")
    if last:
        body, opening = (body + opening, "")
    if body and not closes and body[0] in "—…":
        body = " " + body
    return Gap(body if body == "—" and not any(map(str.isspace, raw)) else body + " ", opening)
