"""The sound card, where there is one."""

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from tutti.client.audio import SAMPLE_RATE, Piece


def sound_card() -> ModuleType | None:
    """The library that plays, if it is installed and has a device to play on."""
    try:
        card = import_module("sounddevice")
    except (ImportError, OSError):  # OSError: the package is there, PortAudio is not
        return None
    try:
        card.query_devices(kind="output")
    except (ValueError, card.PortAudioError):
        return None
    return card


def play(pieces: Iterable[Piece], card: ModuleType, sample_rate: int = SAMPLE_RATE) -> float:
    """Plays while the pieces come; the seconds that were heard."""
    n_bytes = 0
    with card.RawOutputStream(samplerate=sample_rate, channels=1, dtype="int16") as out:
        for piece in pieces:
            out.write(piece.audio)
            n_bytes += len(piece.audio)
    return n_bytes / 2 / sample_rate
