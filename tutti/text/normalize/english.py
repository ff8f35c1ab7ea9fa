"""English normalisation: one pass for each kind of writing, the most specific first."""

import re

from tutti.text.aligned_text import LETTER_A, AlignedText
from tutti.text.normalize import (
    abbreviations,
    chat,
    codes,
    dates,
    formulas,
    groups,
    keys,
    money,
    romans,
    scripture,
    symbols,
    units,
    web,
)
from tutti.text.normalize.regions import find_region
from tutti.text.options import ALL_ON, Normalization

# Anything but letters and plain punctuation; without it only abbreviations and Roman numerals can occur.
_NOT_PLAIN = re.compile(r"[^\sA-Za-zÀ-ɏ.,;:!?'\"“”()\[\]…—\ufffc-]|\.\w| -[A-Za-z]\b|-[->]|\bO\(")
_ITEM_A = re.compile(r"(?:\A\(?|(?<=\s)(?=.\)))(?P<letter>[aA])[.)]\s")  # a) in front of a list item
_DIGIT = re.compile(r"\d")
_OPTIONAL_PLURAL = re.compile(r"(?<=[a-z])\(s\)(?!\w)")  # item(s)
_MAY_ABBREVIATE = re.compile(
    r"[A-Z]{2}| [IVX]\b|\([ivx]{2,5}\)|\b(?:Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)\b"
    r"|[a-z] ?- ?[A-Z]|[a-z][A-Z]|\b(?:Ctrl|Cmd|Esc|Alt|PgUp|PgDn|PrtSc|[YQM]o[YQM])\b"
)


def guesses(text: str, code: str) -> tuple[str, ...]:
    """Return what of a sentence may be meant otherwise, one of each kind or ""."""
    if not _DIGIT.search(text):
        return ()
    return groups.guess(text), dates.guess(text, find_region(code)), units.guess(text)


def normalize(aligned: AlignedText, code: str, options: Normalization = ALL_ON) -> AlignedText:
    """Spell the sentence out; plain text is returned unchanged."""
    region = find_region(code)
    aligned = aligned.sub(_ITEM_A, lambda _: {"letter": LETTER_A})
    aligned = chat.expand(aligned) if options.chat_normalization else aligned
    if options.optional_pluralization_normalization and "(" in aligned.text:
        aligned = aligned.sub(_OPTIONAL_PLURAL, "s")
    aligned = abbreviations.expand_regional(aligned, region)
    if not _NOT_PLAIN.search(aligned.text):
        if not _MAY_ABBREVIATE.search(aligned.text) and not abbreviations.ANY_ABBREVIATION.search(aligned.text):
            return aligned
        return codes.expand(keys.expand(dates.expand(romans.expand(abbreviations.expand(aligned)), region)))
    aligned = groups.rewrite(symbols.to_ascii_digits(aligned), region)
    aligned = scripture.expand(codes.expand_identifiers(aligned))
    aligned = romans.expand(abbreviations.expand(aligned))
    aligned = dates.expand_joined(aligned, region)
    aligned = codes.expand(
        formulas.expand(web.expand(keys.expand(aligned), options)), phones=options.phone_normalization
    )
    aligned = dates.expand(units.expand_seconds(aligned, region), region)
    aligned = money.expand(aligned, region)
    if options.unit_normalization:
        aligned = units.expand(aligned, region)
    aligned = codes.expand_mixed(symbols.expand_products(aligned, region))
    return symbols.expand(aligned, region, signs=options.replace_remaining_symbols)
