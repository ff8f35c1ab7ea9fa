"""deploy/speech-dispatcher: Speech Dispatcher speaks through a server, at its rate and in its voices."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import RunningServer, serving

NEEDED = ("speech-dispatcher", "spd-say", "jq", "curl")
pytestmark = [
    pytest.mark.server,
    pytest.mark.process,
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"apt-get install {' '.join(NEEDED)}"),
]

CONFIG = Path(__file__).parents[2] / "deploy/speech-dispatcher/tutti.conf"
# In the place of a sound card: it keeps what it is given, or plays without an end.
PLAYER = """#!/bin/sh
[ -e "$PLAYED.endless" ] && echo $$ > "$PLAYED.pid" && exec sleep 600
cat > "$PLAYED.part" && mv "$PLAYED.part" "$PLAYED"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(tmp_path_factory.mktemp("voices")))) as running:
        yield running


@pytest.fixture
def speech(server: RunningServer, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a user whose Speech Dispatcher runs with this module alone."""
    config = tmp_path / "config/speech-dispatcher"
    (config / "modules").mkdir(parents=True)
    text = CONFIG.read_text().replace("http://127.0.0.1:8880", server.url)
    (config / "modules/tutti.conf").write_text(text)
    (config / "speechd.conf").write_text(
        f'LogLevel 3\nLogDir "{tmp_path}"\nAddModule "tutti" "sd_generic" "tutti.conf"\nDefaultModule tutti\n'
        'AudioOutputMethod "libao"\nDefaultLanguage "en"\n'
    )
    (tmp_path / ".libao").write_text("default_driver=null\n")
    player = tmp_path / "bin/aplay"
    player.parent.mkdir()
    player.write_text(PLAYER)
    player.chmod(0o755)
    socket = tmp_path / "socket"
    environment = {
        **os.environ, "HOME": str(tmp_path), "PATH": f"{player.parent}:{os.environ['PATH']}",
        "PLAYED": str(tmp_path / "played"), "SPEECHD_ADDRESS": f"unix_socket:{socket}",
    }  # fmt: skip
    command = [
        "speech-dispatcher",
        "--run-single",
        "--config-dir",
        str(config),
        "--communication-method",
        "unix_socket",
        "--socket-path",
        str(socket),
    ]
    with subprocess.Popen([*command, "--pid-file", str(tmp_path / "pid")], env=environment) as process:
        try:
            while not socket.exists():
                assert process.poll() is None
                time.sleep(0.02)
            yield environment
        finally:
            process.terminate()


def say(environment: dict[str, str], *arguments: str) -> bytes:
    played = Path(environment["PLAYED"])
    played.unlink(missing_ok=True)
    subprocess.run(["spd-say", "--wait", "-o", "tutti", *arguments], env=environment, check=True, timeout=60)
    while not played.exists():
        time.sleep(0.02)
    return played.read_bytes()


def test_a_text_is_spoken_as_the_server_speaks_it(server: RunningServer, speech: dict[str, str]) -> None:
    text = """It's "five" o'clock & $HOME."""
    heard = say(speech, text)
    assert heard == server.speak(input=text, voice="af_heart", response_format="pcm").content


@pytest.mark.parametrize(("rate", "speed"), [(100, 4.0), (50, 2.0), (-100, 0.25)])
def test_the_rate_of_a_screen_reader_reaches_four_times(
    server: RunningServer, speech: dict[str, str], rate: int, speed: float
) -> None:
    heard = say(speech, "--rate", str(rate), "deep water")
    assert heard == server.speak(input="deep water", voice="af_heart", speed=speed, response_format="pcm").content


def test_a_cancelled_text_ends_at_once(speech: dict[str, str]) -> None:
    played = Path(speech["PLAYED"])
    played.with_name("played.endless").touch()
    subprocess.run(["spd-say", "-o", "tutti", "deep water"], env=speech, check=True, timeout=60)
    pid = played.with_name("played.pid")
    while not (pid.exists() and pid.read_text().endswith("\n")):
        time.sleep(0.02)
    player = psutil.Process(int(pid.read_text()))
    subprocess.run(["spd-say", "--cancel"], env=speech, check=True, timeout=60)
    player.wait(30)
