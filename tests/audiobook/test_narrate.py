"""`tutti read` with the real model: the audiobook contains every word of the book."""

import sys
from pathlib import Path

import av
import numpy as np
import pytest

from tests.audiobook.make_epub import epub, page, png
from tests.recogniser_helper import recognise, word_error_rate
from tutti.cli import main as cli

CHAPTERS = {
    "The Tower": "The lighthouse had stood empty for eleven years.",
    "The Door": "She set the lamp on the lowest step.",
}


@pytest.mark.weights
def test_an_epub_becomes_an_audiobook_with_every_word(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {f"{n}.xhtml": page(f"<h1>{title}</h1><p>{text}</p>") for n, (title, text) in enumerate(CHAPTERS.items())}
    (tmp_path / "book.epub").write_bytes(epub(pages, cover=png()))
    out = tmp_path / "book.m4b"
    monkeypatch.setattr(
        sys, "argv", ["tutti", "read", str(tmp_path / "book.epub"), "-o", str(out), "--home", str(home)]
    )
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert not done.value.code
    with av.open(str(out)) as file:
        marks = [(mark["metadata"]["title"], mark["start"] / 1000, mark["end"] / 1000) for mark in file.chapters()]
        samples = np.concatenate([frame.to_ndarray().reshape(-1) for frame in file.decode(audio=0)])
    assert [title for title, _, _ in marks] == list(CHAPTERS)
    for title, start_s, end_s in marks:
        listened = recognise(samples[round(start_s * 24_000) : round(end_s * 24_000)], 24_000)
        assert word_error_rate(f"{title}. {CHAPTERS[title]}", listened) < 0.15, listened
