"""Forced alignment: the time of each word of a known reading in speech, by hidden Markov models of human speakers.

PocketSphinx with its American English model (in its wheel, 29 MB). It gets our phonemes, not the text, so numbers and
names need no dictionary, and each of its words is one word of ours.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tutti.speech import Samples

FRAME_S = 0.01
# A frame is a window of 25.6 ms from the start of the frame; a change in it is at about its middle.
WINDOW_S = (0.0256 - FRAME_S) / 2

ARPABET = {
    **{"A": "EY", "I": "AY", "O": "OW", "Q": "OW", "W": "AW", "Y": "OY", "i": "IY", "u": "UW", "e": "EH", "a": "AE"},
    **{"ɑ": "AA", "ɒ": "AA", "ɔ": "AO", "æ": "AE", "ɛ": "EH", "ɪ": "IH", "ᵻ": "IH", "ʊ": "UH", "ʌ": "AH", "ə": "AH"},
    **{"ᵊ": "AH", "ɐ": "AH", "ɜ": "ER", "ɚ": "ER", "o": "OW", "b": "B", "d": "D", "f": "F", "h": "HH", "j": "Y"},
    **{"k": "K", "l": "L", "m": "M", "n": "N", "p": "P", "s": "S", "t": "T", "v": "V", "w": "W", "z": "Z"},
    **{"ɡ": "G", "ŋ": "NG", "ɹ": "R", "ʃ": "SH", "ʒ": "ZH", "ð": "DH", "θ": "TH", "ʤ": "JH", "ʧ": "CH", "ʔ": "T"},
    **{"T": "T", "ɾ": "D", "x": "K"},
}


def arpabet(phonemes: str) -> list[str]:
    """Kokoro's symbols of a word as ARPAbet, without stress and length."""
    sounds: list[str] = []
    for symbol in phonemes:
        sound = ARPABET.get(symbol)
        if sound == "R" and sounds and sounds[-1] == "ER":
            continue  # "ɜɹ" is one symbol there
        if sound == "R" and sounds and sounds[-1] == "AH":
            sounds[-1] = "ER"
        elif sound:
            sounds.append(sound)
    return sounds


def align(samples: Samples, words: Sequence[str]) -> list[tuple[float, float]] | None:
    """Start and end in seconds of each word, given as phonemes, in 16 kHz samples; None if no alignment is found."""
    from pocketsphinx import Decoder

    spelled = [arpabet(word) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        dictionary = Path(folder) / "words.dict"
        dictionary.write_text("".join(f"w{n} {' '.join(sounds)}\n" for n, sounds in enumerate(spelled)), "utf-8")
        decoder = Decoder(lm=None, dict=str(dictionary), beam=1e-120, wbeam=1e-100, pbeam=1e-120, loglevel="FATAL")
    decoder.set_align_text(" ".join(f"w{n}" for n in range(len(words))))
    decoder.start_utt()
    decoder.process_raw((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    if decoder.hyp() is None:
        return None
    frames = {
        segment.word.partition("(")[0]: (segment.start_frame, segment.end_frame + 1)
        for segment in decoder.seg()
        if segment.word.startswith("w")
    }
    if len(frames) != len(words):
        return None
    spans = [frames[f"w{n}"] for n in range(len(words))]
    return [(start * FRAME_S + WINDOW_S, end * FRAME_S + WINDOW_S) for start, end in spans]
