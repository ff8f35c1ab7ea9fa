"""Group sections into chapters, by the level of their headings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tutti.audiobook.book import Chapter


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
    merged: list[Chapter] = []
    pending: list[str] = []  # bare headings, for the start of the next chapter
    above = ""  # title of the part that the next chapter opens
    for section in sections:
        begins = section.level == 0 or section.level <= depth
        if not begins and merged and not pending:
            merged[-1] = Chapter(merged[-1].title, _join((merged[-1].text, section.text)))
            continue
        if section.bare and begins:
            pending.append(section.text)
            above = section.title if section.level < depth else ""
            continue
        if not section.text.strip():
            continue
        title = f"{above}: {section.title}" if above and section.title else section.title or above
        merged.append(Chapter(title, _join((*pending, section.text))))
        pending, above = [], ""
    if pending:  # bare headings at the end
        if merged:
            merged[-1] = Chapter(merged[-1].title, _join((merged[-1].text, *pending)))
        else:
            merged.append(Chapter(sections[0].title, _join(pending)))
    return tuple(merged)


def chapter_level(sections: Sequence[Section]) -> int:
    """The first level with several headings, unless most of them are bare: then the next level."""
    levels = sorted({section.level for section in sections if section.level})
    for n, level in enumerate(levels):
        headings = [section for section in sections if section.level == level]
        last = n == len(levels) - 1
        if last or (len(headings) > 1 and sum(section.bare for section in headings) * 2 <= len(headings)):
            return level
    return 0


def _join(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
