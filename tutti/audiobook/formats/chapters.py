"""Where chapters begin: the level of headings that a listener would jump to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tutti.audiobook.book import Chapter


@dataclass(frozen=True, slots=True)
class Part:
    """Text from one heading to the next, whatever their levels; the heading itself is in the text."""

    title: str
    level: int  # 0 = before the first heading
    text: str
    bare: bool = False  # nothing but its heading


def chapters(parts: Sequence[Part]) -> tuple[Chapter, ...]:
    """The parts as chapters: deeper headings stay inside one, a heading with nothing under it goes to the next."""
    depth = chapter_level(parts)
    made: list[Chapter] = []
    texts: list[str] = []  # of headings that wait for what they head
    above = ""
    for part in parts:
        begins = part.level == 0 or part.level <= depth
        if not begins and made and not texts:
            made[-1] = Chapter(made[-1].title, _together((made[-1].text, part.text)))
            continue
        if part.bare and begins:
            texts.append(part.text)
            above = part.title if part.level < depth else ""
            continue
        if not part.text.strip():
            continue
        title = f"{above}: {part.title}" if above and part.title else part.title or above
        made.append(Chapter(title, _together((*texts, part.text))))
        texts, above = [], ""
    if texts:  # the last headings head nothing
        if made:
            made[-1] = Chapter(made[-1].title, _together((made[-1].text, *texts)))
        else:
            made.append(Chapter(parts[0].title, _together(texts)))
    return tuple(made)


def chapter_level(parts: Sequence[Part]) -> int:
    """The first level that occurs more than once, or the one below it where its headings only hold others."""
    levels = sorted({part.level for part in parts if part.level})
    for n, level in enumerate(levels):
        these = [part for part in parts if part.level == level]
        last = n == len(levels) - 1
        if last or (len(these) > 1 and sum(part.bare for part in these) * 2 <= len(these)):
            return level
    return 0


def _together(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
