"""Sentences, found lazily: where a full stop ends one, and where a line break does."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tutti.text.aligned_text import AlignedText
from tutti.text.markdown import HARD_BREAK

LONGEST_SENTENCE = 1000
LONGEST_WORD = 64
NARROW = 40  # lines shorter than this are verse, an address, a list: their author broke them on purpose


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is read as one sentence, on one line, and whether its paragraph ends there and another follows."""

    spoken: AlignedText
    paragraph_end: bool = False


def sentences(spoken: AlignedText) -> Iterator[Sentence]:
    """The sentences in order, none longer than LONGEST_SENTENCE; only white space is lost."""
    last: AlignedText | None = None
    for start, end in _stretches(_PARAGRAPH_END, spoken.text, 0, len(spoken)):
        fresh = last is not None
        for sentence in _paragraph(spoken, start, end):
            if last is not None:
                yield Sentence(last, paragraph_end=fresh)
            last, fresh = sentence, False
    if last is not None:
        yield Sentence(last)


def ends_paragraph(spoken: AlignedText) -> bool:
    """Whether a blank line stands at the end."""
    text = spoken.text
    return text[len(text.rstrip()) :].count("\n") > 1


_PARAGRAPH_END = re.compile(r"\n(?:[ \t]*+\n)++")
_NEWLINE = re.compile(rf"\n[ \t]*+{HARD_BREAK}?|{HARD_BREAK}")
_LIST_NUMBER = re.compile(r"[ \t]*+\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)][ \t]")
_CLOSERS = r"""["'”’)\]»」』】）]*+"""
_FULL_STOP = re.compile(
    rf"(?P<stop>[.!?…‽]++){_CLOSERS}(?:\[\d{{1,3}}\])*+(?=\s|$)|(?P<wide>[。！？｡।॥]++){_CLOSERS}(?![とのっ])"
)
_LAST_WORD = re.compile(r"[^\s\"'“”()\[\]—/]+$")
_NEXT_WORD = re.compile(r"\s*+[\"'“‘(\[¿¡«]*+((?:[^\W_]|['’])*+)")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # an initial, U.S, e.g, Ph.D without its last dot
_CLAUSE = re.compile(r"[,;:—…、，；：](?=\s|[^\x00-\u2fff])|\s[-—]\s")
_SPACE = re.compile(r"\s")
_BLANKS = re.compile(r"\s{2,}|[^\S ]")
# Scripts that write no spaces have no long words.
_LONG_WORD = re.compile(
    rf"[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7af]{{{LONGEST_WORD + 1},}}"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name follows these; others may end a sentence, which shows only in the word that follows.
_TITLES = _words(
    "mr mrs ms mx dr prof st ste sen rep gen gov col lt sgt capt cmdr maj adm pvt cpl rev hon fr pres supt messrs mme "
    "mlle mt ft sr sra srta dra dña ud uds sig dott ing avv prof.ssa mons pe"
)
_BEFORE_NUMBER = _words("no nos nr núm num vol ch chap fig figs eq sec sect art p pp pg pág par app ext op cit ver")
_ABBREVIATIONS = _words(
    "jr esq inc ltd co corp llc bros dept univ assn est vs etc al approx appt apt ave blvd rd ln pkwy hwy rte bldg "
    "cf viz ca incl excl min max avg temp tel fax ed eds trans repr misc fig ex rel resp "
    "oz lb lbs ft yd mi hr hrs sec secs mins km cm mm kg "
    "av bd ej aprox máx mín ecc pag tav env boul"
)
_CALENDAR = _words("jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun")
_STARTERS = _words(
    "the a an i he she it we you they this that these those there here his her its our my your their who what "
    "when where why how which if in on at by for from with as after before although while since because and "
    "but or so yet nor then now no not yes all some many most each every one two another any both few more "
    "other such once however moreover meanwhile finally first second next later today yesterday tomorrow "
    "please let do does did is are was were can could will would should have has had"
)


def _stretches(breaks: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What lies between the breaks, where it is not blank."""
    for match in breaks.finditer(text, start, end):
        if not text[start : match.start()].isspace() and start < match.start():
            yield start, match.start()
        start = match.end()
    if start < end and not text[start:end].isspace():
        yield start, end


def _paragraph(spoken: AlignedText, start: int, end: int) -> Iterator[AlignedText]:
    for a, b in _lines(spoken.text, start, end):
        for c, d in _between_stops(spoken.text, a, b):
            for e, f in _cut(spoken.text, c, d):
                sentence = spoken[e:f].strip().sub(_BLANKS, " ")
                yield _with_broken_words(sentence) if _LONG_WORD.search(sentence.text) else sentence


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches whose line breaks are mere wrapping."""
    breaks = list(_NEWLINE.finditer(text, start, end))
    edges = [start, *(match.end() for match in breaks)]
    widest = max(b - a for a, b in zip(edges, [*(match.start() for match in breaks), end], strict=True))
    done = line = start
    for match in breaks:
        if _ends_line(text, line, match, widest):
            if not text[done : match.start()].isspace() and done < match.start():
                yield done, match.start()
            done = match.end()
        line = match.end()
    if done < end and not text[done:end].isspace():
        yield done, end


def _ends_line(text: str, line: int, newline: re.Match[str], widest: int) -> bool:
    """Whether the break was meant: a list goes on, or the next word would still have fitted on the line."""
    at = newline.end()
    if newline[0].endswith(HARD_BREAK) or widest < NARROW or _LIST_NUMBER.match(text, at):
        return True
    gap = _SPACE.search(text, at, at + widest)
    next_word = (gap.start() if gap else at + widest) - at
    return newline.start() - line + 1 + next_word < widest - NARROW // 4


def _between_stops(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    done = start
    for match in _FULL_STOP.finditer(text, start, end):
        if match.end() < end and _ends_sentence(text, done, match, end):
            yield done, match.end()
            done = match.end()
    yield done, end


def _ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    if stop["wide"]:
        return True
    after = _NEXT_WORD.match(text, stop.end(), min(end, stop.end() + LONGEST_WORD))
    next_word = after[1] if after else ""
    lower = next_word[:1].islower()
    if stop["stop"] != ".":
        quoted = stop.end() > stop.end("stop")
        return not (lower and (quoted or stop["stop"][-1] in ".…"))
    found = _LAST_WORD.search(text[max(start, stop.start() - LONGEST_WORD) : stop.start()])
    if not found:
        return True
    word = found[0].lower()
    if stop.start() - start < 8 and _LIST_NUMBER.fullmatch(text[start : stop.end()].lstrip() + " "):
        return False  # "1." or "a." in front of a list item
    if word in _TITLES:
        return False
    if word in _BEFORE_NUMBER and (next_word[:1].isdigit() or word not in ("no", "art", "app", "par")):
        return False
    if word == "etc":
        return not lower
    calendar = word in _CALENDAR and found[0][0].isupper()  # but a cat sat
    if calendar or word in _ABBREVIATIONS or _DOTTED.fullmatch(word):
        return next_word.lower() in _STARTERS and not lower and word not in ("e.g", "i.e", "vs", "cf", "viz")
    return True


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence of bearable length, or pieces of one: cut at clause marks, else at blanks, else anywhere."""
    while end - start > LONGEST_SENTENCE:
        cut = _last_end(_CLAUSE, text, start) or _last_end(_SPACE, text, start) or start + LONGEST_SENTENCE
        if not text[start:cut].isspace():
            yield start, cut
        start = cut
    if start < end and not text[start:end].isspace():
        yield start, end


def _last_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where the last match in the second half of a longest sentence ends, or 0."""
    end = 0
    for match in pattern.finditer(text, start + LONGEST_SENTENCE // 2, start + LONGEST_SENTENCE):
        end = match.end()
    return end


def _with_broken_words(sentence: AlignedText) -> AlignedText:
    whole = sentence[:0]
    done = 0
    for match in _LONG_WORD.finditer(sentence.text):
        for cut in range(match.start() + LONGEST_WORD, match.end(), LONGEST_WORD):
            tie = sentence.ends[cut - 1]
            whole += sentence[done:cut] + AlignedText(" ", (tie,), (tie,))
            done = cut
    return whole + sentence[done:]
