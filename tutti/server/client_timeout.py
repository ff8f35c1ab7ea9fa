"""How long a client waits for its answer: as long as it says itself, else as long as the server assumes."""

from collections.abc import Mapping
from contextlib import suppress
from math import isinf, isnan

from tutti.errors import InvalidInput

WAIT_SHARE = 0.8  # share of a client's timeout that it may wait; the rest is for wrong predictions
MAX_NAMED = 10.0  # times TUTTI_TIMEOUT_S that a client may say it waits; larger holds more waiting requests


def requested_timeout_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of X-Request-Timeout: for the first audio of a stream, for all of a whole answer."""
    header = headers.get("x-request-timeout", "inf")
    try:
        timeout_s = _seconds(header)
        return None if isinf(timeout_s) else timeout_s
    except ValueError:
        raise InvalidInput(
            f"X-Request-Timeout is a number of seconds from 0, not {header[:40]!r}; omit it for the server's own",
            param=None,
        ) from None


def named_timeout_s(headers: Mapping[str, str], default_s: float) -> float | None:
    """Return after how many seconds the client gives up, if it says so; at most MAX_NAMED times the default.

    OpenAI's SDKs send their timeout, 600 s unless set. When they are refused they retry twice, then their caller gets
    an error: for them waiting is better.
    """
    named_s = requested_timeout_s(headers)
    if named_s is None and "x-stainless-lang" not in headers:
        return None
    timeout_s = MAX_NAMED * default_s
    for header in ("x-stainless-read-timeout", "x-stainless-timeout"):
        with suppress(KeyError, ValueError):
            timeout_s = min(timeout_s, _seconds(headers[header]))
    return timeout_s if named_s is None else min(timeout_s, named_s)


def first_audio_timeout_s(headers: Mapping[str, str], default_s: float) -> float:
    """Return after how many seconds without audio the request has failed."""
    named_s = named_timeout_s(headers, default_s)
    return default_s if named_s is None else named_s


def max_start_s(headers: Mapping[str, str], default_s: float) -> float | None:
    """Return how long admission control may let the client wait for its first audio; None: as long as others."""
    named_s = named_timeout_s(headers, default_s)
    return None if named_s is None else WAIT_SHARE * named_s


def _seconds(header: str) -> float:
    """Read a header; raise ValueError unless it is a time."""
    seconds = float(header)
    if isnan(seconds) or seconds < 0:
        raise ValueError(header)
    return seconds
