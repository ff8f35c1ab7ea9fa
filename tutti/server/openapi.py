"""Descriptions of answers for the OpenAPI document."""

import json
import re
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response

from tutti.audio import FORMATS
from tutti.server.errors import ErrorBody
from tutti.server.shared_answer import SharedAnswer

Responses = dict[int | str, dict[str, Any]]

COMMON_ERRORS = {
    400: "The request is invalid; `param` names the field.",
    401: "The API key is missing or unknown.",
    413: "The body, the text or a whole answer is too large.",
    415: "The body is not JSON.",
    429: "Too many requests; retry after `Retry-After` seconds.",
    500: "The model failed on this text.",
    501: "An optional package that this text needs is not installed; the message names it.",
    502: "The G2P service did not answer.",
    503: "The server is starting or shutting down.",
    504: "No audio within the time limit.",
}
OTHER_ERRORS = {
    403: "Not allowed to this caller.",
    404: "No such model.",
    405: "Method not allowed.",
    409: "Not possible now.",
}

BINARY = {"schema": {"type": "string", "format": "binary"}}
AUDIO: Responses = {
    200: {
        "description": "The audio. With `stream_format: sse`, events instead.",
        "content": {format.media_type: BINARY for format in FORMATS.values()} | {"text/event-stream": {}},
    },
    304: {"description": "The caller has this audio already (If-None-Match)."},
}
CAPTIONS: Responses = {200: {"content": {"application/json": {}, "application/x-ndjson": {}}}}
# Files of captions: json, srt (which has no registered type) and vtt.
CAPTION_FILES: Responses = {200: {"content": {"application/json": {}, "text/plain": {}, "text/vtt": {}}}}
EVENTS: Responses = {200: {"content": {"text/event-stream": {}}}}
VOICE_FILE: Responses = {200: {"content": {"application/octet-stream": BINARY, "application/json": {}}}}
ZIP: Responses = {200: {"description": "One file for each item.", "content": {"application/zip": BINARY}}}


def error_responses(*more: int) -> Responses:
    """Return the errors that any POST route may answer, and `more` that only this one does."""
    described = COMMON_ERRORS | {status: OTHER_ERRORS[status] for status in more}
    return {status: {"model": ErrorBody, "description": text} for status, text in sorted(described.items())}


def add_openapi_route(app: FastAPI) -> None:
    """Serve the document at /openapi.json. It is made and encoded once, in a thread: both take long.

    For an app whose own `openapi_url` is None: that route encodes it for each request.
    """
    app.openapi = lambda: openapi_document(app)  # type: ignore[method-assign]
    encoded = cache(lambda: json.dumps(app.openapi(), separators=(",", ":")).encode())
    shared = SharedAnswer(lambda: run_in_threadpool(encoded))

    @app.get("/openapi.json", include_in_schema=False)
    async def document() -> Response:
        return Response(await shared(), media_type="application/json")


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's document with the first sentence of each description as the summary, and without 422 answers.

    FastAPI makes the summary of the function's name; and invalid input is 400 here.
    """
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                operation["summary"] = _first_sentence(operation.get("description", operation["summary"])).replace(
                    "`", ""
                )
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        app.openapi_schema = document
    return app.openapi_schema


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0].removesuffix(".")


def only_errors(*statuses: int) -> Responses:
    """Return those of the common errors that a route can answer."""
    return {status: response for status, response in error_responses().items() if status in statuses}
