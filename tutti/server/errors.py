"""Every error on the wire, worded in this one place: the same shape whoever raised it."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from tutti.errors import InvalidInput, TuttiError
from tutti.server.disconnect import ClientGone

RETRY_AFTER_S = {"not_ready": 2, "draining": 5, "worker_lost": 1, "device_full": 1, "g2p_unavailable": 2}
CODES = {404: "not_found", 405: "method_not_allowed", 408: "request_timeout", 413: "too_large"}


class InvalidKey(TuttiError):
    status, code = 401, "invalid_api_key"


class UnknownModel(InvalidInput):
    status, code = 404, "model_not_found"


class NotJson(InvalidInput):
    status, code = 415, "unsupported_media_type"


class TooLarge(InvalidInput):
    status, code = 413, "too_large"


class RateLimited(TuttiError):
    """This caller asks too often; others are served."""

    status, code = 429, "rate_limited"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Fault(BaseModel):
    """What went wrong and who can mend it."""

    message: str
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = Field(examples=["voice"])
    code: str = Field(examples=["voice_not_found"])


class ErrorBody(BaseModel):
    """Every error of every route; `detail` repeats the message for older clients."""

    error: Fault
    detail: str


def error_body(error: TuttiError) -> dict[str, Any]:
    kind = "rate_limit_error" if error.status == 429 else "server_error"
    if error.status < 500 and error.status != 429:
        kind = "invalid_request_error"
    fault = {"message": error.message, "type": kind, "param": error.param, "code": error.code}
    return {"error": fault, "detail": error.message}


def headers(error: TuttiError) -> dict[str, str]:
    """When to come again, or not to: the openai libraries obey both."""
    after_s = getattr(error, "retry_after_s", None) or RETRY_AFTER_S.get(error.code)
    told = {"cache-control": "no-store"}
    if after_s:
        told["retry-after"] = str(max(1, math.ceil(after_s)))
        told["x-should-retry"] = "true"
    elif error.status in (500, 501):
        told["x-should-retry"] = "false"  # a row that broke the network breaks it again
    if error.status == 401:
        told["www-authenticate"] = "Bearer"
    return told


def answer(error: TuttiError, extra: dict[str, str] | None = None) -> Response:
    """The error as a response. ASCII throughout: a message may quote half of a surrogate pair."""
    body = json.dumps(error_body(error)).encode()
    return Response(body, error.status, headers(error) | (extra or {}), "application/json")


@contextmanager
def fields(**names: str) -> Iterator[None]:
    """Errors name the field as this route's body calls it: `with fields(input="text")`."""
    try:
        yield
    except TuttiError as error:
        error.param = names.get(error.param or "", error.param)
        raise


def install(app: FastAPI) -> None:
    app.add_exception_handler(TuttiError, _tutti_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientGone, _gone)


def internal() -> TuttiError:
    """What a caller hears of a bug; the log has the rest."""
    return TuttiError("the server failed on this request; its log says more under the request's id")


def as_known(error: Exception) -> TuttiError:
    """The error itself if it is one of ours, else what a caller hears of a bug."""
    return error if isinstance(error, TuttiError) else internal()


async def _tutti_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, TuttiError)
    return answer(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(worded(error, request.headers.get("content-type", "")))


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = TuttiError(str(error.detail))
    known.status = error.status_code
    known.code = CODES.get(error.status_code, "invalid_input" if error.status_code < 500 else "internal_error")
    return answer(known, dict(error.headers or {}))


async def _gone(_: Request, error: Exception) -> Response:
    return Response(status_code=499)  # for the log: nobody is there to read it


def worded(error: RequestValidationError, content_type: str) -> TuttiError:
    """The first thing wrong with a body, in words that name the field."""
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
    return InvalidInput(f"{place}: {first['msg']}", param=field)
