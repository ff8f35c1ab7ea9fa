"""The web page: built from web/ into `page/`, and served without files from other hosts."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from tutti import __version__

PAGE_FOLDER = Path(__file__).parent.parent / "page"
CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        *(
            f"{kind}-src 'self'"
            for kind in ("script", "style", "connect", "media", "font", "img", "worker", "manifest")
        ),
        *(f"{directive} 'none'" for directive in ("base-uri", "form-action", "frame-ancestors")),
    )
)
# The API reference has icons in its style sheet, and plays the audio of its requests.
REFERENCE_POLICY = CONTENT_POLICY.replace("img-src 'self'", "img-src 'self' data:").replace(
    "media-src 'self'", "media-src 'self' blob:"
)
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
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
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
FOREVER = "public, max-age=31536000, immutable"  # the name changes with the content
UNBUILT = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>tutti</title>
<h1>tutti</h1>
<p>The server runs, but its page was not built. With Node.js 20 or newer:</p>
<pre>make page</pre>
<p>then restart the server. The API works without it; <a href="openapi.json">/openapi.json</a> describes it.</p>
</html>
"""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page, as it is sent."""

    data: bytes
    gzipped: bytes | None
    headers: Mapping[str, str]

    async def respond(self, request: Request) -> Response:
        if request.headers.get("if-none-match") == self.headers["etag"]:
            return Response(status_code=304, headers=dict(self.headers))
        if self.gzipped and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.gzipped, headers={**self.headers, "content-encoding": "gzip"})
        return Response(self.data, headers=dict(self.headers))


def page_routes(folder: Path = PAGE_FOLDER) -> APIRouter:
    """Serve each file at its own path. They are read once, at the start, so that no path can name another file."""
    routes = APIRouter()
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = {path.relative_to(folder).as_posix(): read_page_file(path) for path in paths}
    unbuilt = make_page_file(UNBUILT, ".html", "no-cache")
    front, reference = files.pop("index.html", unbuilt), files.pop("docs.html", unbuilt)

    async def root(request: Request) -> Response:
        """The page for browsers, JSON for other clients."""
        if "text/html" in request.headers.get("accept", ""):
            return await front.respond(request)
        return JSONResponse({"object": "tutti", "version": __version__, "docs": "/docs"}, headers={"vary": "accept"})

    async def elsewhere(request: Request) -> Response:
        """To the page, from where Kokoro-FastAPI has its own; relative, for servers behind a path of a proxy."""
        return RedirectResponse("../" if request.url.path.endswith("/") else "./")

    routes.add_route("/", root, include_in_schema=False)
    for path in ("/web", "/web/"):
        routes.add_route(path, elsewhere, include_in_schema=False)
    reference = replace(reference, headers={**reference.headers, "content-security-policy": REFERENCE_POLICY})
    routes.add_route("/docs", reference.respond, include_in_schema=False)
    for name, file in files.items():
        routes.add_route(f"/{name}", file.respond, include_in_schema=False)
    return routes


def read_page_file(path: Path) -> PageFile:
    """Read a built file. Files in assets/ have a hash in their name, so they never change."""
    return make_page_file(path.read_bytes(), path.suffix, FOREVER if path.parent.name == "assets" else "no-cache")


def make_page_file(data: bytes, suffix: str, caching: str) -> PageFile:
    gzipped = None if suffix == ".woff2" else gzip.compress(data, 6, mtime=0)
    tag = f'"{sha256(data).hexdigest()[:16]}"'
    headers = {"content-type": TYPES[suffix], "cache-control": caching, "etag": tag, "vary": "accept, accept-encoding"}
    return PageFile(data, gzipped, SECURITY_HEADERS | headers)
