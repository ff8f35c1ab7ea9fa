"""Turn word times into captions: readable cues, cut where sentences and clauses end; as SRT, WebVTT or JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tutti.errors import InvalidInput
from tutti.speech import WordTime
from tutti.text.markdown import FOOTNOTE
from tutti.text.marks import strip_marks

CaptionFormat = Literal["srt", "vtt", "json"]
MAX_LINE = 42  # characters
MIN_CUE_S = 1.0  # shorter cues are shown this long if the next one starts later
MAX_CUE_S = 7.0  # a longer cue is cut
MAX_GAP_S = 1.2  # a longer silence between two words ends the cue
MIN_STOP_S = 0.03  # with less silence behind a full stop, it belongs to an abbreviation
CLAUSE_BONUS = 15  # characters by which lines may differ in length if the first then ends with a clause


@dataclass(frozen=True, slots=True)
class CaptionWord:
    """A word as it stands in a cue, with its punctuation."""

    text: str
    start_s: float
    end_s: float
    word: WordTime
    space: bool = True  # before it
    line_end: bool = False  # a paragraph, heading, list item or table row ends with it
    is_number: bool = False  # of a list item, which follows it


@dataclass(frozen=True, slots=True)
class Cue:
    """One or two lines, shown from the first sample of the first word to the last of the last one, or for MIN_CUE_S
    where that is longer and the next cue leaves room.
    """

    start_s: float
    end_s: float
    lines: tuple[tuple[CaptionWord, ...], ...]

    @property
    def text(self) -> str:
        return "\n".join(map(_join, self.lines))


def cues(text: str, words: Iterable[WordTime]) -> list[Cue]:
    """Return the cues of a text with these word times, in order, none overlapping the next."""
    cue_list = [_cue(group) for group in _group(list(_caption_words(text, list(words))))]
    next_starts_s = [*(cue.start_s for cue in cue_list[1:]), float("inf")]
    return [
        replace(cue, end_s=max(cue.end_s, min(cue.start_s + MIN_CUE_S, next_s)))
        for cue, next_s in zip(cue_list, next_starts_s, strict=False)
    ]


def caption_format(name: str) -> CaptionFormat:
    """Return the format that the suffix of a file name stands for."""
    suffix = name.rpartition(".")[2].lower()
    if suffix not in ("srt", "vtt", "json"):
        raise InvalidInput(f"captions are .srt, .vtt or .json, not {name}", param="captions")
    return suffix  # type: ignore[return-value]


def render(cue_list: Iterable[Cue], file_format: CaptionFormat, *, by_word: bool = False) -> str:
    """Return the cues as a file; `by_word` adds the time of every word to WebVTT."""
    match file_format:
        case "srt":
            blocks = (f"{n}\n{_times(cue, ',')}\n{_srt_text(cue)}\n" for n, cue in enumerate(cue_list, 1))
            return "\n".join(blocks)
        case "vtt":
            return "\n".join(["WEBVTT\n", *(f"{_times(cue, '.')}\n{_vtt_text(cue, by_word)}\n" for cue in cue_list)])
        case "json":
            return json.dumps({"cues": [_to_json(cue) for cue in cue_list]}, ensure_ascii=False, indent=1) + "\n"


# -- words with their punctuation --------------------------------------------------------------------------------

_MARKUP = re.compile(r"<[^<>]*+>|\]\([^()\s]*+\)|[*_`#~|\\<>\[\]\ufffc\w]")
_MEANT_BREAK = re.compile(r"\n[ \t]*+(?:\n|[-*+•|#>])")
_LIST_NUMBER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,5})[.)]")
_OPENING = re.compile(r"[(“‘«¿¡「『（]+$")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)」』）]*+$")
_CLAUSE_END = re.compile(r"[,;:—–、，；：][\"'”’)」』）]*+$")


def _caption_words(text: str, words: Sequence[WordTime]) -> Iterator[CaptionWord]:
    """Yield each word with the punctuation that touches it."""
    words = list(_merge_parts(words))
    ends = [0, *(word.span[1] for word in words)]
    starts = [*(word.span[0] for word in words), len(text.rstrip("| \n"))]  # without the end of a table row
    gaps = [
        _split_gap(text[end:start] if end <= start <= len(text) else " ")
        for end, start in zip(ends, starts, strict=True)
    ]
    numbers = [
        (before.line_break or n == 0)
        and _LIST_NUMBER.fullmatch(f"{before.opening}{word.word}{after.closing}") is not None
        for n, (word, (before, after)) in enumerate(zip(words, pairwise(gaps), strict=True))
    ]
    for n, (word, (before, after)) in enumerate(zip(words, pairwise(gaps), strict=True)):
        caption_text = f"{before.opening}{word.word}{after.closing}"
        line_end = after.line_end or (after.line_break and n + 1 < len(words) and numbers[n + 1])
        yield from _split_long_word(
            CaptionWord(caption_text, word.start_s, word.end_s, word, before.space, line_end, numbers[n])
        )


def _merge_parts(words: Iterable[WordTime]) -> Iterator[WordTime]:
    """Merge the parts of a word that was split between two chunks."""
    previous: WordTime | None = None
    for word in words:
        if previous is not None and previous.span != word.span:
            yield previous
            previous = None
        previous = word if previous is None else replace(previous, end_s=word.end_s)
    if previous is not None:
        yield previous


@dataclass(frozen=True, slots=True)
class _CaptionGap:
    """The punctuation between two words."""

    closing: str
    space: bool
    opening: str
    line_break: bool = False
    line_end: bool = False  # the break is meant: a paragraph ends, or a list item, a heading or a table row follows


def _split_gap(gap: str) -> _CaptionGap:
    line_break, line_end = "\n" in gap, _MEANT_BREAK.search(gap) is not None
    if "|" in gap and not line_break:  # between two cells of a table
        return _CaptionGap(",", True, "")
    punctuation = _MARKUP.sub("", strip_marks(FOOTNOTE.sub("", gap)))
    blank = re.search(r"\s", punctuation)
    if blank is None:
        opening = _OPENING.search(punctuation)
        closing = punctuation[: opening.start()] if opening else punctuation
        return _CaptionGap(closing, False, opening[0] if opening else "", line_break, line_end)
    closing, rest = punctuation[: blank.start()], punctuation[blank.start() :]
    opening_part = "" if rest[-1].isspace() else rest.split()[-1]
    dash = next((part for part in rest.split() if part in "—–"), "")
    if dash and opening_part != dash:
        closing += f" {dash}"
    return _CaptionGap(closing, True, "" if opening_part == dash else opening_part, line_break, line_end)


def _split_long_word(word: CaptionWord) -> Iterator[CaptionWord]:
    """Yield the word, or parts of it that fit on a line, each with its share of the time."""
    n = len(word.text)
    for at in range(0, n, MAX_LINE):
        part = word.text[at : at + MAX_LINE]
        character_s = (word.end_s - word.start_s) / n
        yield replace(
            word,
            text=part,
            start_s=word.start_s + at * character_s,
            end_s=word.end_s if at + MAX_LINE >= n else word.start_s + (at + len(part)) * character_s,
            space=word.space if at == 0 else False,
        )


# -- cues --------------------------------------------------------------------------------------------------------


def _group(words: Sequence[CaptionWord]) -> Iterator[list[CaptionWord]]:
    """Yield the words that share a cue: a sentence, several that are too short, or as much of one as fits."""
    group: list[CaptionWord] = []
    for i, word in enumerate(words):
        if group and word.start_s - group[-1].end_s > MAX_GAP_S:
            yield group
            group = []
        while group and not _fits([*group, word]):
            cut = _best_cut(group)
            yield group[:cut]
            group = group[cut:]
        group.append(word)
        next_s = words[i + 1].start_s if i + 1 < len(words) else float("inf")
        if _ends_sentence(word, next_s) and word.end_s - group[0].start_s >= MIN_CUE_S:
            yield group
            group = []
    if group:
        yield group


def _ends_sentence(word: CaptionWord, next_s: float) -> bool:
    return word.line_end or bool(
        not word.is_number and _SENTENCE_END.search(word.text) and next_s - word.end_s > MIN_STOP_S
    )


def _fits(words: Sequence[CaptionWord]) -> bool:
    return words[-1].end_s - words[0].start_s <= MAX_CUE_S and _wrap(words) is not None


def _best_cut(group: Sequence[CaptionWord]) -> int:
    """Return after how many words to cut a full group: the last sentence or clause end past 2/5 of it, else all."""
    for cut in range(len(group), 0, -1):
        if group[cut - 1].line_end:
            return cut
    for end in (_SENTENCE_END, _CLAUSE_END):
        for cut in range(len(group), 0, -1):
            last = group[cut - 1]
            if end.search(last.text) and not last.is_number and 5 * cut >= 2 * len(group):
                return cut
    return len(group) - (group[-1].is_number and len(group) > 1)


def _cue(words: Sequence[CaptionWord]) -> Cue:
    lines = _wrap(words)
    assert lines is not None  # groups are made so that they fit
    return Cue(words[0].start_s, words[-1].end_s, lines)


def _wrap(words: Sequence[CaptionWord]) -> tuple[tuple[CaptionWord, ...], ...] | None:
    """Return the words on one line, else on two of similar length, preferring a clause end; None if they do not fit.

    What is a line of its own in the text, such as a heading, stays one.
    """
    ends = [cut for cut in range(1, len(words)) if words[cut - 1].line_end]
    if ends:
        lines = (tuple(words[: ends[0]]), tuple(words[ends[0] :]))
        return lines if len(ends) == 1 and all(len(_join(line)) <= MAX_LINE for line in lines) else None
    if len(_join(words)) <= MAX_LINE:
        return (tuple(words),)
    best: tuple[float, int] | None = None
    for cut in range(1, len(words)):
        first, second = len(_join(words[:cut])), len(_join(words[cut:]))
        if first <= MAX_LINE and second <= MAX_LINE:
            bonus = CLAUSE_BONUS if _CLAUSE_END.search(words[cut - 1].text) else 0
            best = min(best or (1e9, 0), (abs(first - second) - bonus, cut))
    return best and (tuple(words[: best[1]]), tuple(words[best[1] :]))


def _join(line: Sequence[CaptionWord]) -> str:
    return "".join(f" {word.text}" if word.space and i else word.text for i, word in enumerate(line))


# -- files -------------------------------------------------------------------------------------------------------


def _clock(seconds: float, point: str) -> str:
    """Format as hours, minutes, seconds and milliseconds; each time is rounded independently."""
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


def _times(cue: Cue, point: str) -> str:
    return f"{_clock(cue.start_s, point)} --> {_clock(cue.end_s, point)}"


def _srt_text(cue: Cue) -> str:
    return cue.text.replace("-->", "→")


def _vtt_text(cue: Cue, by_word: bool) -> str:
    """Return the lines of a cue for WebVTT, with `by_word` a time stamp before each word but the first."""
    lines = []
    for line in cue.lines:
        text = ""
        for i, word in enumerate(line):
            stamp = f"<{_clock(word.start_s, '.')}>" if by_word and word.start_s > cue.start_s else ""
            text += (" " if word.space and i else "") + stamp + _escape(word.text)
        lines.append(text)
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _to_json(cue: Cue) -> dict[str, object]:
    words = _merge_parts(word.word for line in cue.lines for word in line)
    return {
        "start": round(cue.start_s, 3),
        "end": round(cue.end_s, 3),
        "text": cue.text,
        "words": [{"word": word.word, "start": round(word.start_s, 3), "end": round(word.end_s, 3),
                   "from": word.span[0], "to": word.span[1]} for word in words],
    }  # fmt: skip
