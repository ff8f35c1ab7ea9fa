"""The sound card, where there is one."""

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from tutti.client.audio import SAMPLE_BYTES, SAMPLE_RATE, Piece
from tutti.errors import TuttiError

DTYPE = "int16"


class NoSoundCard(TuttiError):
    """Nothing here can play; the message says what would help."""

    status, code, exit_code = 501, "no_sound_card", 3


def sound_card(sample_rate: int = SAMPLE_RATE) -> ModuleType:
    """The library that plays, if it is installed and has a device that takes our sound."""
    try:
        card = import_module("sounddevice")
    except ImportError:
        raise NoSoundCard('to hear it: pip install "tutti-tts[play]"') from None
    except OSError:
        raise NoSoundCard("to hear it, PortAudio is missing: apt install libportaudio2") from None
    try:
        card.check_output_settings(samplerate=sample_rate, channels=1, dtype=DTYPE)
    except (ValueError, card.PortAudioError) as error:
        raise NoSoundCard(f"no sound card to hear it: {error}") from None
    return card


def play(pieces: Iterable[Piece], card: ModuleType, sample_rate: int = SAMPLE_RATE) -> float:
    """Plays while the pieces come, to the last sample; the seconds that were heard."""
    n_bytes = 0
    try:
        with card.RawOutputStream(samplerate=sample_rate, channels=1, dtype=DTYPE) as out:
            for piece in pieces:
                out.write(piece.audio)
                n_bytes += len(piece.audio)
    except card.PortAudioError as error:
        heard_s = n_bytes / SAMPLE_BYTES / sample_rate
        raise NoSoundCard(f"the sound card gave up after {heard_s:.1f} s: {error}") from error
    return n_bytes / SAMPLE_BYTES / sample_rate
