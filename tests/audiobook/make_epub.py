"""Build books for tests: an EPUB from chapters, a small real image."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from html import escape

CONTAINER = """<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>"""


def png(width: int = 4, height: int = 4) -> bytes:
    """A grey image."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + b"\x80\x80\x80" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def page(body: str, title: str = "") -> str:
    head = (
        f'<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title>'
    )
    return f"{head}</head><body>{body}</body></html>"


def epub(
    pages: Mapping[str, str | bytes],
    *,
    title: str = "The Third Winter",
    authors: Sequence[str] = ("Ada Example",),
    language: str = "en",
    spine: Sequence[str] | None = None,
    nav: str | None = None,
    ncx: str | None = None,
    cover: bytes | None = None,
    metadata: str = "",
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """An EPUB 3 with these XHTML documents; `nav` is the list of its contents page, `ncx` the navMap of an EPUB 2."""
    items = [f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in pages]
    if nav is not None:
        items.append('<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>')
    if ncx is not None:
        items.append('<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>')
    if cover is not None:
        items.append('<item id="pic" href="pic.png" properties="cover-image" media-type="image/png"/>')
    refs = "".join(f'<itemref idref="{name}"/>' for name in (spine if spine is not None else pages))
    creators = "".join(f"<dc:creator>{escape(author)}</dc:creator>" for author in authors)
    package = f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>{escape(title)}</dc:title>{creators}<dc:language>{language}</dc:language>{metadata}</metadata>
<manifest>{"".join(items)}</manifest><spine>{refs}</spine></package>"""
    members: dict[str, str | bytes] = {"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": package}
    members |= {f"OEBPS/{name}": text for name, text in pages.items()}
    if nav is not None:
        members["OEBPS/nav.xhtml"] = page(f'<nav epub:type="toc"><ol>{nav}</ol></nav>')
    if ncx is not None:
        members["OEBPS/toc.ncx"] = f'<?xml version="1.0"?><ncx><navMap>{ncx}</navMap></ncx>'
    if cover is not None:
        members["OEBPS/pic.png"] = cover
    return zip_file(members | dict(extra or {}))


def zip_file(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()
