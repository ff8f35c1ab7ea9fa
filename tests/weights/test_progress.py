"""Download progress: plain lines in a log, bars on a terminal."""

import io

from tutti.weights.progress import show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_one_line_for_each_quarter() -> None:
    out = io.StringIO()
    with show_progress(out) as progress:
        for done in range(101):
            progress.update("model.onnx", done * 10**6, 10**8)
        progress.note("another line")
    assert out.getvalue().splitlines() == [
        *(f"model.onnx: {done} of 100 MB" for done in ("0 bytes", "25 MB", "50 MB", "75 MB", "100 MB")),
        "another line",
    ]


def test_a_terminal_gets_a_bar_for_each_item() -> None:
    out = Terminal()
    with show_progress(out) as progress:
        progress.update("model.onnx", 0, 2_000_000)
        progress.update("model.onnx", 2_000_000, 2_000_000)
        progress.update("voices", 500_000, 1_000_000)
        progress.note("waiting [for] another")
    output = out.getvalue()
    for text in ("model.onnx", "2.0/2.0 MB", "voices", "waiting [for] another"):
        assert text in output


def test_a_terminal_stays_clean_without_updates() -> None:
    out = Terminal()
    with show_progress(out):
        pass
    assert out.getvalue() == ""
