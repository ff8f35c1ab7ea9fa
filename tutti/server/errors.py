"""Errors as HTTP answers. Every error of every route gets its status, headers and JSON here."""

import json
import logging
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from tutti.errors import DeadlineExceeded, InvalidInput, TuttiError
from tutti.server.disconnect import ClientDisconnected

log = logging.getLogger("tutti.server")

# Seconds until a retry makes sense, for errors that do not say so themselves.
RETRY_AFTER_S = {
    "not_ready": 2,
    "draining": 5,
    "worker_lost": 1,
    "device_full": 1,
    "g2p_unavailable": 2,
    "memory_full": 2,
    "jobs_locked": 5,
    "too_many_connections": 1,
}
LATER_S = 5  # the same for any other 429 or 503
SPREAD = 0.5  # share of that time over which callers that were refused together are spread, but at least MIN_SPREAD_S
MIN_SPREAD_S = 1.0
OBEYED_S = 60.0  # OpenAI's SDKs ignore a longer time, so the spread never makes a shorter one longer than this
NEVER_RETRY = (  # waiting does not help
    *("too_many_jobs", "too_many_voices", "too_many_lexicons"),
    *("weights_corrupt", "weights_unavailable"),
)
# The limit of a number, by the kind of pydantic's error: its name there, and our words for it.
LIMITS = {"less_than_equal": ("le", "at most"), "greater_than_equal": ("ge", "at least")}
CODES = {404: "not_found", 405: "method_not_allowed", 408: "request_timeout", 413: "too_large"}


class InvalidKey(TuttiError):
    status, code = 401, "invalid_api_key"


class UnknownModel(InvalidInput):
    status, code = 404, "model_not_found"


class UnknownPath(InvalidInput):
    status, code = 404, "not_found"


class UnknownDownload(InvalidInput):
    status, code = 404, "download_not_found"


class NotJson(InvalidInput):
    status, code = 415, "unsupported_media_type"


class TooLarge(InvalidInput):
    status, code = 413, "too_large"


class RateLimited(TuttiError):
    """This caller exceeded its rate limit; others are not affected."""

    status, code = 429, "rate_limited"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Fault(BaseModel):
    """What went wrong, and which field caused it."""

    message: str
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = Field(examples=["voice"])
    code: str = Field(examples=["voice_not_found"])


class Detail(BaseModel):
    """The same in the form of Kokoro-FastAPI."""

    error: str = Field(examples=["voice_not_found"])
    message: str
    type: str = Field(examples=["invalid_request_error"])


class ErrorBody(BaseModel):
    """Every error of every route: `error` as OpenAI writes it, and `detail` for clients of Kokoro-FastAPI."""

    error: Fault
    detail: Detail


def error_body(error: TuttiError) -> dict[str, Any]:
    kind = "rate_limit_error" if error.status == 429 else "server_error"
    if error.status < 500 and error.status != 429:
        kind = "invalid_request_error"
    fault = {"message": error.message, "type": kind, "param": error.param, "code": error.code}
    return {"error": fault, "detail": {"error": error.code, "message": error.message, "type": kind}}


def error_headers(error: TuttiError) -> dict[str, str]:
    """Headers that say whether and when to retry. The openai libraries obey them."""
    headers = {"cache-control": "no-store", "x-error-code": error.code}
    if after_s := _retry_after_s(error):
        headers |= retry_headers(after_s, random.random())
    elif error.status in (500, 501) or error.code in NEVER_RETRY:
        headers["x-should-retry"] = "false"  # the same text would fail again
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def retry_headers(after_s: float, chance: float) -> dict[str, str]:
    """When to try again; with `chance` (0 to 1) callers that were refused together do not come back together."""
    spread_s = max(MIN_SPREAD_S, SPREAD * after_s)
    if after_s <= OBEYED_S:
        spread_s = min(spread_s, OBEYED_S - after_s)
    after_s += chance * spread_s
    return {
        "retry-after": str(max(1, math.ceil(after_s))),
        "retry-after-ms": str(math.ceil(1000 * after_s)),
        "x-should-retry": "true",
    }


def _retry_after_s(error: TuttiError) -> float | None:
    after_s: float | None = getattr(error, "retry_after_s", None) or RETRY_AFTER_S.get(error.code)
    if after_s is None and error.status in (429, 503) and error.code not in NEVER_RETRY:
        return LATER_S
    return after_s


def error_response(error: TuttiError, extra: dict[str, str] | None = None) -> Response:
    """Return the error as a response. Its JSON is ASCII, since a message may quote half of a surrogate pair."""
    body = json.dumps(error_body(error)).encode()
    return Response(body, error.status, error_headers(error) | (extra or {}), "application/json")


@contextmanager
def rename_param(**names: str) -> Iterator[None]:
    """Rename the field in errors to what this route calls it: `with rename_param(input="text")`."""
    try:
        yield
    except TuttiError as error:
        error.param = names.get(error.param or "", error.param)
        raise


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(TuttiError, _tutti_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnected, _client_disconnected)
    app.add_exception_handler(ClientDisconnect, _client_disconnected)


def no_audio_within(timeout_s: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"no audio within {timeout_s:.0f} s; the server is too busy or too slow")


def internal_error() -> TuttiError:
    """Return the error that a client gets for a bug; the log has the details."""
    return TuttiError("internal error; the server log has the details under this X-Request-ID")


def public_error(error: BaseException) -> TuttiError:
    """Return the error for the client: itself if it is a TuttiError, else an internal error."""
    return error if isinstance(error, TuttiError) else internal_error()


async def _tutti_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, TuttiError)
    return error_response(error)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(describe_invalid_body(error, request.headers.get("content-type", "")))


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    converted = TuttiError(str(error.detail))
    converted.status = error.status_code
    converted.code = CODES.get(error.status_code, "invalid_input" if error.status_code < 500 else "internal_error")
    return error_response(converted, dict(error.headers or {}))


async def _client_disconnected(_: Request, _error: Exception) -> Response:
    return Response(status_code=499)  # for the access log only


def describe_invalid_body(error: RequestValidationError, content_type: str) -> TuttiError:
    """Return the first error in a body, with the name of the field."""
    first = error.errors()[0]
    kind, where = first["type"], first["loc"]
    if kind == "json_invalid":
        return InvalidInput(f"the body is not JSON: {first['ctx']['error']} at byte {where[-1]}")
    names = [str(part) for part in where[1:] if isinstance(part, str)]
    field = names[0] if names else None
    if field is None and "json" not in content_type and kind != "missing":
        return NotJson("send JSON, and say so: Content-Type: application/json")
    if kind == "missing":
        return InvalidInput(f"{field or 'the body'} is missing", param=field)
    numbers = "".join(f" {part + 1}" for part in where[1:] if isinstance(part, int))
    place = f"{field}{numbers}" if field else "the body"
    if limit := LIMITS.get(kind):
        bound, words = limit
        return InvalidInput(
            f"{place} must be {words} {first['ctx'][bound]:g}, not {str(first['input'])[:40]}", param=field
        )
    return InvalidInput(f"{place}: {first['msg']}", param=field)


def note_cut(state: dict[str, Any], error: Exception) -> TuttiError:
    """Note in the log and for the metrics that an answer ends with this error; return it as its client may see it."""
    public = public_error(error)
    state["outcome"] = f"cut:{public.code}"
    log.error("cut id=%s code=%s", state["request_id"], public.code, exc_info=error if public is not error else None)
    return public
