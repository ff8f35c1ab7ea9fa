"""English as it is read aloud: one pass for each kind of writing, the most particular first."""

import re

from tutti.text.normalize import abbreviations, codes, dates, money, symbols, units, web
from tutti.text.spoken import Spoken

# Anything but letters and plain punctuation; without it only abbreviations and Roman numerals are left to find.
_SPECIAL = re.compile(r"[^\sA-Za-zÀ-ɏ.,;:!?'\"“”()\[\]…—\ufffc-]|\.\w|-[->]")
_CAPITALS = re.compile(r"[A-Z]{2}| [IVX]\b|\b(?:Jan|Feb|Apr|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)\b")


def normalize(spoken: Spoken, code: str) -> Spoken:
    """The sentence in plain words; a text that is already plain comes back as it is."""
    british = code == "en-gb"
    if not _SPECIAL.search(spoken.text):
        if not _CAPITALS.search(spoken.text) and not abbreviations.FOUND.search(spoken.text):
            return spoken
        return codes.say(dates.say(abbreviations.say(spoken), british))
    spoken = codes.say(web.say(abbreviations.say(symbols.western(spoken))))
    spoken = units.say(money.say(dates.say(spoken, british), british), british)
    return symbols.say(codes.say_mixed(symbols.say_products(spoken, british)), british)
