"""The page a person gets: built from web/ into the folder beside this file, served with nothing from anywhere else."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from tutti import __version__

PAGE_FOLDER = Path(__file__).parent.parent / "page"
POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "connect", "media", "font", "img", "worker")),
        *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
    )
)
# The reference has icons in its style sheet, and plays what was made for it.
LOOSER = POLICY.replace("img-src 'self'", "img-src 'self' data:").replace("media-src 'self'", "media-src 'self' blob:")
SAFE = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
FOREVER = "public, max-age=31536000, immutable"  # the name changes with the content
UNBUILT = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>tutti</title>
<h1>tutti</h1>
<p>The server runs, but its page was not built. With Node.js 20 or newer:</p>
<pre>make page</pre>
<p>then start the server again. Everything else works as it is; <a href="/openapi.json">this</a> says what there is.</p>
</html>
"""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One file of the page, as it is sent."""

    data: bytes
    packed: bytes | None
    headers: Mapping[str, str]

    async def reply(self, request: Request) -> Response:
        if request.headers.get("if-none-match") == self.headers["etag"]:
            return Response(status_code=304, headers=dict(self.headers))
        if self.packed and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers={**self.headers, "content-encoding": "gzip"})
        return Response(self.data, headers=dict(self.headers))


def page_routes(folder: Path = PAGE_FOLDER) -> APIRouter:
    """The files of the page, each at its own address and read once, so that no address can name another file."""
    routes = APIRouter()
    leaves = {path.relative_to(folder).as_posix(): leaf(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    unbuilt = made(UNBUILT, ".html", "no-cache")
    front, reference = leaves.pop("index.html", unbuilt), leaves.pop("docs.html", unbuilt)

    async def root(request: Request) -> Response:
        """The page for browsers; a line of JSON for everyone else who looks in."""
        if "text/html" in request.headers.get("accept", ""):
            return await front.reply(request)
        return JSONResponse({"object": "tutti", "version": __version__, "docs": "/docs"}, headers={"vary": "accept"})

    routes.add_route("/", root, include_in_schema=False)
    reference = replace(reference, headers={**reference.headers, "content-security-policy": LOOSER})
    routes.add_route("/docs", reference.reply, include_in_schema=False)
    for name, each in leaves.items():
        routes.add_route(f"/{name}", each.reply, include_in_schema=False)
    return routes


def leaf(path: Path) -> Leaf:
    """A built file. What lies in assets/ has a hash in its name."""
    return made(path.read_bytes(), path.suffix, FOREVER if path.parent.name == "assets" else "no-cache")


def made(data: bytes, suffix: str, caching: str) -> Leaf:
    packed = None if suffix == ".woff2" else gzip.compress(data, 6, mtime=0)
    tag = f'"{sha256(data).hexdigest()[:16]}"'
    about = {"content-type": TYPES[suffix], "cache-control": caching, "etag": tag, "vary": "accept, accept-encoding"}
    return Leaf(data, packed, SAFE | about)
