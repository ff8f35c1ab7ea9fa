"""Logging of the server: a thread writes the lines, so that no request waits for a disk."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from typing import Literal

# Logged by uvicorn for a stream that was cut on purpose; the access log has the reason.
UVICORN_CUT_MESSAGE = "ASGI callable returned without completing response."


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
    listener = QueueListener(queue, writer)
    root, ours = logging.getLogger(), logging.getLogger("tutti")
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = [QueueHandler(queue)]
    root.setLevel(logging.WARNING)
    ours.setLevel(level)
    uvicorn = logging.getLogger("uvicorn.error")
    uvicorn.addFilter(_is_not_cut_message)
    listener.start()
    try:
        yield
    finally:
        listener.stop()
        uvicorn.removeFilter(_is_not_cut_message)
        root.handlers[:] = before[0]
        root.setLevel(before[1])  # not by assigning `level`: loggers cache what they may log
        ours.setLevel(before[2])


def _is_not_cut_message(record: logging.LogRecord) -> bool:
    return record.msg != UVICORN_CUT_MESSAGE
