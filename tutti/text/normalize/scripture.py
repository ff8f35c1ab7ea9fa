"""Places in the Bible: "1 Cor. 13:4-8" is "first Corinthians thirteen four to eight"."""

import re

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize.numbers import cardinal, ordinal

# Abbreviations of the SBL Handbook of Style and of common use.
_BOOKS = {
    "Gen": "Genesis", "Exod": "Exodus", "Ex": "Exodus", "Lev": "Leviticus", "Num": "Numbers", "Deut": "Deuteronomy",
    "Josh": "Joshua", "Judg": "Judges", "Sam": "Samuel", "Kgs": "Kings", "Chron": "Chronicles", "Chr": "Chronicles",
    "Neh": "Nehemiah", "Esth": "Esther", "Ps": "Psalm", "Prov": "Proverbs", "Eccl": "Ecclesiastes", "Isa": "Isaiah",
    "Jer": "Jeremiah", "Lam": "Lamentations", "Ezek": "Ezekiel", "Dan": "Daniel", "Hos": "Hosea", "Mic": "Micah",
    "Hab": "Habakkuk", "Zech": "Zechariah", "Mal": "Malachi", "Matt": "Matthew", "Mt": "Matthew", "Mk": "Mark",
    "Lk": "Luke", "Jn": "John", "Rom": "Romans", "Cor": "Corinthians", "Gal": "Galatians", "Eph": "Ephesians",
    "Phil": "Philippians", "Col": "Colossians", "Thess": "Thessalonians", "Tim": "Timothy", "Tit": "Titus",
    "Heb": "Hebrews", "Jas": "James", "Pet": "Peter", "Rev": "Revelation",
}  # fmt: skip
_FULL = (
    "Ruth|Job|Joel|Amos|Obadiah|Jonah|Nahum|Zephaniah|Haggai|Mark|Luke|John|Acts|James|Jude|Psalms?|Ezra|Philemon"
    "|Song of Songs|"
) + "|".join(dict.fromkeys(_BOOKS.values()))
_PLACE = re.compile(
    rf"(?<![\w.])(?:(?P<nth>[1-3])\s)?(?P<book>(?:{'|'.join(_BOOKS)})\b\.?|(?:{_FULL})\b)\s"
    r"(?P<chapter>\d{1,3})(?P<colon>:)(?P<verse>\d{1,3})(?:(?P<to>-)(?P<last>\d{1,3}))?(?![\w:]|\.\d)"
)
_CHAPTER = re.compile(
    rf"(?<![\w.])(?P<nth>[1-3])\s(?P<book>(?:{'|'.join(_BOOKS)})\.)\s(?P<chapter>\d{{1,3}})(?![\w:]|\.\d)"
)
_VERSES = re.compile(
    r"(?<![\w:.])(?P<chapter>\d{1,3})(?P<colon>:)(?P<verse>\d)(?P<to>-)(?P<last>\d{1,3})(?![\w:]|\.\d)"
)


def expand(aligned: AlignedText) -> AlignedText:
    """Spell out places in the Bible."""
    if ":" in aligned.text:
        aligned = aligned.sub(_PLACE, _place).sub(_VERSES, _place)
    return aligned.sub(_CHAPTER, _place) if "." in aligned.text else aligned


def _place(match: re.Match[str]) -> Replacement:
    parts = {name: part for name, part in match.groupdict().items() if part}
    return {name: _words(name, part) for name, part in parts.items()}


def _words(name: str, part: str) -> str:
    match name:
        case "book":
            book = part.rstrip(".")
            return _BOOKS.get(book, book)
        case "nth":
            return ordinal(int(part))
        case "colon":
            return " "
        case "to":
            return " to "
    return cardinal(int(part))
