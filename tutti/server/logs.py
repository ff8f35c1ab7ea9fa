"""The server's log: lines of facts, written by a thread of their own so that no request waits for a disk."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from typing import Literal

# Said by uvicorn of a stream that was cut on purpose; our own line tells why.
CUT = "ASGI callable returned without completing response."


class Json(logging.Formatter):
    """One object a line: time, level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(fields, ensure_ascii=False)


@contextmanager
def logging_aside(format: Literal["text", "json"], level: int = logging.INFO) -> Iterator[None]:
    """While this lasts, what anyone logs is written by another thread."""
    writer = logging.StreamHandler(sys.stderr)
    writer.setFormatter(Json() if format == "json" else logging.Formatter("%(asctime)s %(name)s %(message)s"))
    queue: SimpleQueue[logging.LogRecord] = SimpleQueue()
    listener = QueueListener(queue, writer)
    root, ours = logging.getLogger(), logging.getLogger("tutti")
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = [QueueHandler(queue)]
    root.setLevel(logging.WARNING)
    ours.setLevel(level)
    uvicorn = logging.getLogger("uvicorn.error")
    uvicorn.addFilter(_not_cut)
    listener.start()
    try:
        yield
    finally:
        listener.stop()
        uvicorn.removeFilter(_not_cut)
        root.handlers[:] = before[0]
        root.setLevel(before[1])  # not the bare attribute: loggers remember what they may say
        ours.setLevel(before[2])


def _not_cut(record: logging.LogRecord) -> bool:
    return record.msg != CUT
