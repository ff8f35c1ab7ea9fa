"""HTML and XHTML in tokens, however broken: every pattern is linear, and nothing raises."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape

RAW = ("script", "style", "textarea", "title", "xmp", "noembed", "noframes")  # no tags inside these
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))


@dataclass(frozen=True, slots=True)
class Tag:
    """A start tag, or an end tag if `closes`; an element that has no content is `empty`."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False
    empty: bool = False


def tokens(markup: str) -> Iterator[Tag | str]:
    """Tags and stretches of text, in order; comments, declarations and instructions are passed over."""
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
    written = match["attributes"]
    attributes = {
        found[1].lower(): unescape(found[2] or found[3] or found[4] or "") for found in _ATTRIBUTE.finditer(written)
    }
    empty = name in VOID or written.rstrip().endswith("/")
    return Tag(name.rpartition(":")[2], attributes, match["close"] is not None, empty)
