"""`tutti read`: chapters, cover and captions in the file; a killed run is resumed without a difference."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import wave
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.audiobook.ffprobe import probe
from tests.audiobook.make_epub import epub, page, png
from tests.cli.read_with_tones import log_texts
from tests.fakes import silent_voices, tone_engine
from tests.full_disk import fill_disk
from tutti.audio.loudness import measure_lufs
from tutti.audio.tagged import container
from tutti.audiobook.book import Book, Chapter
from tutti.audiobook.export import export_book
from tutti.audiobook.journal import Journal
from tutti.audiobook.passages import MAX_CHARACTERS, MIN_CHARACTERS, passages
from tutti.cli import main as cli
from tutti.engine.engine import Engine
from tutti.errors import InvalidInput, StorageFull
from tutti.settings import Settings
from tutti.speech import Speech

ROOT = Path(__file__).parents[2]
NUMBERS = ("one", "two", "three", "four", "five", "six")


def chapter_page(n: int) -> str:
    """A page of paragraphs, no two alike."""
    paragraphs = "".join(
        f"<p>In {NUMBERS[n]} the old bridge number {word} stood over the water, and nobody crossed it. "
        f"Then {word} lanterns were lit along the bank, and the river of {NUMBERS[n]} ran deep.</p>"
        for word in NUMBERS
    )
    return page(f"<h1>Chapter {NUMBERS[n]}</h1>{paragraphs}")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    nav = "".join(f'<li><a href="{n}.xhtml">Chapter {n}: é</a></li>' for n in (1, 2, 3))
    path = tmp_path / "book.epub"
    path.write_bytes(epub({f"{n}.xhtml": chapter_page(n) for n in (1, 2, 3)}, nav=nav, cover=png(30, 20)))
    return path


RunProcess = Callable[..., subprocess.CompletedProcess[str]]
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run_process(tmp_path: Path) -> RunProcess:
    """Run `tutti read …` in a process, which may be killed after some passages or have a limit on the file size."""

    def run_process(
        *flags: object, die_after: int = 0, file_blocks: str = "unlimited"
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.cli.read_with_tones", str(tmp_path), "read", *map(str, flags)]
        return subprocess.run(
            ["sh", "-c", f'ulimit -f {file_blocks} && exec "$@"', "sh", *command],
            cwd=ROOT,
            env={**os.environ, "READ_TONES_DIE_AFTER": str(die_after)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run_process


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run `tutti read …` in this process: exit code and standard error."""
    (tmp_path / "voices").mkdir()
    voices = silent_voices(tmp_path / "voices")

    def open_engine(settings: Settings, **_: object) -> Engine:
        return log_texts(tone_engine(voices), tmp_path / "spoken")

    monkeypatch.setattr("tutti.engine.build.open_engine", open_engine)

    def run(*flags: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tutti", "read", *map(str, flags)])
        with pytest.raises(SystemExit) as done:
            cli.main()
        return done.value.code if isinstance(done.value.code, int) else 0, capfd.readouterr().err

    return run


def take_spoken(folder: Path) -> list[str]:
    """The texts given to the engine since the last call."""
    path = folder / "spoken"
    texts = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return texts


def stored_passages(journal: Path) -> set[int]:
    with sqlite3.connect(journal) as db:
        numbers = {n for (n,) in db.execute("SELECT n FROM passages")}
    db.close()
    return numbers


def samples(path: Path) -> bytes:
    with wave.open(str(path)) as file:
        return file.readframes(file.getnframes())


@pytest.mark.process
def test_a_killed_run_is_resumed_and_no_passage_is_spoken_twice(
    run_process: RunProcess, run: Run, book: Path, tmp_path: Path
) -> None:
    assert run(book, "-o", tmp_path / "whole.wav", "--captions", tmp_path / "whole.json")[0] == 0
    plan = take_spoken(tmp_path)
    out, journal = tmp_path / "again.wav", tmp_path / "again.wav.reading"

    first = run_process(book, "-o", out, die_after=3)
    assert first.returncode == -signal.SIGKILL
    assert not out.exists()
    done = stored_passages(journal)
    assert len(done) == 3 < len(plan)
    take_spoken(tmp_path)

    code, stderr = run(book, "-o", out, "--captions", tmp_path / "again.json")
    assert code == 0, stderr
    assert f"resuming after {len(done)} of {len(plan)} passages" in stderr
    spoken_again = take_spoken(tmp_path)
    assert len(spoken_again) == len(plan) - len(done)
    assert not Counter(spoken_again) - Counter(plan)
    assert samples(out) == samples(tmp_path / "whole.wav")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "whole.json").read_text()
    assert not list(tmp_path.glob("*.reading*"))
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.process
def test_a_disk_that_fills_up_loses_nothing(run_process: RunProcess, run: Run, book: Path, tmp_path: Path) -> None:
    """A limit on the file size stands for a full disk."""
    run(book, "-o", tmp_path / "whole.wav")
    plan = take_spoken(tmp_path)
    out, journal = tmp_path / "b.wav", tmp_path / "b.wav.reading"
    full = run_process(book, "-o", out, file_blocks="5000")
    assert full.returncode == 4, full.stderr
    assert re.search(r"tutti: (no room left to write|the disk under) .*b\.wav\.reading", full.stderr)
    assert not out.exists()
    done = stored_passages(journal)
    assert done
    take_spoken(tmp_path)
    assert run(book, "-o", out)[0] == 0
    assert len(take_spoken(tmp_path)) == len(plan) - len(done)
    assert samples(out) == samples(tmp_path / "whole.wav")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["m4b", "mp3", "flac", "opus"])
def test_chapters_cover_title_and_author_are_in_the_file(run: Run, book: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"book.{suffix}"
    code, stderr = run(book, "-o", out, "--captions", tmp_path / "book.srt", "--author", "Someone Else", "--speed", "4")
    assert code == 0, stderr
    with av.open(str(out)) as file:
        chapters = [(mark["metadata"]["title"], mark["start"] / 1000) for mark in file.chapters()]
        tags = {key.lower(): text for key, text in {**file.metadata, **file.streams.audio[0].metadata}.items()}
        pictures = [stream for stream in file.streams if stream.type == "video"]
        cover = bytes(next(file.demux(pictures[0]))) if pictures else None
        duration_s = file.duration / 1e6 if file.duration else 0.0
    captions = (tmp_path / "book.srt").read_text()
    heard_s = [_seconds(start) for start in re.findall(r"(\S+) --> \S+\n(?=Chapter )", captions)]
    assert [title for title, _ in chapters] == ["Chapter 1: é", "Chapter 2: é", "Chapter 3: é"]
    assert [start_s for _, start_s in chapters] == pytest.approx(heard_s, abs=0.2)
    assert duration_s > chapters[-1][1] + 5
    assert (tags["title"], tags["artist"]) == ("The Third Winter", "Someone Else")
    if suffix == "opus":
        assert "holds no cover" in stderr
    else:
        assert cover == png(30, 20)


def _seconds(clock: str) -> float:
    hours, minutes, seconds = clock.replace(",", ".").split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


@pytest.mark.process
def test_another_voice_starts_over_and_a_damaged_passage_is_spoken_again(
    run_process: RunProcess, run: Run, book: Path, tmp_path: Path
) -> None:
    run(book, "-o", tmp_path / "whole.wav")
    plan = take_spoken(tmp_path)
    out, journal = tmp_path / "b.wav", tmp_path / "b.wav.reading"
    run_process(book, "-o", out, die_after=3)
    content = journal.read_bytes()
    done = stored_passages(journal)
    take_spoken(tmp_path)

    _, stderr = run(book, "-o", out, "--voice", "am_adam")
    assert "starting over: the book, the voice or a setting" in stderr
    assert len(take_spoken(tmp_path)) == len(plan)

    journal.write_bytes(content)
    with sqlite3.connect(journal) as db:
        db.execute("UPDATE passages SET samples = zeroblob(length(samples)) WHERE n = (SELECT min(n) FROM passages)")
    db.close()
    _, stderr = run(book, "-o", out)
    assert len(take_spoken(tmp_path)) == len(plan) - len(done) + 1
    assert samples(out) == samples(tmp_path / "whole.wav")

    journal.write_bytes(b"not a database at all" * 1000)
    _, stderr = run(book, "-o", out)
    assert "starting over: b.wav.reading is damaged" in stderr
    assert samples(out) == samples(tmp_path / "whole.wav")


def test_errors_are_reported_before_anything_is_spoken(run: Run, book: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks.txt"
    marks.write_text("Fine.\n\nChapter 2\n\nNot [pause:never] fine.")
    for flags, message in (
        ((book, "-o", tmp_path / "b.xyz"), "names no audio file"),
        ((book, "-o", tmp_path / "no" / "b.mp3"), "there is no folder"),
        ((book, "--voice", "nobody"), "nobody"),
        ((book, "--cover", book), "neither a JPEG nor a PNG"),
        ((book, "--captions", "x.doc"), "captions are"),
        ((marks, "-o", tmp_path / "x.wav"), "chapter 2 (Chapter 2)"),
        ((tmp_path / "nothing.txt",), "cannot read"),
    ):
        code, stderr = run(*flags)
        assert code == 2, stderr
        assert message in stderr
    assert not take_spoken(tmp_path)


def test_a_cast_speaks_its_turns_and_quotes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "play.md").write_text("# Play\n\nAnna: Deep water.\n\n“So it is,” said Ben. [voice:ben]Yes.\n")
    (tmp_path / "cast.toml").write_text('Anna = "af_bella"\nBen = {voice = "am_adam", rate = 0.5}\n')
    code, _ = run(tmp_path / "play.md", "-o", tmp_path / "play.wav", "--cast", tmp_path / "cast.toml")
    assert code == 0
    assert "[voice:Anna]Deep water.[/voice]" in "".join(take_spoken(tmp_path))
    (tmp_path / "cast.toml").write_text('Anna = "af_hart"\n')
    code, errors = run(tmp_path / "play.md", "-o", tmp_path / "play.wav", "--cast", tmp_path / "cast.toml")
    assert (code, "af_hart" in errors) == (2, True)


@pytest.mark.process
@pytest.mark.parametrize(
    ("suffix", "series", "number"),
    [(".m4b", "show", "episode_id"), (".mp3", "series", "series-part"), (".flac", "series", "series-part"),
     (".opus", "series", "series-part")],
)  # fmt: skip
def test_tags_say_who_wrote_and_reads_it_when_and_in_which_series(
    run: Run, tmp_path: Path, suffix: str, series: str, number: str
) -> None:
    (tmp_path / "b.md").write_text(
        "---\ntitle: Ice\nauthor: Ada\ndate: 2024-05-01\nseries: The Winters #2\nlanguage: en-GB\n---\n\nIt held.\n"
    )
    out = tmp_path / f"b{suffix}"
    assert run(tmp_path / "b.md", "-o", out, "--voice", "bm_george")[0] == 0
    tags = probe(out)
    assert (tags["title"], tags["album"], tags["artist"], tags["album_artist"]) == ("Ice", "Ice", "Ada", "Ada")
    assert (tags["date"], tags["composer"], tags["grouping"]) == ("2024", "George", "The Winters #2")
    assert (tags[series], tags[number], tags["language"], tags["genre"]) == ("The Winters", "2", "eng", "Audiobook")
    own = ("--title", "Snow", "--author", "Bob", "--year", "1999", "--series", "Others", "--narrator", "Cy")
    assert run(tmp_path / "b.md", "-o", out, *own)[0] == 0
    tags = probe(out)
    assert (tags["title"], tags["artist"], tags["date"], tags["composer"]) == ("Snow", "Bob", "1999", "Cy")
    assert (tags[series], number in tags) == ("Others", False)
    assert run(tmp_path / "b.md", "-o", out, "--year", "soon")[0] == 2


def test_a_library_has_the_folders_that_audiobookshelf_takes(run: Run, book: Path, tmp_path: Path) -> None:
    library = tmp_path / "books"
    assert run(book, "--library", library)[0] == 0
    folder = library / "Ada Example" / "The Third Winter"
    assert sorted(path.name for path in folder.iterdir()) == ["The Third Winter.m4b", "cover.png"]
    (tmp_path / "b.md").write_text("---\ntitle: Ice/Fire?\nseries: The Winters #2\n---\n\nIt held.\n")
    assert run(tmp_path / "b.md", "--library", library)[0] == 0
    assert (library / "Unknown Author/The Winters/Vol 2 - Ice_Fire_/Ice_Fire_.m4b").exists()
    assert run(book, "--library", library, "-o", tmp_path / "b.m4b")[0] == 2


def test_after_a_correction_only_what_changed_is_spoken_again(run: Run, tmp_path: Path) -> None:
    """A word, a new paragraph, an entry of the lexicon: each costs the passages that it is in, and no other chapter."""
    text = tmp_path / "b.md"
    names = ("Ada", "Bob", "Cy", "Dan")
    chapters = {
        name: [f"{name} stood at bridge {word}, and nobody crossed it. " * 9 for word in NUMBERS] for name in names
    }

    def write() -> None:
        text.write_text("\n\n".join(f"# {name}\n\n" + "\n\n".join(each) for name, each in chapters.items()))

    def spoken(out: str, *flags: str) -> list[str]:
        code, err = run(text, "-o", tmp_path / out, "--captions", tmp_path / f"{out}.json", *flags)
        assert code == 0, err
        return take_spoken(tmp_path)

    write()
    whole = spoken("b.wav", "--keep")
    assert spoken("b.wav", "--keep") == []  # nothing has changed
    chapters["Bob"][2] = chapters["Bob"][2].replace("three", "3")
    write()
    (again,) = spoken("b.wav", "--keep")
    assert "bridge 3" in again
    chapters["Ada"].insert(1, "A paragraph that was forgotten stands here. " * 10)
    write()
    (again,) = spoken("b.wav", "--keep")
    assert "forgotten" in again
    (tmp_path / "b.lexicon").write_text("Cy\tsigh\n")
    again_of_cy = spoken("b.wav", "--keep")
    assert len(again_of_cy) == len(NUMBERS) < len(whole)
    assert all("Cy" in each for each in again_of_cy)
    assert spoken("new.wav")  # the same as one that was spoken from the start
    assert samples(tmp_path / "b.wav") == samples(tmp_path / "new.wav")
    assert (tmp_path / "b.wav.json").read_text() == (tmp_path / "new.wav.json").read_text()
    assert not (tmp_path / "new.wav.reading").exists()


def test_parts_are_skipped_and_it_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "play.md").write_text("# One\n\nIt fell.\n\n# Copyright\n\nAll of it.\n")
    code, err = run(tmp_path / "play.md", "-o", tmp_path / "play.wav", "--skip", "copyright")
    assert (code, take_spoken(tmp_path)) == (0, ["# One\n\nIt fell."])
    assert "skipped: copyright (23 characters)" in err
    code, err = run(tmp_path / "play.md", "--skip", "prologue")
    assert (code, "use copyright, contents" in err) == (2, True)


def test_a_book_has_the_loudness_that_is_asked_for(run: Run, book: Path, tmp_path: Path) -> None:
    out = tmp_path / "book.wav"
    code, notes = run(book, "-o", out, "--loudness", "-20")
    assert (code, "and is -20.0" in notes) == (0, True)
    spoken = np.frombuffer(samples(out), "<i2").astype(np.float32) / 32767
    assert measure_lufs([spoken]) == pytest.approx(-20, abs=0.3)
    once = len(spoken)
    run(book, "-o", out)
    assert len(samples(out)) == 2 * once
    assert run(book, "-o", out, "--loudness", "loud")[0] == 2


def test_a_book_in_another_language_causes_a_warning(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "x.html"
    text.write_text("<html lang='fr'><p>bonjour</p></html>")
    assert "declares language 'fr', but is read as en-us" in run(text, "-o", tmp_path / "x.wav")[1]
    text.write_text("<html lang='en-GB'><p>hello</p></html>")
    assert "read as" not in run(text, "-o", tmp_path / "x.wav")[1]


def test_a_passage_without_words_is_silent_and_its_symbols_are_counted(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "x.md"
    text.write_text("# One\n\nwords\n\n# Two\n\n* * *\n\n# Three\n\n🚀🚀")
    code, stderr = run(text, "-o", tmp_path / "x.wav")
    assert code == 0
    assert "2 symbols could not be spoken: 🚀 ×2" in stderr


def test_all_that_was_not_spoken_as_written_is_named(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "x.txt"
    russian = "Привет, как дела сегодня, мой дорогой друг? " * 20
    paragraphs = ("Deep water runs. " * 40, f"Deep water. {russian}", russian + "🚀")  # the last has no sound at all
    text.write_text("\n\n".join(paragraphs))
    code, stderr = run(text, "-o", tmp_path / "x.wav")
    assert code == 0
    assert "🚀" in stderr
    assert re.search("note: .* looks like Russian .* \\(2 passages\\)", stderr)


# -- journal and files ---------------------------------------------------------------------------------------------

BOOK = Book("T", "A", (Chapter("one", "a b"), Chapter("two", "c d")))


def full_journal(path: Path) -> Journal:
    journal = Journal(path, "same")
    for n, _ in enumerate(passages(BOOK.chapters)):
        journal.save(n, Speech(np.sin(np.arange(24_000, dtype=np.float32) / (20 + n)), (), (0, 0)))
    return journal


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("suffix", [".wav", ".m4b", ".mp3", ".flac", ".opus", ".aac"])
def test_a_full_disk_leaves_the_old_audio_file_and_the_journal(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"b{suffix}"
    out.write_bytes(b"what was there before")
    with full_journal(tmp_path / "journal") as journal:
        plan = list(passages(BOOK.chapters))
        with pytest.MonkeyPatch.context() as patch:
            fill_disk(patch)
            with pytest.raises(StorageFull, match="no room left"):
                export_book(BOOK, plan, journal, out, container(suffix))
        assert out.read_bytes() == b"what was there before"
        assert export_book(BOOK, plan, journal, out, container(suffix)).chapters[-1].title == "two"
    with av.open(str(out), format="s16le" if suffix == ".pcm" else None) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) > 48_000


def test_a_second_process_cannot_open_the_journal(tmp_path: Path) -> None:
    with full_journal(tmp_path / "journal"), pytest.raises(InvalidInput, match="another process"):
        Journal(tmp_path / "journal", "same")


def test_a_stored_passage_comes_back_bit_for_bit(tmp_path: Path) -> None:
    with full_journal(tmp_path / "journal") as journal:
        before = journal.load(1).samples
    with Journal(tmp_path / "journal", "same") as journal:
        assert set(journal.n_samples) == {0, 1}
        assert np.array_equal(journal.load(1).samples, before)
        assert np.abs(before - np.sin(np.arange(24_000, dtype=np.float32) / 21)).max() <= 1 / 32767


# -- passages ----------------------------------------------------------------------------------------------------

PIECE = st.sampled_from(
    ["word", "Word.", "two words", "\n", "\n\n", " ", "[voice:am_adam]", "[/voice]", "[rate:1.2]", "[link. Here](x)",
     "…", "A sentence of some length stands here, and ends. " * 12]
)  # fmt: skip


@given(texts=st.lists(st.lists(PIECE, max_size=30).map("".join), max_size=3))
def test_passages_are_the_whole_text_in_order_and_none_is_too_long(texts: list[str]) -> None:
    chapters = [Chapter("x", text) for text in texts]
    plan = list(passages(chapters))
    for n, text in enumerate(texts):
        mine = [passage for passage in plan if passage.chapter == n]
        assert "".join("".join(text[each.start : each.end].split()) for each in mine) == "".join(text.split())
        assert all(each.end - each.start <= 5 * MAX_CHARACTERS + MIN_CHARACTERS for each in mine)


def test_marks_stay_in_force_in_the_next_passage() -> None:
    sentence = "The water runs deep under the old bridge tonight. "
    text = f"[voice:am_adam]{sentence * 30}[/voice][rate:1.2]{sentence * 30}"
    plan = list(passages([Chapter("x", text)]))
    assert {passage.marks for passage in plan} == {"", "[voice:am_adam]", "[rate:1.2]"}
    assert plan[-1].text([Chapter("x", text)]).startswith("[rate:1.2]The")


@pytest.mark.slow
def test_an_endless_paragraph_takes_linear_time() -> None:
    for text in ("word " * 100_000, "[" * 100_000, "x" * 300_000, "One. " * 60_000):
        plan = list(passages([Chapter("x", text)]))
        assert sum(passage.end - passage.start for passage in plan) > 0.7 * len(text)
