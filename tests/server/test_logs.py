"""The log is written by another thread, as text or JSON."""

import json
import logging
import threading

import pytest

from tutti.server.logs import UVICORN_CUT_MESSAGE, background_logging

log = logging.getLogger("tutti.test")


def test_lines_are_json_if_configured(capsys: pytest.CaptureFixture[str]) -> None:
    with background_logging("json"):
        log.info('said "%s"', "two\nlines")
        try:
            raise ValueError("broken")
        except ValueError:
            log.exception("failed")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first["message"] == 'said "two\nlines"'
    assert (first["level"], first["logger"]) == ("info", "tutti.test")
    assert "ValueError: broken" in second["message"]


def test_another_thread_writes_the_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    writers: set[int] = set()
    emit = logging.StreamHandler.emit

    def record_writer(self: logging.StreamHandler, record: logging.LogRecord) -> None:  # type: ignore[type-arg]
        writers.add(threading.get_ident())
        emit(self, record)

    monkeypatch.setattr(logging.StreamHandler, "emit", record_writer)
    with background_logging("text"):
        log.info("a fact")
    assert "tutti.test a fact" in capsys.readouterr().err
    assert writers
    assert threading.get_ident() not in writers


def test_loggers_are_restored_and_one_uvicorn_line_is_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    root, ours = logging.getLogger(), logging.getLogger("tutti")
    before = (root.handlers[:], root.level, ours.level, log.isEnabledFor(logging.INFO))
    with background_logging("text"):
        assert log.isEnabledFor(logging.INFO)
        logging.getLogger("uvicorn.error").error(UVICORN_CUT_MESSAGE)
        logging.getLogger("uvicorn.error").error("something else")
    assert (root.handlers, root.level, ours.level, log.isEnabledFor(logging.INFO)) == before
    assert "something else" in (output := capsys.readouterr().err)
    assert UVICORN_CUT_MESSAGE not in output
