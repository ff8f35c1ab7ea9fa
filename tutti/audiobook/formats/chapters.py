"""Group sections into chapters, by the level of their headings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tutti.audiobook.book import Chapter

MAX_CHAPTERS = 5_000  # of a book; the Bible has about 1,200
MAX_HEADINGS = 20_000  # of all levels, in one document: more are refused while it is parsed


@dataclass(frozen=True, slots=True)
class Section:
    """Text from one heading of any level to the next; the text starts with the heading."""

    title: str
    level: int  # of the heading, 1 to 6; 0 = before the first heading
    text: str
    bare: bool = False  # only a heading, no text


def chapters(sections: Sequence[Section]) -> tuple[Chapter, ...]:
    """Merge sections into chapters: deeper headings stay inside one, a bare heading joins the next."""
    depth = chapter_level(sections)
    merged: list[tuple[str, list[str]]] = []  # title and texts
    pending: list[str] = []  # bare headings, for the start of the next chapter
    above = ""  # title of the part that the next chapter opens
    for section in sections:
        begins = section.level == 0 or section.level <= depth
        if not begins and merged and not pending:
            merged[-1][1].append(section.text)
            continue
        if section.bare and begins:
            pending.append(section.text)
            above = section.title if section.level < depth else ""
            continue
        if not section.text.strip():
            continue
        title = f"{above}: {section.title}" if above and section.title else section.title or above
        merged.append((title, [*pending, section.text]))
        pending, above = [], ""
    if pending:  # bare headings at the end
        if merged:
            merged[-1][1].extend(pending)
        else:
            merged.append((sections[0].title, pending))
    return tuple(Chapter(title, _join(texts)) for title, texts in merged)


def chapter_level(sections: Sequence[Section]) -> int:
    """The first level with several headings, unless most of them are bare: then the next level."""
    n_headings = Counter(section.level for section in sections if section.level)
    n_bare = Counter(section.level for section in sections if section.bare)
    levels = sorted(n_headings)
    for level in levels:
        if level == levels[-1] or (n_headings[level] > 1 and n_bare[level] * 2 <= n_headings[level]):
            return level
    return 0


def _join(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
