"""What can go wrong on the client's side of the wire, and the server's refusals as the errors they were there."""

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
    TuttiError,
    UnknownFormat,
    UnknownLanguage,
    UnknownVoice,
    WorkerLost,
)

PLAIN: dict[str, type[TuttiError]] = {
    kind.code: kind
    for kind in (
        *(InvalidInput, NothingToSpeak, UnknownVoice, UnknownLanguage, UnknownFormat, G2PUnavailable),
        *(DeadlineExceeded, NotReady, Draining, WorkerLost, ModelFailed, DeviceFull),
    )
}


class Unreachable(TuttiError):
    """No server answered, or it hung up before it said anything."""

    status, code, exit_code = 503, "unreachable", 3


class TimedOut(TuttiError):
    """The client's own patience ended."""

    status, code = 504, "timed_out"


class CutShort(TuttiError):
    """A stream broke after some of it had been handed over; it is never asked for again behind the listener's back."""

    status, code = 502, "cut_short"

    def __init__(self, message: str, *, n_bytes: int) -> None:
        super().__init__(message)
        self.n_bytes = n_bytes  # of audio that were handed over


class ClientClosed(TuttiError):
    code = "client_closed"


class Refused(TuttiError):
    """The server said no in words this client has no class for; status and code are the server's."""

    code = "refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is no sound: the error, and whether and when to come again."""

    error: TuttiError
    may_retry: bool
    retry_after_s: float | None = None


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """The error a server sent, as the class it was on the server."""
    message, code, param = worded(body, status)
    after_s = retry_after_s(headers.get("retry-after"), datetime.now(UTC))
    should = headers.get("x-should-retry", "").lower()
    may_retry = should == "true" or (should != "false" and (status in (408, 409, 425, 429) or status >= 500))
    return Refusal(named(message, code, param, status, after_s), may_retry, after_s)


def named(message: str, code: str | None, param: str | None, status: int, after_s: float | None = None) -> TuttiError:
    if code == QueueFull.code:
        return QueueFull(message, param=param, retry_after_s=after_s or 1.0)
    kind = PLAIN.get(code or "", InvalidInput if status in (400, 422) else Refused)
    error = kind(message, param=param)
    error.status, error.code = status, code or kind.code
    return error


def worded(body: bytes, status: int) -> tuple[str, str | None, str | None]:
    """Message, code and field of an error in OpenAI's shape, or of whatever else came."""
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    if isinstance(told, dict):
        error = told.get("error")
        if isinstance(error, dict) and error.get("message"):
            return str(error["message"]), _text(error.get("code")), _text(error.get("param"))
        if told.get("detail") or isinstance(error, str):
            return str(told.get("detail") or error), None, None
    said = body[:200].decode("utf-8", "replace").strip()
    return f"the server answered {status}{': ' + said if said else ''}", None, None


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds to wait, from either form that HTTP allows."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (when - now).total_seconds()) if when.tzinfo else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
