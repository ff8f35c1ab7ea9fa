"""Rows that no training has seen: all voices, nine languages, blends, speeds and shifts of the pitch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tutti.speech import Prosody, Utterance
from tutti.text import vocab
from tutti.voices import Voices

DATA = Path(__file__).with_name("held_out.tsv")


@dataclass(frozen=True, slots=True)
class HeldOutRow:
    """A text in one voice, with its phonemes fixed, so that the network is measured and not the text front end."""

    voice: str  # a name or a blend
    speed: float
    pitch: float  # semitones
    text: str
    phonemes: str

    @property
    def is_english(self) -> bool:
        return self.voice[0] in "ab"

    def utterance(self, voices: Voices) -> Utterance:
        style = voices.get(self.voice).style(len(self.phonemes))
        return Utterance(vocab.encode(self.phonemes), style, self.speed, prosody=Prosody(pitch=self.pitch))


def held_out_rows(n: int | None = None) -> list[HeldOutRow]:
    """All rows, or n of them, spread evenly over voices and languages."""
    _, *lines = DATA.read_text("utf-8").splitlines()
    rows = [_row(line.split("\t")) for line in lines]
    return rows if n is None or n >= len(rows) else [rows[i * len(rows) // n] for i in range(n)]


def _row(fields: Sequence[str]) -> HeldOutRow:
    voice, speed, pitch, text, phonemes = fields
    return HeldOutRow(voice, float(speed), float(pitch), text, phonemes)
