"""`tutti say`: through the sound card if there is one, else into a file, with the reason."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.server.harness import RunningServer
from tutti.cli import main as cli
from tutti.client.sound_card import NoSoundCard, sound_card

pytestmark = pytest.mark.server

Run = Callable[..., tuple[int, str]]


class PortAudioError(Exception):
    pass


class Card(SimpleNamespace):
    """A fake `sounddevice`: records what is played and fails where a test wants."""

    PortAudioError = PortAudioError
    FORM = {"samplerate": 24_000, "channels": 1, "dtype": "int16"}  # noqa: RUF012

    def __init__(self, refuses: Exception | None = None, breaks_after: int = 1 << 30) -> None:
        super().__init__(refuses=refuses, breaks_after=breaks_after, played=b"", state="closed")

    def check_output_settings(self, **settings: object) -> None:
        assert settings == self.FORM
        if self.refuses:
            raise self.refuses

    def RawOutputStream(self, **settings: object) -> "Card":
        assert settings == self.FORM
        return self

    def __enter__(self) -> "Card":
        self.state = "open"
        return self

    def __exit__(self, *_: object) -> None:
        self.state = "played to the end and closed"

    def write(self, pcm: bytes) -> None:
        if len(self.played) + len(pcm) > self.breaks_after:
            raise PortAudioError("Unanticipated host error")
        self.played += pcm


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
    fake = Card()
    monkeypatch.setitem(sys.modules, "sounddevice", fake)  # type: ignore[arg-type]
    return fake


def test_it_plays_every_sample_through_a_sound_card(run: Run, server: RunningServer, card: Card) -> None:
    assert run("say", "deep water", "--url", server.url)[0] == 0
    run("say", "deep water", "--url", server.url, "-o", "x.pcm")
    assert card.played == Path("x.pcm").read_bytes()
    assert card.state == "played to the end and closed"
    assert not Path("speech.wav").exists()


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (ModuleNotFoundError("No module named 'sounddevice'"), "[play]"),
        (OSError("PortAudio library not found"), "libportaudio2"),
    ],
    ids=["no library", "no PortAudio"],
)
def test_without_the_library_it_writes_a_file_and_names_the_fix(
    run: Run, server: RunningServer, monkeypatch: pytest.MonkeyPatch, error: Exception, fix: str
) -> None:
    def missing(_: str) -> None:
        raise error

    monkeypatch.setattr("tutti.client.sound_card.import_module", missing)
    code, printed = run("say", "deep water", "--url", server.url)
    assert code == 0
    assert fix in printed
    assert Path("speech.wav").read_bytes()[:4] == b"RIFF"


@pytest.mark.parametrize("error", [PortAudioError("Error querying device -1"), ValueError("No output device")])
def test_without_a_sound_card_it_writes_a_file_and_says_why(
    run: Run, server: RunningServer, card: Card, error: Exception
) -> None:
    card.refuses = error
    code, printed = run("say", "deep water", "--url", server.url)
    assert code == 0
    assert f"speech.wav: {len(Path('speech.wav').read_bytes()[44:]) / 48_000:.1f} s" in printed
    assert str(error) in printed
    with pytest.raises(NoSoundCard):
        sound_card()


def test_a_failing_sound_card_is_reported(run: Run, server: RunningServer, card: Card) -> None:
    card.breaks_after = 2400
    code, printed = run("say", "deep water", "--url", server.url)
    assert code == 3
    assert printed.startswith("tutti: the sound card failed after 0.0 s")


def test_the_file_name_decides_the_format(run: Run, server: RunningServer) -> None:
    starts = {"x.wav": b"RIFF", "x.mp3": b"\xff", "x.ogg": b"OggS", "x.flac": b"fLaC"}
    for name, start in starts.items():
        assert run("say", "deep water", "--url", server.url, "-o", name)[0] == 0
        assert Path(name).read_bytes().startswith((start, b"ID3"))


def test_errors_are_one_line_that_names_the_problem(run: Run, server: RunningServer) -> None:
    assert "did you mean af_heart" in run("say", "hi", "--url", server.url, "-o", "x.wav", "-v", "af_hart")[1]
    assert "choose one of" in run("say", "hi", "--url", server.url, "-o", "x.xyz")[1]
    assert run("say", "hi", "--url", "http://127.0.0.1:9", "-o", "x.wav")[0] == 3


def test_prosody_and_lexicon_flags_reach_the_engine(run: Run, server: RunningServer) -> None:
    Path("names.json").write_text('{"deep": "/dip/"}')
    prosody = ("--speed", "1.5", "--pitch", "-2", "--pitch-range", "0.5", "--energy", "1", "--emotion", "calm")
    flags = ("-o", "x.wav", *prosody, "--lexicon", "names.json")
    assert run("say", "deep water", "--url", server.url, *flags)[0] == 0
    expected = {"speed": 1.5, "pitch": -2.0, "pitch_range": 0.5, "energy": 1.0, "emotion": "calm"}
    assert {**expected, "lexicon": {"deep": "/dip/"}}.items() <= server.engine.requests[-1].items()


def test_a_lexicon_of_the_server_is_named(run: Run, server: RunningServer) -> None:
    server.post("/v1/lexicons/sea", {"deep": "/dip/"})
    assert run("say", "deep sea", "--url", server.url, "-o", "x.wav", "--lexicon-id", "sea")[0] == 0
    assert server.engine.requests[-1]["lexicon"] == {"deep": "/dip/"}


@pytest.mark.parametrize("content", ["[]", '{"deep": 1}', "deep"])
def test_a_bad_lexicon_file_is_named(run: Run, server: RunningServer, content: str) -> None:
    Path("names.json").write_text(content)
    code, printed = run("say", "hi", "--url", server.url, "-o", "x.wav", "--lexicon", "names.json")
    assert code == 2
    assert "names.json" in printed
