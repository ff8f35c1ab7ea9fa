"""`tutti say`: through the sound card where there is one, into a file and with the reason where there is none."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.server.harness import RunningServer
from tutti.cli import main as cli
from tutti.client.sound_card import NoSoundCard, sound_card

Run = Callable[..., tuple[int, str]]


class PortAudioError(Exception):
    pass


class Card(SimpleNamespace):
    """What `sounddevice` is to us: it listens, and breaks where it is told to."""

    PortAudioError = PortAudioError
    FORM = {"samplerate": 24_000, "channels": 1, "dtype": "int16"}  # noqa: RUF012

    def __init__(self, refuses: Exception | None = None, breaks_after: int = 1 << 30) -> None:
        super().__init__(refuses=refuses, breaks_after=breaks_after, heard=b"", state="closed")

    def check_output_settings(self, **asked: object) -> None:
        assert asked == self.FORM
        if self.refuses:
            raise self.refuses

    def RawOutputStream(self, **asked: object) -> "Card":
        assert asked == self.FORM
        return self

    def __enter__(self) -> "Card":
        self.state = "open"
        return self

    def __exit__(self, *_: object) -> None:
        self.state = "played to the end and closed"

    def write(self, pcm: bytes) -> None:
        if len(self.heard) + len(pcm) > self.breaks_after:
            raise PortAudioError("Unanticipated host error")
        self.heard += pcm


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tutti", *arguments])
        with pytest.raises(SystemExit) as done:
            cli.main()
        return done.value.code if isinstance(done.value.code, int) else 0, capsys.readouterr().err

    return run


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    made = Card()
    monkeypatch.setitem(sys.modules, "sounddevice", made)  # type: ignore[arg-type]
    return made


def test_it_plays_every_sample_where_there_is_a_card(run: Run, server: RunningServer, card: Card) -> None:
    assert run("say", "deep water", "--url", server.url)[0] == 0
    run("say", "deep water", "--url", server.url, "-o", "x.pcm")
    assert card.heard == Path("x.pcm").read_bytes()
    assert card.state == "played to the end and closed"
    assert not Path("speech.wav").exists()


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        (ModuleNotFoundError("No module named 'sounddevice'"), 'pip install "tutti-tts[play]"'),
        (OSError("PortAudio library not found"), "libportaudio2"),
    ],
    ids=["no library", "no PortAudio"],
)
def test_without_the_library_it_writes_a_file_and_says_what_helps(
    run: Run, server: RunningServer, monkeypatch: pytest.MonkeyPatch, error: Exception, cure: str
) -> None:
    def missing(_: str) -> None:
        raise error

    monkeypatch.setattr("tutti.client.sound_card.import_module", missing)
    code, said = run("say", "deep water", "--url", server.url)
    assert code == 0
    assert cure in said
    assert Path("speech.wav").read_bytes()[:4] == b"RIFF"


@pytest.mark.parametrize("error", [PortAudioError("Error querying device -1"), ValueError("No output device")])
def test_a_machine_without_a_card_writes_a_file_and_says_why(
    run: Run, server: RunningServer, card: Card, error: Exception
) -> None:
    card.refuses = error
    code, said = run("say", "deep water", "--url", server.url)
    assert code == 0
    assert f"speech.wav: {len(Path('speech.wav').read_bytes()[44:]) / 48_000:.1f} s" in said
    assert str(error) in said
    with pytest.raises(NoSoundCard):
        sound_card()


def test_a_card_that_breaks_is_one_line_and_not_a_silent_end(run: Run, server: RunningServer, card: Card) -> None:
    card.breaks_after = 2400
    code, said = run("say", "deep water", "--url", server.url)
    assert code == 3
    assert said.startswith("tutti: the sound card gave up after 0.0 s")


def test_a_file_is_what_its_name_says(run: Run, server: RunningServer) -> None:
    starts = {"x.wav": b"RIFF", "x.mp3": b"\xff", "x.ogg": b"OggS", "x.flac": b"fLaC"}
    for name, start in starts.items():
        assert run("say", "deep water", "--url", server.url, "-o", name)[0] == 0
        assert Path(name).read_bytes().startswith((start, b"ID3"))


def test_say_names_what_is_wrong(run: Run, server: RunningServer) -> None:
    assert "did you mean af_heart" in run("say", "hi", "--url", server.url, "-o", "x.wav", "-v", "af_hart")[1]
    assert "choose one of" in run("say", "hi", "--url", server.url, "-o", "x.xyz")[1]
    assert run("say", "hi", "--url", "http://127.0.0.1:9", "-o", "x.wav")[0] == 3
