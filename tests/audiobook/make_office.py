"""Build .docx, .odt and .fb2 files for tests, as Word, LibreOffice and FictionBook editors write them."""

import io
import zipfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

from tests.audiobook.make_epub import zip_file

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
WP = 'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (
        ("office", "office"), ("text", "text"), ("style", "style"), ("table", "table"), ("draw", "drawing"),
        ("svg", "svg-compatible"), ("meta", "meta"),
    )
)  # fmt: skip
STYLES = f"""<w:styles {W}>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>
</w:style><w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift1"/></w:style>
<w:style w:type="paragraph" w:styleId="H2"><w:name w:val="heading 2"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="TOC1"><w:name w:val="toc 1"/></w:style></w:styles>"""
NUMBERING = f"""<w:numbering {W}>
<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>
</w:numbering>"""


def w_run(text: str, *, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def w_p(*runs: str, style: str = "", number: str = "") -> str:
    """A paragraph of runs, or of plain texts."""
    of_list = f'<w:numPr><w:ilvl w:val="0"/><w:numId w:val="{number}"/></w:numPr>' if number else ""
    of_style = f'<w:pStyle w:val="{style}"/>' if style else ""
    inner = "".join(run if run.startswith("<") else w_run(run) for run in runs)
    return f"<w:p><w:pPr>{of_style}{of_list}<w:rPr><w:vanish/></w:rPr></w:pPr>{inner}</w:p>"


def docx(
    body: str,
    *,
    footnotes: Mapping[str, str] | None = None,
    title: str = "",
    author: str = "",
    language: str = "en",
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    core = f'<cp:core xmlns:cp="x" {DC}><dc:title>{escape(title)}</dc:title><dc:creator>{escape(author)}</dc:creator>'
    notes = "".join(f'<w:footnote w:id="{id}">{content}</w:footnote>' for id, content in (footnotes or {}).items())
    members: dict[str, str | bytes] = {
        "word/document.xml": f"<w:document {W} {WP}><w:body>{body}<w:sectPr/></w:body></w:document>",
        "word/styles.xml": STYLES,
        "word/numbering.xml": NUMBERING,
        "word/footnotes.xml": f'<w:footnotes {W}><w:footnote w:type="separator" w:id="-1"><w:p/></w:footnote>{notes}'
        "</w:footnotes>",
        "docProps/core.xml": f"{core}<dc:language>{language}</dc:language></cp:core>",
    }
    return zip_file(members | dict(extra or {}))


def odt(
    body: str,
    *,
    title: str = "",
    author: str = "",
    language: str = "en",
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    styles = (
        '<style:style style:name="P9" style:family="paragraph" style:parent-style-name="Title"/>'
        '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/>'
        '</text:list-style><text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/>'
        "</text:list-style>"
    )
    content = (
        f"<office:document-content {ODF}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    meta = (
        f"<office:document-meta {ODF} {DC}><office:meta><dc:title>{escape(title)}</dc:title>"
        f"<meta:initial-creator>{escape(author)}</meta:initial-creator><dc:creator>Somebody Else</dc:creator>"
        f"<dc:language>{language}</dc:language></office:meta></office:document-meta>"
    )
    return zip_file({"content.xml": content, "meta.xml": meta} | dict(extra or {}))


def fb2(
    sections: str,
    *,
    title: str = "The Third Winter",
    authors: Sequence[tuple[str, str]] = (("Ada", "Example"),),
    language: str = "en",
    about: str = "",
    notes: str = "",
    cover: bytes = b"",
    encoding: str = "utf-8",
) -> bytes:
    names = "".join(
        f"<author><first-name>{first}</first-name><last-name>{last}</last-name></author>" for first, last in authors
    )
    picture = '<coverpage><image l:href="#pic.png"/></coverpage>' if cover else ""
    binary = f'<binary id="pic.png" content-type="image/png">{b64encode(cover).decode()}</binary>' if cover else ""
    other = f'<body name="notes"><title><p>Notes</p></title>{notes}</body>' if notes else ""
    text = f"""<?xml version="1.0" encoding="{encoding}"?>
<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="http://www.w3.org/1999/xlink">
<description><title-info>{names}<book-title>{escape(title)}</book-title>{picture}<lang>{language}</lang>{about}
</title-info><document-info><author><first-name>A</first-name><last-name>Scanner</last-name></author></document-info>
</description><body>{sections}</body>{other}{binary}</FictionBook>"""
    return text.encode(encoding)


def zipped(data: bytes, name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, data)
    return out.getvalue()
