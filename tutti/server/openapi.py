"""What the OpenAPI document says of answers, so that routes need not."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tutti.audio import FORMATS
from tutti.server.errors import ErrorBody

Responses = dict[int | str, dict[str, Any]]

ALWAYS = {
    400: "Something in the request is wrong; `param` names it.",
    401: "An API key is needed, and this is none.",
    413: "The body, the text or a whole answer is too large.",
    415: "The body is not JSON.",
    429: "Too much at once; `Retry-After` says when to come again.",
    500: "The model failed on this text.",
    501: "A part that this text needs is not installed; the message says which.",
    502: "The G2P service did not answer.",
    503: "Not warm yet, or going down.",
    504: "No sound came in time.",
}
SOME = {404: "No such model.", 405: "Not with this method."}

_BINARY = {"schema": {"type": "string", "format": "binary"}}
AUDIO: Responses = {
    200: {
        "description": "The sound. `stream_format: sse` sends events instead.",
        "content": {format.media_type: _BINARY for format in FORMATS.values()} | {"text/event-stream": {}},
    },
    304: {"description": "The caller has this sound already (If-None-Match)."},
}
CAPTIONS: Responses = {200: {"content": {"application/json": {}, "application/x-ndjson": {}}}}
ZIP: Responses = {200: {"description": "One file for each item.", "content": {"application/zip": _BINARY}}}


def errors(*more: int) -> Responses:
    """The errors that any working route may answer, and some that only this one does."""
    chosen = ALWAYS | {status: SOME[status] for status in more}
    return {status: {"model": ErrorBody, "description": text} for status, text in sorted(chosen.items())}


def document(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document less the 422 it adds by itself: bad input is 400 here."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for path in made["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            made["components"]["schemas"].pop(name, None)
        app.openapi_schema = made
    return app.openapi_schema


def only(*statuses: int) -> Responses:
    return {status: found for status, found in errors().items() if status in statuses}
