"""Parts of a book that a listener may not want: how each is found, and leaving them out with a note."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tutti.audiobook.book import Book, Chapter
from tutti.errors import InvalidInput, did_you_mean

ALWAYS = frozenset({"cover", "contents"})  # of no use to a listener; chapters that only have such a title are read
MAX_COVER_CHARACTERS = 300  # of a page that is said to be the cover; with more text, it is read
MAX_COPYRIGHT_CHARACTERS = 6000  # a page that is longer is no copyright page, whatever it mentions

# What authors of EPUB and HTML call a part, in epub:type, role and the guide.
OF_TYPE = {
    **dict.fromkeys(("footnote", "endnote", "rearnote", "doc-footnote", "doc-endnote"), "note"),
    **dict.fromkeys(("footnotes", "endnotes", "rearnotes", "doc-footnotes", "doc-endnotes"), "notes"),
    **dict.fromkeys(("copyright-page", "imprint", "copyright"), "copyright"),
    **dict.fromkeys(("cover", "doc-cover"), "cover"),
    **dict.fromkeys(("toc", "doc-toc"), "contents"),
    **dict.fromkeys(("titlepage", "title-page"), "titlepage"),
    **dict.fromkeys(("dedication", "doc-dedication"), "dedication"),
    **dict.fromkeys(("acknowledgments", "acknowledgements", "doc-acknowledgments"), "acknowledgments"),
    **dict.fromkeys(("bibliography", "doc-bibliography"), "bibliography"),
    **dict.fromkeys(("index", "doc-index"), "index"),
}
# Titles of chapters that are such a part; what is in capitals or has a final full stop is the same.
_TITLES = {
    "copyright": r"(?:copyright|imprint|impressum|droits d'auteur|derechos de autor)(?: (?:page|notice|information))?",
    "contents": r"(?:table of )?contents|inhalt(?:sverzeichnis)?|table des matières|sommaire|índice general|sumário",
    "notes": r"(?:foot|end)?notes|(?:fuß|end)?noten|anmerkungen|notas|note|примечания|przypisy|noter",
    "titlepage": r"title page|titelblatt|page de titre|portada|frontespizio",
    "dedication": r"dedication|widmung|dédicace|dedicatoria|dedica",
    "acknowledgments": r"acknowledge?ments|danksagung|remerciements|agradecimientos|ringraziamenti|agradecimentos",
    "bibliography": r"(?:selected )?bibliography|references|literaturverzeichnis|bibliographie|bibliograf[íi]a",
    "index": r"(?:subject |general )?index|(?:sach|personen)?register|índice alfabético|indice analitico",
}
PARTS = (*_TITLES, "cover")
_OF_TITLE = {part: re.compile(pattern, re.IGNORECASE) for part, pattern in _TITLES.items()}
_COPYRIGHT = re.compile(
    r"(©|\(c\)|copyright)|(isbn)|(all rights reserved|alle rechte vorbehalten|tous droits réservés|todos los derechos"
    r"|tutti i diritti)|(first published|first edition|library of congress|published by)",
    re.IGNORECASE,
)
COVER_TEXT = re.compile(
    r"(?:(?:front|book|the) )*cover(?:[ -]?(?:image|page|art|picture|photo|illustration))?(?: (?:of|for) .{1,200})?"
    r"|couverture|umschlag(?:bild)?|titelbild|cubierta|copertina|capa|okładka|обложка",
    re.IGNORECASE,
)
# The word before the text of a note, by the language of the book.
_NOTE_WORDS = {
    "de": "Anmerkung", "es": "Nota", "it": "Nota", "pt": "Nota", "pl": "Przypis", "ru": "Примечание", "sv": "Not",
    "nl": "Noot", "ja": "注", "zh": "注", "hi": "टिप्पणी", "vi": "Chú thích",
}  # fmt: skip


def parse_skip(text: str) -> frozenset[str]:
    """Read names of parts with commas between them; raise InvalidInput for another name."""
    names = frozenset(name.strip().lower() for name in text.split(",") if name.strip())
    for name in sorted(names - set(PARTS)):
        hint = did_you_mean(name, PARTS) or ";"
        raise InvalidInput(f"{name[:40]!r} is no part that can be skipped{hint} use {', '.join(PARTS)}", param="skip")
    return names


def note_word(language: str) -> str:
    """What a note is announced with."""
    return _NOTE_WORDS.get(language[:2].lower(), "Note")


def part_of_chapter(title: str, text: str) -> str:
    """Which part a chapter is, by its title or because it reads as a copyright page; "" if none."""
    plain = " ".join(title.split()).strip(" .:")
    named = next((part for part, pattern in _OF_TITLE.items() if pattern.fullmatch(plain)), "")
    return named or ("copyright" if is_copyright(text) else "")


def is_copyright(text: str) -> bool:
    """Whether a page has at least two of the marks of a copyright page, and little else."""
    if len(text) > MAX_COPYRIGHT_CHARACTERS:
        return False
    return len({match.lastindex for match in _COPYRIGHT.finditer(text)}) > 1


@dataclass(slots=True)
class Skipping:
    """Leaves parts out of a book, and counts what was left out."""

    parts: frozenset[str] = frozenset()  # beside those of ALWAYS
    _n_characters: dict[str, int] = field(default_factory=dict)

    def skips(self, text: str, parts: Iterable[str]) -> bool:
        """Whether a text in these parts is left out; it is counted then."""
        wanted = self.parts | ALWAYS | ({"note"} if "notes" in self.parts else set())
        part = next((part for part in parts if part in wanted), "")
        if part:
            self.count("notes" if part == "note" else part, text)
        return bool(part)

    def count(self, part: str, text: str) -> None:
        self._n_characters[part] = self._n_characters.get(part, 0) + len(text)

    def book(self, book: Book) -> Book:
        """The book without its chapters that are such a part, and with a note for all that was left out."""
        chapters = tuple(chapter for chapter in book.chapters if not self._skips_chapter(chapter))
        return replace(book, chapters=chapters, notes=(*book.notes, *self.notes()))

    def _skips_chapter(self, chapter: Chapter) -> bool:
        part = part_of_chapter(chapter.title, chapter.text) if self.parts else ""
        return part in self.parts and self.skips(chapter.text, (part,))

    def notes(self) -> Sequence[str]:
        found = [f"skipped: {part} ({n:,} characters)" for part, n in sorted(self._n_characters.items())]
        missing = sorted(self.parts - self._n_characters.keys() - ALWAYS)
        return [*found, *(f"nothing was skipped as {part}: the book has none that could be found" for part in missing)]
