"""Small PDF files for the tests: lines of text on pages, an outline, document properties."""

import io
from collections.abc import Sequence

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

Bookmark = tuple[str, int, int]  # title, page, level


def make_pdf(
    pages: Sequence[Sequence[str]],
    bookmarks: Sequence[Bookmark] = (),
    title: str = "",
    author: str = "",
    password: str | None = None,
) -> bytes:
    """Each page is a list of lines in Latin-1, from top to bottom."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
            NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    for lines in pages:
        page = writer.add_blank_page(612, 792)
        content = DecodedStreamObject()
        shown = "".join(f"0 -14 Td ({_escape(line)}) Tj\n" for line in lines)
        content.set_data(f"BT /F1 12 Tf 72 760 Td\n{shown}ET".encode("cp1252"))
        page[NameObject("/Contents")] = writer._add_object(content)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    parents = {0: None}
    for name, number, level in bookmarks:
        parents[level] = writer.add_outline_item(title=name, page_number=number, parent=parents[level - 1])  # type: ignore[assignment]
    writer.add_metadata({"/Title": title, "/Author": author})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


def _escape(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
