"""Play audio through the sound card, if there is one."""

from collections.abc import Iterable
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from types import ModuleType

from tutti.client.audio import SAMPLE_BYTES, SAMPLE_RATE, Piece
from tutti.errors import TuttiError, install_hint

DTYPE = "int16"


class NoSoundCard(TuttiError):
    """Audio cannot be played here; the message says what is missing."""

    status, code, exit_code = 501, "no_sound_card", 3


def sound_card() -> ModuleType:
    """Return the sounddevice library if it is installed and a device accepts our format."""
    try:
        card = import_module("sounddevice")
    except ImportError:
        raise NoSoundCard(f"to play audio: {install_hint('play')}") from None
    except OSError:
        raise NoSoundCard("to play audio, install PortAudio: apt install libportaudio2") from None
    try:
        card.check_output_settings(samplerate=SAMPLE_RATE, channels=1, dtype=DTYPE)
    except (ValueError, card.PortAudioError) as error:
        raise NoSoundCard(f"no sound card can play it: {error}") from None
    return card


class Player:
    """Plays what is written to it, in a thread: who writes need not wait until it is heard."""

    def __init__(self, card: ModuleType) -> None:
        self._pieces: SimpleQueue[Piece | None] = SimpleQueue()
        self._error: NoSoundCard | None = None
        self._thread = Thread(target=self._play, args=(card,), name="sound-card", daemon=True)
        self._thread.start()

    def write(self, audio: bytes) -> None:
        if self._error:
            raise self._error
        if audio:
            self._pieces.put(Piece(audio))

    def flush(self) -> None:
        """Nothing is held back."""

    def finish(self) -> None:
        """Wait until all is heard."""
        self._pieces.put(None)
        self._thread.join()
        if self._error:
            raise self._error

    def _play(self, card: ModuleType) -> None:
        try:
            play(iter(self._pieces.get, None), card)
        except NoSoundCard as error:
            self._error = error


def play(pieces: Iterable[Piece], card: ModuleType) -> float:
    """Play the pieces as they arrive, to the last sample; return the seconds played."""
    n_bytes = 0
    try:
        with card.RawOutputStream(samplerate=SAMPLE_RATE, channels=1, dtype=DTYPE) as out:
            for piece in pieces:
                out.write(piece.audio)
                n_bytes += len(piece.audio)
    except card.PortAudioError as error:
        played_s = n_bytes / SAMPLE_BYTES / SAMPLE_RATE
        raise NoSoundCard(f"the sound card failed after {played_s:.1f} s: {error}") from error
    return n_bytes / SAMPLE_BYTES / SAMPLE_RATE
