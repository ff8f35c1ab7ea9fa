"""Which replica a request is sent to: the one with the least predicted wait. Pure: no Ray, the time is passed in."""

import random
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# A report describes its replica as it was up to this many seconds before it is seen: what was sent later than that may
# be missing in it. Larger counts more requests twice, smaller forgets some; seen: median 0.17 s, at most 0.33 s.
MAX_REPORT_AGE_S = 0.35
MAX_SENT = 2_000  # entries kept of a replica whose reports no longer come
DEFAULT_BYTES = 200  # of a request whose length is unknown: WebSockets, chunked bodies
FIRST_BYTES = 100  # of the first chunk of a stream; larger prefers faster replicas to those with less to do
# The most that a request sent since the last report delays the first chunk of another: its own first chunk, and one
# that has begun. Larger sends those who come after a long text to slower replicas, smaller lets long texts crowd.
AHEAD_BYTES = 200
ACTIVE_SHARE = 0.25  # of a first chunk, that each active stream delays another; larger spreads long streams more evenly
SILENT_S = 1.0  # without a new report, after which nothing is known to be worked on
READ_BYTES = 10  # what a request without speech counts as, so that many do not all go to one replica


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What a replica says about itself, a few times a second."""

    number: int = -1  # counts up; a new number is a new report
    ready: bool = True  # False: it has no worker at the moment
    wait_s: float = 0.0  # until its device would begin with a new stream
    n_active: int = 0  # requests that it is answering
    byte_s: float = 0.001  # device seconds of a byte of text; not 0, or a replica without a report would get all

    @classmethod
    def parse(cls, fields: Mapping[str, Any] | None) -> "ReplicaReport":
        return cls(**fields) if fields else cls()


class ReplicaLoad:
    """The last report of a replica, and what was sent to it that the report cannot include."""

    def __init__(self) -> None:
        self._report = ReplicaReport()
        self._reported_s = float("-inf")  # when the last report was first seen
        self._sent: deque[tuple[float, int]] = deque(maxlen=MAX_SENT)  # when, and bytes

    def update(self, report: ReplicaReport, now_s: float) -> None:
        if report.number != self._report.number:
            self._reported_s = now_s
            while self._sent and self._sent[0][0] < now_s - MAX_REPORT_AGE_S:
                self._sent.popleft()
        self._report = report

    def sent(self, n_bytes: int, now_s: float) -> None:
        self._sent.append((now_s, n_bytes))

    def rank(self, n_bytes: int, now_s: float) -> tuple[bool, float]:
        """Sorts first where the first audio of a request of this length would be soonest.

        Its first chunk may take turns with those of active streams. Without that, long streams, which make nobody
        wait, would all go to the replica that seems a little faster.
        """
        own = min(n_bytes, FIRST_BYTES) * (1 + ACTIVE_SHARE * self._report.n_active)
        return not self._report.ready, self._report.wait_s + self._ahead_s(now_s) + own * self._report.byte_s

    def _ahead_s(self, now_s: float) -> float:
        """Device seconds of what was sent, less those that have passed since."""
        is_silent = now_s > self._reported_s + SILENT_S
        ahead_s, last_s = 0.0, now_s
        for at_s, n_bytes in self._sent:
            worked_s = 0.0 if is_silent else max(0.0, at_s - last_s)
            ahead_s = max(0.0, ahead_s - worked_s) + min(n_bytes, AHEAD_BYTES) * self._report.byte_s
            last_s = at_s
        return ahead_s if is_silent else max(0.0, ahead_s - (now_s - last_s))


class LeastWait:
    """Ranks replicas by their predicted wait, and remembers what it sent to each."""

    def __init__(self) -> None:
        self._loads: dict[Hashable, ReplicaLoad] = {}

    def choose(self, reports: Mapping[Hashable, ReplicaReport], n_bytes: int, now_s: float) -> list[Hashable]:
        """The replicas, the best first; the request counts as sent to that one."""
        self._loads = {replica: self._loads.get(replica) or ReplicaLoad() for replica in reports}
        for replica, report in reports.items():
            self._loads[replica].update(report, now_s)
        # In random order where nothing differs: several routers must not all prefer the same replica.
        ranked = sorted(reports, key=lambda replica: (self._loads[replica].rank(n_bytes, now_s), random.random()))
        if ranked:
            self._loads[ranked[0]].sent(n_bytes, now_s)
        return ranked


def request_bytes(scope: Mapping[str, Any]) -> int:
    """The length of a request, by its headers alone; the body is not known where requests are routed."""
    if scope.get("type") == "websocket":
        return DEFAULT_BYTES
    if scope.get("method") != "POST":
        return READ_BYTES
    length = _header(scope.get("headers", ()), b"content-length")
    return int(length) if length.isdigit() else DEFAULT_BYTES


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return next((value for key, value in headers if key == name), b"")
