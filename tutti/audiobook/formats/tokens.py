"""Tokenise HTML and XHTML, also malformed: every pattern takes linear time, and nothing raises."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape

RAW = ("script", "style", "textarea", "title", "xmp", "noembed", "noframes")  # contain no tags
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))


@dataclass(frozen=True, slots=True)
class Tag:
    """A start tag, or an end tag if `closes`; an element without content is `empty`."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False
    empty: bool = False


def tokens(markup: str) -> Iterator[Tag | str]:
    """Tags and text in order, without comments, declarations and processing instructions."""
    at = 0
    while match := _TOKEN.match(markup, at):
        at = match.end()
        if (text := match["text"]) is not None:
            yield unescape(text)
        elif (data := match["data"]) is not None:
            yield data
        elif match["name"] is not None:
            tag = _tag(match)
            yield tag
            if tag.name in RAW and not tag.closes and not tag.empty:
                end = re.compile(rf"</{tag.name}(?=[\s/>])", re.IGNORECASE).search(markup, at)
                stop = end.start() if end else len(markup)
                if tag.name in ("textarea", "title", "xmp"):
                    yield unescape(markup[at:stop])
                at = stop


_TOKEN = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)"
    r"|<[!?][^>]*+>?"
    r"|<(?P<close>/)?(?P<name>[A-Za-z][^\s/>]*+)(?P<attributes>(?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+)>?"
    r"|(?P<text>[^<]++|<)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=/\"'>]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"']++)))?")


def _tag(match: re.Match[str]) -> Tag:
    name = match["name"].lower()
    source = match["attributes"]
    matches = _ATTRIBUTE.finditer(source)
    attributes = {m[1].lower(): unescape(m[2] or m[3] or m[4] or "") for m in matches}
    empty = name in VOID or source.rstrip().endswith("/")
    return Tag(name.rpartition(":")[2], attributes, match["close"] is not None, empty)
