"""Word times become captions: cues that can be read, cut where sentences and clauses end; as SRT, WebVTT or JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tutti.errors import InvalidInput
from tutti.speech import WordTime
from tutti.text.marks import bare

Kind = Literal["srt", "vtt", "json"]
LINE = 42  # characters
LINES = 2
SHORTEST_S = 1.0
LONGEST_S = 7.0
PAUSE_S = 1.2  # of the speaker, over which no cue stays
BREATH_S = 0.03  # less silence behind a full stop, and it is an abbreviation
BALANCE = 15  # characters of unevenness that a clause border between the lines is worth


@dataclass(frozen=True, slots=True)
class Piece:
    """A word as it stands in a cue, with its punctuation."""

    text: str
    start_s: float
    end_s: float
    word: WordTime
    space: bool = True  # before it
    paragraph_end: bool = False


@dataclass(frozen=True, slots=True)
class Cue:
    """One or two lines and when they are seen: from the first sample of its first word to the last of its last one,
    or longer where that is too short to read and nobody else speaks.
    """

    start_s: float
    end_s: float
    lines: tuple[tuple[Piece, ...], ...]

    @property
    def text(self) -> str:
        return "\n".join(map(_joined, self.lines))


def cues(text: str, words: Iterable[WordTime]) -> list[Cue]:
    """The cues of a text whose words were heard at these times, in order, none overlapping the next."""
    made = [_cue(pieces) for pieces in _grouped(list(_pieces(text, list(words))))]
    free_s = [*(after.start_s for after in made[1:]), float("inf")]  # how long nobody else speaks
    return [
        replace(cue, end_s=max(cue.end_s, min(cue.start_s + SHORTEST_S, until_s)))
        for cue, until_s in zip(made, free_s, strict=False)
    ]


def kind_of_file(name: str) -> Kind:
    """By the suffix."""
    suffix = name.rpartition(".")[2].lower()
    if suffix not in ("srt", "vtt", "json"):
        raise InvalidInput(f"captions are .srt, .vtt or .json, not {name}", param="captions")
    return suffix  # type: ignore[return-value]


def written(made: Iterable[Cue], kind: Kind, *, by_word: bool = False) -> str:
    """The cues as a file; `by_word` lets WebVTT light up each word when it is heard."""
    match kind:
        case "srt":
            blocks = (f"{n}\n{_times(cue, ',')}\n{_plain(cue)}\n" for n, cue in enumerate(made, 1))
            return "\n".join(blocks)
        case "vtt":
            return "\n".join(["WEBVTT\n", *(f"{_times(cue, '.')}\n{_tagged(cue, by_word)}\n" for cue in made)])
        case "json":
            return json.dumps({"cues": [_as_dict(cue) for cue in made]}, ensure_ascii=False, indent=1) + "\n"


# -- words with their punctuation --------------------------------------------------------------------------------

_UNSEEN = re.compile(r"<[^<>]*+>|\]\([^()\s]*+\)|[*_`#~|\\<>\[\]\ufffc\w]")
_OPENING = re.compile(r"[(“‘«¿¡「『（]+$")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)」』）]*+$")
_CLAUSE_END = re.compile(r"[,;:—–、，；：][\"'”’)」』）]*+$")


def _pieces(text: str, words: Sequence[WordTime]) -> Iterator[Piece]:
    """Each word with the punctuation that touches it."""
    words = list(_once(words))
    ends = [0, *(word.span[1] for word in words)]
    starts = [*(word.span[0] for word in words), len(text)]
    gaps = [
        _parted(text[end:start] if end <= start <= len(text) else " ") for end, start in zip(ends, starts, strict=True)
    ]
    for word, (before, after) in zip(words, pairwise(gaps), strict=True):
        seen = f"{before.opening}{word.word}{after.closing}"
        yield from _short(Piece(seen, word.start_s, word.end_s, word, before.space, after.paragraph_end))


def _once(words: Iterable[WordTime]) -> Iterator[WordTime]:
    """A word that was cut between two breaths is still one word."""
    last: WordTime | None = None
    for word in words:
        if last is not None and last.span != word.span:
            yield last
            last = None
        last = word if last is None else replace(last, end_s=word.end_s)
    if last is not None:
        yield last


@dataclass(frozen=True, slots=True)
class _Gap:
    """What lies between two words."""

    closing: str
    space: bool
    opening: str
    paragraph_end: bool


def _parted(gap: str) -> _Gap:
    seen = _UNSEEN.sub("", bare(gap))
    blank = re.search(r"\s", seen)
    if blank is None:
        opening = _OPENING.search(seen)
        closing = seen[: opening.start()] if opening else seen
        return _Gap(closing, False, opening[0] if opening else "", False)
    closing, middle = seen[: blank.start()], seen[blank.start() :]
    opening_part = "" if middle[-1].isspace() else middle.split()[-1]
    dash = next((part for part in middle.split() if part in "—–"), "")
    if dash and opening_part != dash:
        closing += f" {dash}"
    return _Gap(closing, True, "" if opening_part == dash else opening_part, middle.count("\n") > 1)


def _short(piece: Piece) -> Iterator[Piece]:
    """The piece, or parts of it that fit on a line, each with its share of the time."""
    n = len(piece.text)
    for at in range(0, n, LINE):
        part = piece.text[at : at + LINE]
        each_s = (piece.end_s - piece.start_s) / n
        yield replace(
            piece,
            text=part,
            start_s=piece.start_s + at * each_s,
            end_s=piece.end_s if at + LINE >= n else piece.start_s + (at + len(part)) * each_s,
            space=piece.space if at == 0 else False,
        )


# -- cues --------------------------------------------------------------------------------------------------------


def _grouped(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces that share a cue: a sentence, several that are too short to read, or as much of one as fits."""
    group: list[Piece] = []
    for i, piece in enumerate(pieces):
        if group and piece.start_s - group[-1].end_s > PAUSE_S:
            yield group
            group = []
        while group and not _fits([*group, piece]):
            cut = _border(group)
            yield group[:cut]
            group = group[cut:]
        group.append(piece)
        ends_s = pieces[i + 1].start_s if i + 1 < len(pieces) else float("inf")
        if _ends_sentence(piece, ends_s) and piece.end_s - group[0].start_s >= SHORTEST_S:
            yield group
            group = []
    if group:
        yield group


def _ends_sentence(piece: Piece, next_s: float) -> bool:
    return piece.paragraph_end or bool(_SENTENCE_END.search(piece.text) and next_s - piece.end_s > BREATH_S)


def _fits(pieces: Sequence[Piece]) -> bool:
    return pieces[-1].end_s - pieces[0].start_s <= LONGEST_S and _wrapped(pieces) is not None


def _border(group: Sequence[Piece]) -> int:
    """After which piece a group that is full is best cut: the last clause in its second half, else at its end."""
    for ends in (_SENTENCE_END, _CLAUSE_END):
        for cut in range(len(group), 0, -1):
            if ends.search(group[cut - 1].text) and 5 * cut >= 2 * len(group):
                return cut
    return len(group)


def _cue(pieces: Sequence[Piece]) -> Cue:
    lines = _wrapped(pieces)
    assert lines is not None  # only a group that fits is made into a cue
    return Cue(pieces[0].start_s, pieces[-1].end_s, lines)


def _wrapped(pieces: Sequence[Piece]) -> tuple[tuple[Piece, ...], ...] | None:
    """The pieces on one line, else on two that are about as long, the first ending with a clause if it can."""
    if len(_joined(pieces)) <= LINE:
        return (tuple(pieces),)
    best: tuple[float, int] | None = None
    for cut in range(1, len(pieces)):
        first, second = len(_joined(pieces[:cut])), len(_joined(pieces[cut:]))
        if first <= LINE and second <= LINE:
            bonus = BALANCE if _CLAUSE_END.search(pieces[cut - 1].text) else 0
            best = min(best or (1e9, 0), (abs(first - second) - bonus, cut))
    return best and (tuple(pieces[: best[1]]), tuple(pieces[best[1] :]))


def _joined(line: Sequence[Piece]) -> str:
    return "".join(f" {piece.text}" if piece.space and i else piece.text for i, piece in enumerate(line))


# -- files -------------------------------------------------------------------------------------------------------


def _clock(seconds: float, point: str) -> str:
    """Hours, minutes, seconds and milliseconds, each time rounded by itself."""
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


def _times(cue: Cue, point: str) -> str:
    return f"{_clock(cue.start_s, point)} --> {_clock(cue.end_s, point)}"


def _plain(cue: Cue) -> str:
    return cue.text.replace("-->", "→")


def _tagged(cue: Cue, by_word: bool) -> str:
    """A cue's lines as WebVTT wants them, each word but the first with its time where that is wished."""
    lines = []
    for line in cue.lines:
        said = ""
        for i, piece in enumerate(line):
            stamp = f"<{_clock(piece.start_s, '.')}>" if by_word and piece.start_s > cue.start_s else ""
            said += (" " if piece.space and i else "") + stamp + _escaped(piece.text)
        lines.append(said)
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _as_dict(cue: Cue) -> dict[str, object]:
    words = _once(piece.word for line in cue.lines for piece in line)
    return {
        "start": round(cue.start_s, 3),
        "end": round(cue.end_s, 3),
        "text": cue.text,
        "words": [{"word": word.word, "start": round(word.start_s, 3), "end": round(word.end_s, 3),
                   "from": word.span[0], "to": word.span[1]} for word in words],
    }  # fmt: skip
