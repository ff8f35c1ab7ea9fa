"""The client's own errors, and the server's error responses as the classes they were raised as."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tutti.errors import (
    DeadlineExceeded,
    DeviceFull,
    Draining,
    G2PUnavailable,
    InvalidInput,
    ModelFailed,
    NothingToSpeak,
    NotReady,
    QueueFull,
    ReplicaFull,
    TuttiError,
    UnknownFormat,
    UnknownLanguage,
    UnknownVoice,
    WorkerLost,
)

ERROR_CLASSES: dict[str, type[TuttiError]] = {
    kind.code: kind
    for kind in (
        *(InvalidInput, NothingToSpeak, UnknownVoice, UnknownLanguage, UnknownFormat, G2PUnavailable),
        *(DeadlineExceeded, NotReady, Draining, WorkerLost, ModelFailed, DeviceFull),
    )
}


class Unreachable(TuttiError):
    """No server answered, or it closed the connection before the response began."""

    status, code, exit_code = 503, "unreachable", 3


class TimedOut(TuttiError):
    """A timeout of the client ran out."""

    status, code = 504, "timed_out"


class CutShort(TuttiError):
    """A stream broke after part of it was delivered; it is never retried, so nothing is played twice."""

    status, code = 502, "cut_short"

    def __init__(self, message: str, *, n_bytes: int) -> None:
        super().__init__(message)
        self.n_bytes = n_bytes  # of audio that were delivered


class ClientClosed(TuttiError):
    """The client, or its live session, is closed."""

    code = "client_closed"


class Refused(TuttiError):
    """The server returned an error this client has no class for; status and code are the server's."""

    code = "refused"


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error of the server, and whether and when to try again."""

    error: TuttiError
    may_retry: bool
    retry_after_s: float | None = None


def parse_error_response(status: int, headers: Mapping[str, str], body: bytes) -> ErrorResponse:
    """Turn a response with an error status into the error class the server raised."""
    message, code, param = _parse_error_body(body, status)
    after_s = _milliseconds(headers.get("retry-after-ms", ""))
    if after_s is None:
        after_s = retry_after_s(headers.get("retry-after"), datetime.now(UTC))
    should = headers.get("x-should-retry", "").lower()
    may_retry = should == "true" or (should != "false" and (status in (408, 409, 425, 429) or status >= 500))
    return ErrorResponse(_error(message, code, param, status, after_s), may_retry, after_s)


def event_error(event: Mapping[str, object]) -> TuttiError:
    """Turn an error event of a stream, whose status was 200, into the error class the server raised."""
    return _error(*_parse_error_body(json.dumps({"error": event.get("error")}).encode(), 500), 500)


def _milliseconds(value: str) -> float | None:
    """Parse a retry-after-ms header into seconds."""
    return int(value) / 1000 if value.isascii() and value.isdecimal() else None


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Parse a Retry-After header, seconds or a date, into seconds."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date - now).total_seconds()) if date.tzinfo else None


def _error(message: str, code: str | None, param: str | None, status: int, after_s: float | None = None) -> TuttiError:
    if code in (QueueFull.code, ReplicaFull.code):
        full = ReplicaFull if code == ReplicaFull.code else QueueFull
        return full(message, param=param, retry_after_s=after_s or 1.0)
    kind = ERROR_CLASSES.get(code or "", InvalidInput if status in (400, 422) else Refused)
    error = kind(message, param=param)
    error.status, error.code = status, code or kind.code
    return error


def _parse_error_body(body: bytes, status: int) -> tuple[str, str | None, str | None]:
    """Return message, code and field of an error body: OpenAI's form, `detail` of other servers, or any text."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if isinstance(content, dict):
        error = content.get("error")
        if isinstance(error, dict) and error.get("message"):
            return str(error["message"]), _text(error.get("code")), _text(error.get("param"))
        detail = content.get("detail")
        if isinstance(detail, dict) and detail.get("message"):  # as Kokoro-FastAPI writes it
            return str(detail["message"]), _text(detail.get("error")), None
        if detail or isinstance(error, str):
            return str(detail or error), None, None
    text = body[:200].decode("utf-8", "replace").strip()
    return f"the server answered {status}{': ' + text if text else ''}", None, None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
