"""Logging of the server: a thread writes the lines, some at a time, so that no request waits for a disk or for it."""

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import QueueHandler, QueueListener
from queue import Empty, SimpleQueue
from typing import Any, Literal

# Logged by uvicorn for a stream that was cut on purpose; the access log has the reason.
UVICORN_CUT_MESSAGE = "ASGI callable returned without completing response."
NO_TRACEBACK = (
    "Invalid UTF-8 sequence received from client.",  # by uvicorn: an error of the client
    "socket.accept() out of system resource",  # by asyncio: the limit on open files
)
REST_S = 0.02  # after which new lines are written; larger: fewer switches between threads, later lines
QUIET_S = 1.0  # between two lines of these; asyncio repeats the second one thousands of times a second


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(fields, ensure_ascii=False)


@contextmanager
def background_logging(format: Literal["text", "json"], level: int = logging.INFO) -> Iterator[None]:
    """Write all log records from another thread while this context lasts."""
    writer = logging.StreamHandler(sys.stderr)
    writer.setFormatter(JsonFormatter() if format == "json" else logging.Formatter("%(asctime)s %(name)s %(message)s"))
    queue: SimpleQueue[logging.LogRecord] = SimpleQueue()
    listener = LineWriter(queue, writer)
    root, ours = logging.getLogger(), logging.getLogger("tutti")
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = [QueueHandler(queue)]
    root.setLevel(logging.WARNING)
    ours.setLevel(level)
    others = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    brief = BriefLines()
    for logger in others:
        logger.addFilter(brief)
    listener.start()
    try:
        yield
    finally:
        listener.stop()
        for logger in others:
            logger.removeFilter(brief)
        root.handlers[:] = before[0]
        root.setLevel(before[1])  # not by assigning `level`: loggers cache what they may log
        ours.setLevel(before[2])


class LineWriter(QueueListener):
    """Rests when it has written all lines: the event loop loses its turn whenever a line wakes this thread."""

    def dequeue(self, block: bool) -> Any:
        with suppress(Empty):
            return super().dequeue(block=False)
        time.sleep(REST_S)
        return super().dequeue(block)


class BriefLines(logging.Filter):
    """Drops what the access log says anyway; lines that clients can cause come once a second, without a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg == UVICORN_CUT_MESSAGE:
            return False
        start = next((start for start in NO_TRACEBACK if str(record.msg).startswith(start)), None)
        if start is None:
            return True
        if record.created < self._logged_s.get(start, 0.0) + QUIET_S:
            return False
        self._logged_s[start] = record.created
        record.msg, record.args, record.exc_info, record.exc_text = start, (), None, None
        return True
