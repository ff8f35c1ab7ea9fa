"""The trace that a request belongs to (W3C Trace Context): its id for the log, and its steps for a collector.

A step is recorded when it has ended. By default nothing is recorded; `server/spans.py` makes a span of each step.
"""

import re
from contextvars import ContextVar
from dataclasses import dataclass

TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(frozen=True, slots=True)
class Trace:
    """One request in a trace."""

    id: str = ""  # 32 hexadecimal digits; none if the request belongs to no trace

    def record_step(self, name: str, start_s: float, end_s: float, **attributes: str | int) -> None:
        """Record that a step of the request took from `start_s` to `end_s` of the monotonic clock."""


NO_TRACE = Trace()
current_trace: ContextVar[Trace] = ContextVar("tutti_trace", default=NO_TRACE)  # of the request that this task serves


def parse_trace_id(traceparent: str) -> str:
    """Return the trace id of a `traceparent` header; "" if there is none, or the header is not valid."""
    match = TRACEPARENT.fullmatch(traceparent)
    if match is None:
        return ""
    version, trace_id, parent_id, more = match.groups()
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not parent_id.strip("0"):
        return ""
    return trace_id
