"""English as it is read aloud: one pass for each kind of writing, the most particular first."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize import abbreviations, codes, dates, keys, money, symbols, units, web

# Anything but letters and plain punctuation; without it only abbreviations and Roman numerals are left to find.
_SPECIAL = re.compile(r"[^\sA-Za-zÀ-ɏ.,;:!?'\"“”()\[\]…—\ufffc-]|\.\w|-[->]")
_CAPITALS = re.compile(
    r"[A-Z]{2}| [IVX]\b|\b(?:Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)\b"
    r"|[a-z] ?- ?[A-Z]|\b(?:Ctrl|Cmd|Esc|Alt|PgUp|PgDn|PrtSc|[YQM]o[YQM])\b"
)


def normalize(spoken: AlignedText, code: str) -> AlignedText:
    """The sentence in plain words; a text that is already plain comes back as it is."""
    british = code == "en-gb"
    if not _SPECIAL.search(spoken.text):
        if not _CAPITALS.search(spoken.text) and not abbreviations.FOUND.search(spoken.text):
            return spoken
        return codes.say(keys.say(dates.say(abbreviations.say(spoken), british)))
    spoken = codes.say(web.say(keys.say(abbreviations.say(symbols.western(spoken)))))
    spoken = dates.say(units.say_seconds(spoken, british), british)
    spoken = units.say(money.say(spoken, british), british)
    return symbols.say(codes.say_mixed(symbols.say_products(spoken, british)), british)
