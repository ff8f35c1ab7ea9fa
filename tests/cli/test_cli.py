"""The command line: files in any format, streams, word times, one line for an error."""

import io
import json
import os
import re
import subprocess
import sys
import wave
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from tests.client.test_say import Card
from tests.fakes import silent_voices, tone_engine
from tests.full_disk import fill_disk
from tutti.cli import main as cli
from tutti.cli.serve import GROUPS
from tutti.cli.terminal import progress_bar
from tutti.engine.engine import Engine
from tutti.model.onnx.split import Graphs
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.voice_traits import TRAITS

Run = Callable[..., tuple[int, bytes, str]]


class LaLaG2P:
    """G2P that pronounces every word as "la"."""

    def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Pronunciation:
        words, at = [], 0
        for word in spoken.text.split():
            start = spoken.text.index(word, at)
            at = start + len(word)
            words.append(PhonemeWord("la", spoken.source(start, at)))
        return Pronunciation(tuple(words))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Run:
    """Run `tutti …` in an empty folder on the tone model: exit code, standard output, standard error."""
    folder = tmp_path / "voices"
    folder.mkdir()
    voices = silent_voices(folder)

    def open_engine(settings: Settings, **_: object) -> Engine:
        return tone_engine(voices, pronounce=LaLaG2P().pronounce, others={"kokoro-light": ToneModel})

    monkeypatch.setattr("tutti.engine.build.open_engine", open_engine)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "argv", ["tutti", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as exit:
            cli.main()
        out, err = capfdbinary.readouterr()
        return exit.value.code if isinstance(exit.value.code, int) else 0, out, err.decode()

    return run


def decode(data: bytes, format: str | None = None) -> np.ndarray:
    with av.open(io.BytesIO(data), format=format) as file:
        return np.concatenate([frame.to_ndarray().reshape(-1) for frame in file.decode(audio=0)])


def test_a_file_is_complete_and_its_header_has_the_true_length(run: Run, tmp_path: Path) -> None:
    assert run("speak", "deep water runs", "-o", "x.wav")[0] == 0
    with wave.open(str(tmp_path / "x.wav")) as file:
        assert file.getnframes() * 2 == (tmp_path / "x.wav").stat().st_size - 44
        assert file.getframerate() == 24_000
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.parametrize(
    ("name", "format"), [("x.mp3", "mp3"), ("x.opus", "ogg"), ("x.flac", "flac"), ("x.aac", "aac")]
)
def test_the_suffix_chooses_the_format(run: Run, tmp_path: Path, name: str, format: str) -> None:
    run("speak", "deep water runs", "-o", "x.wav")
    run("speak", "deep water runs", "-o", name)
    with av.open(str(tmp_path / name)) as file:
        assert format in file.format.name
    n_wav = len(decode((tmp_path / "x.wav").read_bytes()))
    n_samples = len(decode((tmp_path / name).read_bytes()))
    assert n_samples / (2 if format == "ogg" else 1) == pytest.approx(n_wav, abs=4096)


def test_a_comparison_is_two_files_of_the_same_length(run: Run, tmp_path: Path) -> None:
    code, _, err = run("speak", "deep water runs", "-o", "x.wav", "--compare")
    assert code == 0
    assert "x-exact.wav and x-light.wav" in err
    assert not (tmp_path / "x.wav").exists()
    assert (tmp_path / "x-exact.wav").stat().st_size == (tmp_path / "x-light.wav").stat().st_size > 44
    for wrong in (["-o", "-"], ["--model", "kokoro"]):
        code, _, err = run("speak", "deep water runs", "--compare", *wrong)
        assert code
        assert "--compare" in err


def test_play_plays_every_sample_and_writes_no_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card()
    monkeypatch.setitem(sys.modules, "sounddevice", card)  # type: ignore[arg-type]
    assert run("speak", "deep water runs", "--play")[0] == 0
    assert not Path("speech.wav").exists()
    run("speak", "deep water runs", "-o", "x.pcm")
    assert card.played == Path("x.pcm").read_bytes()
    assert card.state == "played to the end and closed"


def test_play_says_what_is_missing_before_it_loads_a_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)  # type: ignore[arg-type]
    code, _, err = run("speak", "deep water runs", "--play")
    assert code
    assert "to play audio" in err


def test_a_sound_card_that_fails_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", Card(breaks_after=10))  # type: ignore[arg-type]
    code, _, err = run("speak", "deep water runs", "--play")
    assert code
    assert "the sound card failed" in err


@pytest.mark.parametrize(("typed", "completed"), [("tutti spea", "speak"), ("tutti speak --pla", "--play")])
def test_a_shell_completes_commands_and_options(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, completed: str
) -> None:
    """As bash asks after `tutti --install-completion`."""
    monkeypatch.setenv("_TUTTI_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    assert completed in run()[1].decode().split()


def test_standard_output_is_audio_and_nothing_else(run: Run) -> None:
    code, streamed, err = run("speak", "deep water runs", "-o", "-", "--format", "pcm")
    assert code == 0
    run("speak", "deep water runs", "-o", "x.pcm")
    assert streamed == Path("x.pcm").read_bytes()
    assert "s of speech" in err


def test_text_comes_from_an_argument_a_file_or_standard_input(run: Run) -> None:
    Path("text.txt").write_text("deep water runs", "utf-8-sig")
    results = [
        run("speak", source, "-o", "-", "-f", "pcm", stdin=b"deep water runs")[1]
        for source in ("deep water runs", "text.txt", "-")
    ]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", ["missing.txt", "./missing", "../x/missing.md", "/missing/a", "MISSING.EPUB", "./"])
def test_a_file_that_does_not_exist_is_not_spoken(run: Run, name: str) -> None:
    code, out, err = run("speak", name, "-o", "x.wav")
    assert (code, out, Path("x.wav").exists()) == (2, b"", False)
    assert f"the file {name} " in err
    assert "| tutti speak -" in err


@pytest.mark.parametrize("text", ["example.com", "and/or", "Version 2.0", "e.g.", "Hello.", "~5", "a.b"])
def test_a_text_that_is_no_name_of_a_file_is_spoken(run: Run, text: str) -> None:
    code, _, err = run("speak", text, "-o", "x.wav")
    assert (code, "file" in err) == (0, False)


def test_a_sentence_that_ends_like_a_file_is_spoken_with_a_notice(run: Run) -> None:
    code, _, err = run("speak", "Open my notes.txt", "-o", "x.wav")
    assert (code, "there is no file 'Open my notes.txt'; speaking these words" in err) == (0, True)


def test_words_without_quotes_are_one_text(run: Run) -> None:
    quoted, words = (
        run("speak", *arguments, "-o", "-", "-f", "pcm")[1]
        for arguments in (("deep water runs",), ("deep", "water", "runs"))
    )
    assert quoted == words
    Path("deep.txt").write_text("deep")
    assert "deep.txt must be the only argument" in run("speak", "deep.txt", "water")[2]
    assert "- must be the only argument" in run("speak", "deep", "-")[2]


def test_a_book_is_sent_to_the_command_for_books(run: Run) -> None:
    Path("book.epub").write_bytes(b"PK\x03\x04\xff")
    code, _, err = run("speak", "book.epub")
    assert (code, "run: tutti read book.epub" in err) == (2, True)


def test_word_times_point_at_the_original_words(run: Run) -> None:
    text = "It costs $5.20 — really!"
    run("speak", text, "-o", "x.wav", "--words", "words.json")
    words = json.loads(Path("words.json").read_text())
    assert [text[word["from"] : word["to"]] for word in words][:3] == ["It", "costs", "$5.20"]
    assert all(a["start"] < a["end"] <= b["start"] for a, b in pairwise(words))


def test_captions_are_written_in_the_format_of_their_suffix(run: Run) -> None:
    for name in ("x.srt", "x.vtt", "x.json"):
        assert run("speak", "deep [rate:2]water[/rate] runs", "-o", "x.wav", "--captions", name)[0] == 0
    assert "deep water runs" in Path("x.srt").read_text()
    assert Path("x.vtt").read_text().startswith("WEBVTT\n\n00:00:00.")
    assert json.loads(Path("x.json").read_text())["cues"][0]["text"] == "deep water runs"
    code, _, err = run("speak", "deep", "-o", "y.wav", "--captions", "x.txt")
    assert (code, ".srt, .vtt or .json" in err, Path("y.wav").exists()) == (2, True, False)


def test_prosody_is_set_by_options(run: Run) -> None:
    plain, low = (run("speak", "deep water", "-o", "-", "-f", "pcm", *flags)[1] for flags in ((), ("--pitch", "-12")))
    assert len(plain) == len(low)
    assert plain != low
    assert run("speak", "deep", "--emotion", "clam")[2] == (
        "tutti: unknown emotion 'clam'; did you mean calm?; known: "
        "neutral, calm, happy, excited, sad, angry, serious, gentle\n"
    )
    assert "did you mean" not in run("speak", "deep", "--emotion", "glad")[2]  # and not the opposite


def test_other_rates_and_speeds(run: Run) -> None:
    lengths = {}
    for flags in ((), ("--sample-rate", "8000"), ("--speed", "2.5")):
        lengths[flags] = len(run("speak", "deep water runs", "-o", "-", "-f", "pcm", *flags)[1])
    assert lengths["--sample-rate", "8000"] == pytest.approx(lengths[()] / 3, abs=2)
    assert lengths["--speed", "2.5"] == lengths[()] / 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("speak", ""), 2, "the text is empty"),
        (("speak", "😀😀"), 2, "only: 😀"),
        (("speak", "hi", "--voice", "af_hart"), 2, "did you mean af_heart"),
        (("speak", "hi", "--format", "mp4"), 2, "did you mean mp3"),
        (("speak", "hi", "-o", "x.xyz"), 2, ".xyz"),
        (("speak", "hi", "--language", "kligon"), 2, "unknown language"),
        (("speak", "hi", "--speed", "0"), 2, "0.25 to 4"),
        (("speak", "hi", "--speed", "-1"), 2, "0.25 to 4"),
        (("speak", "hi", "--speed", "nan"), 2, "0.25 to 4"),
        (("speak", "hi", "--speed", "9"), 2, "0.25 to 4"),
        (("speak", "hi", "--sample-rate", "12345"), 2, "12345"),
        (("speak", "hi", "-o", "nowhere/x.wav"), 2, "cannot write nowhere/x.wav"),
        (("speak", "hi", "--words", "nowhere/x.json"), 2, "cannot write nowhere/x.json"),
        (("speak", "hi", "--threads", "0"), 2, "threads from --threads"),
        (("voices", "--language", "elvish"), 2, "unknown language"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    exit_code, out, err = run(*arguments)
    assert (exit_code, out) == (code, b"")
    assert message in err.splitlines()[-1]
    assert len(err.splitlines()) == 1 or err.startswith("speech.wav")
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    from tutti.errors import UnknownFormat

    monkeypatch.setattr(sys, "argv", ["tutti", "speak", "hi", "--format", "mp4", "--debug"])
    with pytest.raises(UnknownFormat):
        cli.main()


def test_bytes_that_are_not_utf_8_are_refused(run: Run) -> None:
    assert "not UTF-8 text (byte 3); name its own, as --encoding cp1252" in run("speak", "-", stdin=b"caf\xe9")[2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported_and_leaves_no_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_disk(monkeypatch)
    code, _, err = run("speak", "deep water", "-o", "x.wav")
    assert (code, "no room left to write x.wav" in err) == (4, True)
    assert not Path("x.wav").exists()


def test_dropped_symbols_are_reported(run: Run) -> None:
    assert "2 symbols could not be spoken: 😀 ×2" in run("speak", "deep 😀 water 😀")[2]


@pytest.mark.parametrize("text", ["你好😀。 deep water", "deep water. 你好😀。"])
def test_what_stands_alone_in_another_script_is_reported(run: Run, text: str) -> None:
    code, _, err = run("speak", text)
    assert (code, "1 symbol could not be spoken: 😀" in err) == (0, True)
    assert "note: some of the text looks like Mandarin Chinese" in err


def test_without_arguments_it_prints_help(run: Run) -> None:
    _, out, err = run()
    assert "speak" in out.decode() + err
    assert "Usage" in out.decode() + err


def test_voices_are_listed_with_language_gender_and_grade(run: Run) -> None:
    listed = json.loads(run("voices", "--json")[1])
    assert len(listed) == 54
    george = {"id": "bm_george", "language": "en-gb", "gender": "male", "grade": "C"}
    assert {**george, "description": TRAITS["bm_george"]} in listed
    assert TRAITS["af_heart"].encode() in run("voices")[1]
    assert {row["language"] for row in json.loads(run("voices", "--json", "-l", "Japanese")[1])} == {"ja"}
    assert b"af_heart" in run("voices")[1]


def test_config_shows_value_and_source(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUTTI_VOICE", "am_puck")
    row = next(line for line in run("config")[1].decode().splitlines() if line.startswith("TUTTI_VOICE "))
    assert row.split()[1:4] == ["am_puck", "environment", "(TUTTI_VOICE)"]


def test_a_table_is_complete_in_a_pipe(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / ("long " * 30)
    monkeypatch.setenv("TUTTI_HOME", str(home))
    monkeypatch.setenv("COLUMNS", "40")
    lines = run("config")[1].decode().splitlines()
    assert len(lines) == 1 + len(Settings.model_fields)
    assert str(home) in lines[1]
    assert all(
        str(field.description) in line for field, line in zip(Settings.model_fields.values(), lines[1:], strict=True)
    )
    assert len(run("voices")[1].decode().splitlines()) == 55


def test_config_prints_json_without_secrets(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUTTI_API_KEYS", "hush,hush2")
    monkeypatch.setenv("TUTTI_PORT", "9000")
    printed = run("config", "--json")[1]
    rows = {row["setting"]: row for row in json.loads(printed)}
    assert b"hush" not in printed + run("config")[1]
    assert rows["TUTTI_PORT"] == {
        "setting": "TUTTI_PORT",
        "value": 9000,
        "from": "environment (TUTTI_PORT)",
        "meaning": Settings.model_fields["port"].description,
    }
    assert (rows["TUTTI_BATCHING"]["value"], rows["TUTTI_WORKERS"]["value"]) == (True, None)
    assert rows.keys() == {f"TUTTI_{name.upper()}" for name in Settings.model_fields}


COMMANDS = ("serve", "speak", "read", "voices", "pull", "verify", "config", "g2p-serve", "say", "bench", "top")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_flag_has_no_type_in_the_help(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    printed = run(*filter(None, (command, "--help")))[1].decode()
    assert "--help" in printed
    assert "<bool>" not in printed


def test_the_help_of_serve_has_groups_types_and_defaults(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    lines = run("serve", "--help")[1].decode().splitlines()

    def row(flag: str) -> str:
        return next(line for line in lines if line.startswith(f"│ {flag} "))

    titles = [line.strip("╭╮─ ") for line in lines if line.startswith("╭")]
    assert titles == ["Options", *GROUPS.values()]
    for flag, kind, default in (
        ("--port", "<number>", "8880"),
        ("--max-wait-ms", "<number>", "50"),
        ("--voice", "<text>", "af_heart"),
        ("--policy", "<deadline|fifo|window|bypass>", "deadline"),
        ("--batching", "--no-batching", "true"),
        ("--cors-origins", "<a,b,…>", None),
        ("--lexicon", "<path>", None),
        ("--workers", "<number>", None),
    ):
        assert kind in row(flag)
        assert (f"Default: {default}." in row(flag)) if default else ("Default" not in row(flag))


def test_the_progress_bar_says_loading_first_and_shows_no_share_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shown(*steps: tuple[str, int, int]) -> str:
        monkeypatch.setattr(sys, "stderr", screen := Terminal())
        with progress_bar() as show:
            for step in steps:
                show(*step)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    loading = shown(("loading the model", 0, 0))
    assert "loading the model" in loading
    assert "%" not in loading
    assert "-:--:--" not in loading
    assert "%" not in shown(("speaking", 0, 100))
    assert "25%" in shown(("loading the model", 0, 0), ("speaking", 25, 100))


@pytest.mark.parametrize(("text", "message"), [("deep 😀", "1 symbol could"), ("deep 😀😀", "2 symbols could")])
def test_one_is_singular(run: Run, text: str, message: str) -> None:
    assert message in run("speak", text)[2]


def tutti(*arguments: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tutti", *arguments]
    return subprocess.run(command, capture_output=True, env={**os.environ, **environ}, check=False)


@pytest.mark.process
def test_no_weights_and_no_network_is_one_message_that_says_what_to_do(tmp_path: Path) -> None:
    done = tutti("speak", "hi", "-o", str(tmp_path / "x.wav"), "--offline", TUTTI_HOME=str(tmp_path / "empty"))
    assert done.returncode == 3
    assert b"tutti pull --from DIR" in done.stderr
    assert len(done.stderr.decode().splitlines()) == 1


def test_a_check_of_the_bytes_drops_what_was_made_from_the_files(run: Run, tmp_path: Path) -> None:
    names = (*(f"model.{name}" for name in Graphs._fields), "model.decoding.light-0123", "light-0123")
    parts = [tmp_path / f"{name}.onnx" for name in names]
    for path in (*parts, tmp_path / "mine.onnx"):
        path.write_bytes(b"bytes that nobody can check")
    assert run("pull", "--home", str(tmp_path), "--offline", "--precision", "fp32")[0] == 3
    assert all(path.exists() for path in parts), "a pull without --verify keeps them"
    assert run("pull", "--verify", "--home", str(tmp_path), "--offline", "--precision", "fp32")[0] == 3
    assert [path.name for path in tmp_path.glob("*.onnx")] == ["mine.onnx"]


@pytest.mark.weights
@pytest.mark.parametrize(
    "flags", [(), ("--backend", "torch", "--device", "cpu", "--threads", "1")], ids=["auto", "torch"]
)
def test_the_real_model_streams_speech_to_a_pipe(home: Path, flags: tuple[str, ...]) -> None:
    arguments = ("speak", "All voices, one pass.", "-o", "-", "-f", "pcm", "--offline", *flags)
    done = tutti(*arguments, TUTTI_HOME=str(home))
    assert done.returncode == 0, done.stderr
    samples = np.frombuffer(done.stdout, "<i2")
    assert 1.0 < len(samples) / 24_000 < 4.0
    assert np.abs(samples).max() > 3000


@pytest.mark.weights
def test_a_closed_pipe_ends_the_command_quietly(home: Path) -> None:
    command = f'"{sys.executable}" -m tutti speak "All voices, one pass." -o - --offline | head -c 10 >/dev/null'
    done = subprocess.run(
        command, shell=True, capture_output=True, env={**os.environ, "TUTTI_HOME": str(home)}, check=False
    )
    assert b"Traceback" not in done.stderr
    assert b"Error" not in done.stderr


def test_standard_input_is_spoken_while_it_arrives(run: Run, tmp_path: Path) -> None:
    text = "The bridge is old. Deep water runs under it. And more."
    code, _, _ = run("speak", "--live", "-", "-o", "x.wav", "--words", "words.json", stdin=text.encode())
    assert code == 0
    with wave.open(str(tmp_path / "x.wav")) as file:
        assert file.getnframes() > 0
    words = json.loads((tmp_path / "words.json").read_text())
    assert [text[word["from"] : word["to"]] for word in words] == text.split()
    assert "not UTF-8" in run("speak", "--live", "-", stdin=b"caf\xe9")[2]
    assert "standard input" in run("speak", "--live", "hello")[2]


def test_a_text_of_another_encoding_is_read_if_it_is_named(run: Run) -> None:
    assert run("speak", "-", "--encoding", "latin-1", stdin=b"caf\xe9")[0] == 0
    assert "unknown encoding 'ebcdick'" in run("speak", "-", "--encoding", "ebcdick", stdin=b"x")[2]


def test_a_folder_is_named_as_such(run: Run) -> None:
    assert "the file . is a folder" in run("speak", ".")[2]


def test_the_front_matter_of_markdown_is_left_out_and_named(run: Run) -> None:
    Path("notes.md").write_text("---\ntitle: Notes\ntags:\n  - one\n---\nDeep water.\n")
    assert run("speak", "notes.md", "--words", "words.json")[0] == 0
    assert [word["word"] for word in json.loads(Path("words.json").read_text())] == ["Deep", "water."]
    Path("plain.md").write_text("---\nDeep water.\n---\n")
    assert "front matter" not in run("speak", "plain.md")[2]
