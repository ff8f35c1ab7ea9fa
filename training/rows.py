"""Random rows for the teacher to speak: sentences in nine languages, all voices and blends, speeds and prosody.

The vocoder sees some hundred milliseconds at a time, so sentences need not make sense; what counts is that every
sound, voice, pitch and pace occurs, and the hard ones often: fast speech, blends, a word or two, small languages.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from tutti.speech import MAX_PHONEMES, STYLE_SIZE, Prosody, Utterance
from tutti.text.vocab import encode
from tutti.verify.sentences import SENTENCES

MIN_SPEED, FAST, MAX_SPEED = 0.7, 1.2, 1.5
WHISPERING = "af_nicole"  # the only voice that does: a sound of its own, so it is drawn more often
HELD_OUT = 20  # every so many words of each language is never trained on
LONGEST = 420  # phonemes of a training row
N_WORDS = ((0.3, 1, 3), (0.64, 3, 8), (0.94, 8, 20), (1.0, 20, 60))  # of a row: fewest and most, by their share

Words = Mapping[str, Sequence[str]]  # by the letter of the language


@dataclass(frozen=True, slots=True)
class VoiceTables:
    """The style tables of all voices."""

    names: tuple[str, ...]
    tables: NDArray[np.float32]  # [voices, 510, 256]

    @staticmethod
    def read(path: Path) -> "VoiceTables":
        """From a folder of `.bin` files, or from the archive that `write` makes."""
        if path.is_dir():
            files = sorted(path.glob("*.bin"))
            tables = np.stack([np.fromfile(file, np.float32).reshape(MAX_PHONEMES, STYLE_SIZE) for file in files])
            return VoiceTables(tuple(file.stem for file in files), tables)
        with np.load(path, allow_pickle=False) as archive:
            return VoiceTables(tuple(archive["names"].tolist()), archive["tables"].astype(np.float32))

    def write(self, path: Path) -> None:
        """Half the size in fp16, which changes a style by less than a thousandth."""
        np.savez(path, names=np.array(self.names), tables=self.tables.astype(np.float16))


def read_words(path: Path) -> dict[str, list[str]]:
    words: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return words


class RowSource:
    """An endless supply of rows; the same seed gives the same rows."""

    def __init__(self, words: Words, voices: VoiceTables, seed: int) -> None:
        self._voices = voices
        self._rng = Random(seed)
        self._letters = sorted({name[0] for name in voices.names})
        self._words = {
            letter: [word for i, word in enumerate(each) if i % HELD_OUT] or list(each)
            for letter, each in words.items()
        }

    def take(self, n: int) -> list[Utterance]:
        return [self._row() for _ in range(n)]

    def _row(self) -> Utterance:
        rng = self._rng
        names = self._voices.names
        kind = rng.random()
        if kind < 0.05 and WHISPERING in names:
            voice = names.index(WHISPERING)
        elif kind < 0.35:  # each language alike, however few voices it has
            letter = rng.choice(self._letters)
            voice = rng.choice([i for i, name in enumerate(names) if name[0] == letter])
        else:
            voice = rng.randrange(len(names))
        letter = names[voice][0] if rng.random() < 0.8 else rng.choice(list(self._words))
        phonemes = self._sentence(self._words.get(letter) or next(iter(self._words.values())))
        prosody = Prosody()
        if rng.random() < 0.5:
            prosody = Prosody(rng.uniform(-6, 6), rng.uniform(0.4, 1.7), rng.choice((0.0, rng.uniform(-3, 3))))
        return _utterance(phonemes, self._style(voice, len(phonemes)), self._speed(), prosody)

    def _sentence(self, words: Sequence[str]) -> str:
        rng = self._rng
        kind = rng.random()
        if kind < 0.01:
            return rng.choice((".", "…", "—", ",", "!", "?"))  # hardly a sound
        fewest, most = next(range_ for below, *range_ in N_WORDS if kind < below)
        n_words = rng.randint(fewest, most)
        parts = [rng.choice(words) + (rng.choice((",", ",", ";", " —", ":", ".")) if rng.random() < 0.1 else "")
                 for _ in range(n_words)]  # fmt: skip
        sentence = " ".join(parts)[:LONGEST].rstrip(" ,;:—.")
        return sentence + rng.choice((".", ".", ".", "!", "?", "", "…"))

    def _style(self, voice: int, n_phonemes: int) -> NDArray[np.float32]:
        rng, tables = self._rng, self._voices.tables
        style = tables[voice, n_phonemes - 1]
        if rng.random() < 0.4:  # a blend
            share = rng.random()
            style = share * style + (1 - share) * tables[rng.randrange(len(tables)), n_phonemes - 1]
        if rng.random() < 0.05:  # the prosody of another voice
            style = np.concatenate([style[:128], tables[rng.randrange(len(tables)), n_phonemes - 1, 128:]])
        return style.astype(np.float32)

    def _speed(self) -> float:
        kind = self._rng.random()
        return 1.0 if kind < 0.35 else self._rng.uniform(MIN_SPEED if kind < 0.7 else FAST, MAX_SPEED)


def held_out_rows(words: Words, voices: VoiceTables, per_voice: int, seed: int = 1) -> list[Utterance]:
    """Rows of words that are never trained on: each voice in its language; every third row with changed prosody."""
    rng = Random(seed)
    rows = []
    for voice, name in enumerate(voices.names):
        kept = [word for i, word in enumerate(words.get(name[0]) or next(iter(words.values()))) if i % HELD_OUT == 0]
        for i in range(per_voice):
            phonemes = " ".join(rng.choice(kept) for _ in range(rng.choice((2, 6, 9, 14)))) + "."
            if name[0] in "ab" and i % 2:
                phonemes = rng.choice(SENTENCES)[1]
            style = voices.tables[voice, len(phonemes) - 1]
            if i % 4 == 3:
                style = 0.5 * style + 0.5 * voices.tables[rng.randrange(len(voices.names)), len(phonemes) - 1]
            prosody = Prosody(pitch=rng.uniform(-4, 4)) if i % 3 == 2 else Prosody()
            speed = 1.0 if i % 2 == 0 else rng.uniform(MIN_SPEED, MAX_SPEED)
            rows.append(_utterance(phonemes, style.astype(np.float32), speed, prosody))
    return rows


def _utterance(phonemes: str, style: NDArray[np.float32], speed: float, prosody: Prosody) -> Utterance:
    return Utterance(encode(phonemes), style, speed, prosody=prosody)
