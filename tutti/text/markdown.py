"""Remove Markdown and HTML markup, keep the words."""

import re
from html import unescape

from tutti.text.aligned_text import AlignedText
from tutti.text.code_blocks import replace_code_blocks
from tutti.text.marks import BREAK_TAG, break_seconds
from tutti.text.options import CodeBlocks
from tutti.text.tags import TAG, tag_mark

SCENE_BREAK = "[pause:0.8s]"  # more than twice the pause of a paragraph
HARD_BREAK = "\u2028"  # ends a sentence but not a paragraph: between list items and table rows


def strip_markdown(aligned: AlignedText, code_blocks: CodeBlocks = "announce", language: str = "en-us") -> AlignedText:
    """Remove emphasis, fences, rules, tags, link targets and table lines; the words keep their sources."""
    if not _ANY_MARKUP.search(aligned.text):
        return aligned
    aligned = replace_code_blocks(aligned, code_blocks, language)
    aligned = aligned.sub(_SCENE_BREAK, SCENE_BREAK) if "*" in aligned.text else aligned
    aligned = aligned.sub(_RULE, "\n").sub(BREAK_TAG, _pause_mark).sub(TAG, tag_mark).keep_group(_AUTOLINK, "link")
    aligned = aligned.sub(_TAGS, _replace_tags).sub(_ENTITY, _decode_entity)
    if "|" in aligned.text:
        table = _TABLE_LINE.search(aligned.text) is not None
        aligned = aligned.sub(_TABLE_LINE, "").sub(_ROW_START, HARD_BREAK).sub(_ROW_END, "")
        aligned = aligned.sub(_CELL if table else _SPACED_BAR, ", ")
    if "[" in aligned.text:
        aligned = aligned.keep_group(_LINK, "text").sub(FOOTNOTE, "")
    if "【" in aligned.text:
        aligned = aligned.sub(_CITATION, "")
    aligned = aligned.sub(_QUOTE, "").sub(_EMPTY_HEADING, "").sub(_HEADING, lambda match: {"sign": "\n", "end": "\n\n"})
    return aligned.sub(_ITEM, HARD_BREAK).sub(_EMPHASIS_OR_CODE, _emphasis)


# Every pattern takes linear time: repeats are possessive or bounded, and a match cannot start inside a longer one.
_ANY_MARKUP = re.compile(r"(?m)[*_`#|~<>\[&+\\•【]|^[ \t]*+[-=]")
_RULE = re.compile(r"(?m)^[ \t]*+(?:[-*_=~#+][ \t]*+){3,}+$")
_SCENE_BREAK = re.compile(r"(?<=\n)[ \t]*+(?:\*[ \t]*+){3,}+(?=\n\s*+\S)")  # of a novel: * * *
_AUTOLINK = re.compile(r"<(?P<link>(?:https?|ftp|mailto):[^<>\s]{1,1000}|[\w.+-]{1,64}@[\w.-]{1,250})>")
_TAG = re.compile(
    r"</?(?P<tag>[biusa]|em|strong|code|pre|su[bp]|span|small|mark|del|ins|div|p|br|hr|ul|ol|li|h[1-6]|table|t[rdh]"
    r"|thead|tbody|blockquote|details|summary)(?:\s[^<>\n=]{1,60}=[^<>\n]{1,300})?\s?/?>",
    re.IGNORECASE,
)
_TAGS = re.compile(f"(?:{_TAG.pattern})++", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_TABLE_LINE = re.compile(r"(?m)^[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)++(?:[ \t]*+:?-++:?[ \t]*+)?$")
_ROW_START = re.compile(r"(?m)^[ \t]*+\|[ \t]*+(?=[^\n]*\|)")
_ROW_END = re.compile(r"(?m)(?<![ \t|])[ \t]*+\|[ \t]*+$")
_CELL = re.compile(r"(?<![ \t|])[ \t]*+(?:\|[ \t]*+)++")
_SPACED_BAR = re.compile(r"(?<![ \t|])[ \t]++(?:\|[ \t]++)++")
# A target between slashes is not a link but the IPA of a word: parse_marks needs it.
_LINK = re.compile(
    r"!?\[(?P<text>[^\[\]\n]{1,300})\]\((?!/[^()\n]{1,200}/\))(?=[^()\s]{0,1000}[/.#:])"
    r'[^()\s]{1,1000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?(?:[ \t]"[^"\n]{0,200}")?\)'
)
_CITATION = re.compile("【[^【】\n]{0,40}†[^【】\n]{0,80}】")  # as some assistants mark their sources
FOOTNOTE = re.compile(r"\[\^[\w-]{1,30}\]:?")
_EMPTY_HEADING = re.compile(r"(?m)^ {0,3}#{1,6}[ \t]*+$")
_QUOTE = re.compile(r"(?m)^[ \t]*+(?:>[ \t]*+)++")
_HEADING = re.compile(r"(?m)^(?P<sign> {0,3}#{1,6}[ \t]++)[^\n]*+(?P<end>\n?)")
_ITEM = re.compile(r"(?m)^[ \t]*+[-*+•][ \t]++(?:\[[ xX]\][ \t]++)?(?=\S)")
_EMPHASIS_OR_CODE = re.compile(
    r"(?<![\w)])\*{2,3}|\*{2,3}(?!\d)"  # but not in 2**3
    r"|(?<![\w*)])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])"
    r"|(?<!\w)_{1,3}(?=[^\s_])|(?<=[^\s_])_{1,3}(?!\w)"
    r"|~~|`+|\\(?=[*_`#~\[\]$|>{}])"
)
_LINE_TAG = re.compile("div|p|br|hr|[uo]l|li|h[1-6]|table|tr|thead|tbody|blockquote|details|summary")


def _pause_mark(match: re.Match[str]) -> str:
    pause_s = break_seconds(match)
    return f"[pause:{pause_s:.3f}s]" if pause_s >= 0.001 else ""


def _emphasis(match: re.Match[str]) -> str | None:
    """Remove the sign, but for a star behind a figure that closes nothing: a 5* hotel."""
    before = match.string[max(0, match.start() - 200) : match.start()]
    return None if match[0] == "*" and before[-1:].isdecimal() and "*" not in before.rpartition("\n")[2] else ""


def _replace_tags(match: re.Match[str]) -> str:
    tags = {tag.lower() for tag in _TAG.findall(match[0])}
    return HARD_BREAK if any(map(_LINE_TAG.fullmatch, tags)) else " " if tags & {"td", "th"} else ""


def _decode_entity(match: re.Match[str]) -> str | None:
    char = unescape(match[0]).replace("\u00a0", " ")
    return char if len(char) == 1 and char.isprintable() and char < "\u2600" else None
