"""Split text into sentences, lazily: at full stops that end one, and at line breaks that the author meant."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tutti.text.aligned_text import AlignedText
from tutti.text.markdown import HARD_BREAK
from tutti.text.options import Pauses

MAX_SENTENCE = 1000  # characters; longer ones are cut at clauses
MAX_WORD = 64  # characters; a blank is put into longer ones
NARROW_LINE = 40  # characters: if all lines are shorter (verse, an address, a list), every break is meant


@dataclass(frozen=True, slots=True)
class AlignedSentence:
    """One sentence, without line breaks, and whether its paragraph ends with it and another follows."""

    aligned: AlignedText
    paragraph_end: bool = False


def sentences(aligned: AlignedText) -> Iterator[AlignedSentence]:
    """Yield the sentences in order, none longer than MAX_SENTENCE; only white space is lost."""
    previous: AlignedText | None = None
    for start, end in _between(_PARAGRAPH_END, aligned.text, 0, len(aligned)):
        paragraph_starts = previous is not None
        for sentence in _split_paragraph(aligned, start, end):
            if previous is not None:
                yield AlignedSentence(previous, paragraph_end=paragraph_starts)
            previous, paragraph_starts = sentence, False
    if previous is not None:
        yield AlignedSentence(previous)


def pause_after(text: str, pauses: Pauses, *, paragraph_end: bool = False) -> float:
    """Return the seconds of silence after a text that is followed by more: as it ends a paragraph, a sentence or none.

    A blank line at its end ends a paragraph, too.
    """
    ended = text.rstrip()
    if paragraph_end or text[len(ended) :].count("\n") > 1:
        return pauses.paragraph / 1000
    return pauses.sentence / 1000 if _ENDED.search(ended[-TAIL:]) else 0.0


def is_silent(text: str) -> bool:
    """Tell whether a long text has only signs that no language speaks or reports, and no end of a paragraph.

    A shorter one may be a pause between two words.
    """
    return len(text) > LONG and _SILENT.fullmatch(text) is not None and not _PARAGRAPH_END.search(text)


TAIL = 20  # characters of a text that show whether a sentence ends with it
LONG = 1000  # characters without a word that are passed over; larger reads more of them sentence by sentence
_SILENT = re.compile(r"[\s.,;:!?…—|\"“”()*_-]*+")
_PARAGRAPH_END = re.compile(r"\n(?:[ \t]*+\n)++")
_NEWLINE = re.compile(rf"\n[ \t]*+{HARD_BREAK}?|{HARD_BREAK}")
_LIST_NUMBER = re.compile(r"[ \t]*+\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)][ \t]")
_CLOSERS = r"""["'”’)\]»」』】）]*+"""
_FULL_STOP = re.compile(
    rf"(?P<stop>[.!?…‽]++){_CLOSERS}(?:\[\d{{1,3}}\])*+(?=\s|$)|(?P<wide>[。！？｡।॥]++){_CLOSERS}(?![とのっ])"
)
_ENDED = re.compile(rf"[.!?…‽。！？｡।॥]{_CLOSERS}$")
_LAST_WORD = re.compile(r"[^\s\"'“”()\[\]—/]+$")
_NEXT_WORD = re.compile(r"\s*+[\"'“‘(\[¿¡«]*+((?:[^\W_]|['’])*+)")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,4}|[^\W\d_]")  # without its last dot: an initial, U.S, e.g, Ph.D
_CLAUSE = re.compile(r"[,;:—…、，；：](?=\s|[^\x00-\u2fff])|\s[-—]\s")
_SPACE = re.compile(r"\s")
_BLANKS = re.compile(r"\s{2,}|[^\S ]")
# Scripts that write no spaces have no long words.
_LONG_WORD = re.compile(rf"[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7af]{{{MAX_WORD + 1},}}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name follows these; after other abbreviations only the next word tells whether the sentence ends.
_TITLES = _words(
    "mr mrs ms mx dr prof st ste sen rep gen gov col lt sgt capt cmdr maj adm pvt cpl rev hon fr pres supt messrs mme "
    "डॉ प्रो पं स्व ee rr jj cc ff lic arq gral cnel avda pza plza ctra apdo dña mtro mons card p.zza v.le c.so l.go "
    "dott.ssa sig.ra smt mlle mt ft sr sra srta dra dña ud uds sig dott ing avv prof.ssa mons pe dir dep arr"
)
_BEFORE_NUMBER = _words(
    "ene feb abr jun jul oct nov sept ago dic janv févr fevr avr juil déc gen genn magg mag giu lug lugl sett ott "
    "fev mai set out dez lun mar mer jeu ven sam dim mié jue vie sáb gio seg ter qua qui sex पृ सं नं क्र रु "
    "no nos rs exp nr nrn godz стр рис табл abs kap abb tab ziff núm num vol ch chap fig figs eq sec sect art p pp pg "
    "pág par app ext op cit ver"
)
_BEFORE_NUMBER |= _words(  # books of the Bible
    "gen exod lev num deut josh judg sam kgs chron chr neh esth ps prov eccl isa jer lam ezek dan hos mic hab zech mal "
    "matt mk lk jn rom cor gal eph phil col thess tim tit heb jas pet rev"
)
_ABBREVIATIONS = _words(
    "jr esq inc ltd co corp llc bros dept univ assn est vs etc al approx appt apt ave blvd rd ln pkwy hwy rte bldg "
    "cf viz ca incl excl min max avg temp tel fax ed eds trans repr misc fig ex rel resp "
    "ea tsp tbsp equiv fl sq cu qt qts pt pts pkg pkgs doz opp oz lb lbs ft yd mi hr hrs sec secs mins km cm mm kg "
    "av bd ej aprox máx mín ecc pag tav env boul "
    "bzw usw usf evtl ggf inkl exkl zzgl abzgl bspw vgl sog geb "
    "kl kap bl osv dvs np itd itp tj tzn tzw ok zob rozdz ul "
    "тыс руб коп млн млрд см стр рис ул им тел проф др пр г гг в вв н э п д кв с ч мин сек шт обл"
)
_DAYS_AND_MONTHS = _words(
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun"
)
# Ordinals are written with a full stop in German, Polish and other languages.
_ORDINAL = re.compile(r"\d{1,4}|\d{1,2}\.\d{1,2}|[ivx]{2,6}")
_BEFORE_ORDINAL = _words(
    "am im der die das dem den des vom zum zur beim seit ab bis ihr ihre ihrem ihren sein seine seinem seinen mein "
    "meinem meinen unser unserem unseren jeder jede jedes jedem jeden"
)
_AFTER_ORDINAL = _words(
    "januar februar märz april mai juni juli august september oktober november dezember jan feb febr mär apr aug sep "
    "sept okt nov dez og stock etage klasse jahrhundert jh"
)
_SENTENCE_STARTERS = _words(
    "the a an i he she it we you they this that these those there here his her its our my your their who what "
    "when where why how which if in on at by for from with as after before although while since because and "
    "but or so yet nor then now no not yes all some many most each every one two another any both few more "
    "other such once however moreover meanwhile finally first second next later today yesterday tomorrow "
    "please let do does did is are was were can could will would should have has had "
    "der die das ein eine es er sie wir ihr ich und aber dann danach doch auch so wenn weil als im am in auf mit"
)


def _between(breaks: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges between the breaks that are not blank."""
    for match in breaks.finditer(text, start, end):
        if not text[start : match.start()].isspace() and start < match.start():
            yield start, match.start()
        start = match.end()
    if start < end and not text[start:end].isspace():
        yield start, end


def _split_paragraph(aligned: AlignedText, start: int, end: int) -> Iterator[AlignedText]:
    text = aligned.text
    for line_start, line_end in _lines(text, start, end):
        for stop_start, stop_end in _between_stops(text, line_start, line_end):
            for cut_start, cut_end in _cut(text, stop_start, stop_end):
                sentence = aligned[cut_start:cut_end].strip().sub(_BLANKS, " ")
                yield _break_long_words(sentence) if _LONG_WORD.search(sentence.text) else sentence


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges between line breaks that are meant; other line breaks are mere wrapping."""
    breaks = list(_NEWLINE.finditer(text, start, end))
    edges = [start, *(match.end() for match in breaks)]
    widest = max(b - a for a, b in zip(edges, [*(match.start() for match in breaks), end], strict=True))
    line = start
    for match in breaks:
        if _is_meant(text, line, match, widest):
            if not text[start : match.start()].isspace() and start < match.start():
                yield start, match.start()
            start = match.end()
        line = match.end()
    if start < end and not text[start:end].isspace():
        yield start, end


def _is_meant(text: str, line: int, newline: re.Match[str], widest: int) -> bool:
    """Tell whether a break is meant: a list item follows, or the next word would still have fitted on the line."""
    at = newline.end()
    if newline[0].endswith(HARD_BREAK) or widest < NARROW_LINE or _LIST_NUMBER.match(text, at):
        return True
    gap = _SPACE.search(text, at, at + widest)
    next_word = (gap.start() if gap else at + widest) - at
    return newline.start() - line + 1 + next_word < widest - NARROW_LINE // 4


def _between_stops(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that end with a full stop which ends a sentence."""
    for match in _FULL_STOP.finditer(text, start, end):
        if match.end() < end and _ends_sentence(text, start, match, end):
            yield start, match.end()
            start = match.end()
    yield start, end


def _ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    if stop["wide"]:
        return True
    after = _NEXT_WORD.match(text, stop.end(), min(end, stop.end() + MAX_WORD))
    next_word = after[1] if after else ""
    lower = next_word[:1].islower()
    if stop["stop"] != ".":
        quoted = stop.end() > stop.end("stop")
        return not (lower and (quoted or stop["stop"][-1] in ".…"))
    last_word = _LAST_WORD.search(text[max(start, stop.start() - MAX_WORD) : stop.start()])
    if not last_word:
        return True
    word = last_word[0].lower()
    if _ORDINAL.fullmatch(word) and (lower or _is_before_noun(text, start, stop.start() - len(word), next_word)):
        return False
    if stop.start() - start < 8 and _LIST_NUMBER.fullmatch(text[start : stop.end()].lstrip() + " "):
        return False  # "1." or "a." in front of a list item
    if word in _TITLES:
        return False
    if next_word[:1].isdigit() and word.endswith("str"):
        return False  # Hauptstr. 5
    if word in _BEFORE_NUMBER and (next_word[:1].isdigit() or word not in ("no", "art", "app", "par", "abs", "tab")):
        return False
    if word in ("etc", "uu", "c.-à-d"):  # EE. UU. and c.-à-d. in the middle of a sentence
        return not lower
    is_day_or_month = word in _DAYS_AND_MONTHS and last_word[0][0].isupper()  # but not in "the cat sat."
    if is_day_or_month or word in _ABBREVIATIONS or _DOTTED.fullmatch(word):
        return next_word.lower() in _SENTENCE_STARTERS and not lower and word not in ("e.g", "i.e", "vs", "cf", "viz")
    return True


def _is_before_noun(text: str, start: int, end: int, next_word: str) -> bool:
    """Tell whether the figure behind `end` is an ordinal of a noun: "am 3. Mai", "der 2. Versuch"."""
    before = _LAST_WORD.search(text[max(start, end - MAX_WORD) : end].rstrip())
    first = next_word.lower()
    return first in _AFTER_ORDINAL or (
        before is not None and before[0].lower() in _BEFORE_ORDINAL and first not in _SENTENCE_STARTERS
    )


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a sentence, or if it is too long pieces of it: cut at clause marks, else at blanks, else anywhere."""
    while end - start > MAX_SENTENCE:
        cut = _last_end(_CLAUSE, text, start) or _last_end(_SPACE, text, start) or start + MAX_SENTENCE
        if not text[start:cut].isspace():
            yield start, cut
        start = cut
    if start < end and not text[start:end].isspace():
        yield start, end


def _last_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where the last match in the second half of MAX_SENTENCE characters ends, or 0."""
    end = 0
    for match in pattern.finditer(text, start + MAX_SENTENCE // 2, start + MAX_SENTENCE):
        end = match.end()
    return end


def _break_long_words(sentence: AlignedText) -> AlignedText:
    """Put a blank into words after every MAX_WORD letters."""
    broken = sentence[:0]
    start = 0
    for match in _LONG_WORD.finditer(sentence.text):
        for cut in range(match.start() + MAX_WORD, match.end(), MAX_WORD):
            source = sentence.ends[cut - 1]
            broken += sentence[start:cut] + AlignedText(" ", (source,), (source,))
            start = cut
    return broken + sentence[start:]
