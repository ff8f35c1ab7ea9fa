"""Accuracy of the engine's word times, against three methods that only have the audio.

    python -m benchmarks.words                       10 minutes on two cores: 44 texts, six voices
    python -m benchmarks.words --speed 0.7

aligner   a forced alignment of our phonemes (PocketSphinx, steps of 10 ms)
whisper   the word times of Whisper base, where it wrote the word as we did (from attention, steps of 20 ms)
silence   where the level falls and rises around pauses; only words next to one
"""

import asyncio
import itertools
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.heard import Whisper, silences
from benchmarks.score import sentences, spread
from tutti import settings
from tutti.engine.build import open_engine
from tutti.speech import SAMPLE_RATE, Samples, SpeechParams, WordTime
from tutti.verify.recogniser import LEAD_S, prepare_for_recogniser
from tutti.weights import Precision

VOICES = "af_heart,am_michael,bf_emma,bm_george,af_bella,am_puck"
RESULTS = Path(__file__).parent / "results"
EXTRA_TEXTS = (
    '"Come in," she said, "and close the door."',
    "Yes.",
    "No, thank you.",
    "Wait! Who goes there?",
    "He asked (quietly, as always) whether anyone had seen the blue umbrella; nobody had.",
    "One. Two. Three. Go!",
    "Stop, look, and listen - then cross the road.",
    "When the last train had gone and the lamps along the platform went out one by one, the old man folded his "
    "newspaper, picked up the small brown suitcase that had stood beside him since noon, and walked slowly towards "
    "the town, where nobody was waiting for him.",
)
NEAR_S = 0.1  # a pause further from a border of words is not counted: it may belong to another; the aligner counts all


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text as the engine spoke it: its words, and the phonemes of each."""

    text: str
    voice: str
    samples: Samples
    words: tuple[WordTime, ...]
    phonemes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimeError:
    """By how many seconds a word's start or end is late."""

    method: str
    edge: str  # start or end
    voice: str
    word: str
    late_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Many time errors, in milliseconds."""

    by: str  # the method
    edge: str
    voice: str
    words: int
    mean_ms: float
    median_ms: float
    p95_ms: float
    bias_ms: float


Edges = Iterator[tuple[int, str, float]]  # which word, start or end, when


def edges_by_aligner(spoken: SpokenText) -> Edges:
    samples = prepare_for_recogniser(spoken.samples, SAMPLE_RATE)
    for n, (start_s, end_s) in enumerate(align(samples, spoken.phonemes) or ()):
        yield n, "start", start_s - LEAD_S
        yield n, "end", end_s - LEAD_S


def edges_by_whisper(spoken: SpokenText, whisper: Whisper) -> Edges:
    transcript = whisper.words(prepare_for_recogniser(spoken.samples, SAMPLE_RATE))
    ours, theirs = [_plain(word.word) for word in spoken.words], [_plain(word) for word, _, _ in transcript]
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            _, start_s, end_s = transcript[block.b + i]
            yield block.a + i, "start", start_s - LEAD_S
            yield block.a + i, "end", end_s - LEAD_S


def edges_by_silence(spoken: SpokenText) -> Edges:
    """A pause belongs to the nearest border between two words; one inside a word, as in a price, to none."""
    borders = [0.0, *((a.end_s + b.start_s) / 2 for a, b in itertools.pairwise(spoken.words))]
    borders.append(len(spoken.samples) / SAMPLE_RATE)
    for from_s, to_s in silences(spoken.samples):
        after = min(range(len(borders)), key=lambda n: abs(borders[n] - (from_s + to_s) / 2))
        if not from_s - NEAR_S < borders[after] < to_s + NEAR_S:
            continue
        if after > 0:
            yield after - 1, "end", from_s
        if after < len(spoken.words):
            yield after, "start", to_s


def time_errors(spoken: SpokenText, whisper: Whisper) -> Iterator[TimeError]:
    for method, edges in (
        ("aligner", edges_by_aligner(spoken)),
        ("whisper", edges_by_whisper(spoken, whisper)),
        ("silence", edges_by_silence(spoken)),
    ):
        for n, edge, true_s in edges:
            word = spoken.words[n]
            late_s = (word.start_s if edge == "start" else word.end_s) - true_s
            yield TimeError(method, edge, spoken.voice, word.word, late_s)


def summarise(method: str, edge: str, voice: str, errors: Sequence[TimeError]) -> Summary:
    late_ms = 1000 * np.array([error.late_s for error in errors])
    absolute_ms = np.abs(late_ms)
    statistics = absolute_ms.mean(), np.median(absolute_ms), np.percentile(absolute_ms, 95), late_ms.mean()
    return Summary(method, edge, voice, len(errors), *(round(float(ms), 1) for ms in statistics))


def summaries(errors: Sequence[TimeError]) -> list[Summary]:
    """All voices together, and for the aligner also each voice."""
    result = []
    for method, edge in itertools.product(("aligner", "whisper", "silence"), ("start", "end")):
        of_edge = [error for error in errors if (error.method, error.edge) == (method, edge)]
        for voice in ("all", *(sorted({error.voice for error in of_edge}) if method == "aligner" else ())):
            if of_voice := [error for error in of_edge if voice in ("all", error.voice)]:
                result.append(summarise(method, edge, voice, of_voice))
    return result


async def speak(
    texts: Sequence[str], voices: Sequence[str], speed: float, chosen: settings.Settings
) -> list[SpokenText]:
    spoken = []
    async with open_engine(chosen) as engine:
        for text, voice in zip(texts, itertools.cycle(voices)):
            speech = await engine.speak(text, SpeechParams(voice, speed=speed))
            language = "en-gb" if voice.startswith("b") else "en-us"
            words = [word async for chunk in engine.phonemize(text, language) for word in chunk.words if word.phonemes]
            phonemes = [
                "".join(word.phonemes for word in same) for _, same in itertools.groupby(words, lambda w: w.source)
            ]
            assert len(phonemes) == len(speech.words), text
            spoken.append(SpokenText(text, voice, speech.samples, speech.words, tuple(phonemes)))
    return spoken


def _plain(word: str) -> str:
    return re.sub(r"[^\w']", "", word.lower())


def make_table(lines: Sequence[Summary]) -> Table:
    table = Table("by", "edge", "voice", "words", "mean ms", "median", "p95", "bias", box=None)
    for line in lines:
        table.add_row(*(f"{value:+.1f}" if name == "bias_ms" else str(value) for name, value in asdict(line).items()))
    return table


def main(
    precision: Annotated[Precision, typer.Option()] = "fp32",
    voices: Annotated[str, typer.Option(help="names with commas between")] = VOICES,
    n_sentences: Annotated[int, typer.Option("--sentences", help="of the test set, besides those of this file")] = 36,
    speed: Annotated[float, typer.Option()] = 1.0,
    worst: Annotated[int, typer.Option(help="how many of the worst words to show")] = 8,
    home: Annotated[Path | None, typer.Option(help="where weights and recognisers lie")] = None,
    out: Annotated[Path, typer.Option()] = RESULTS,
) -> None:
    """The errors of our word times, in milliseconds; bias is positive where we are late."""
    console = Console()
    chosen, _ = settings.load({"home": home, "precision": precision})
    whisper = Whisper(chosen.home / "recognisers")
    texts = [*(sentence.text for sentence in spread(sentences(), n_sentences)), *EXTRA_TEXTS]
    errors: list[TimeError] = []
    for spoken in track(asyncio.run(speak(texts, voices.split(","), speed, chosen)), "listening", console=console):
        errors += time_errors(spoken, whisper)
    lines = summaries(errors)
    console.print(make_table(lines))
    for error in sorted((e for e in errors if e.method == "aligner"), key=lambda e: -abs(e.late_s))[:worst]:
        console.print(f"{1000 * error.late_s:+6.0f} ms  {error.edge:5}  {error.voice}  {error.word}", highlight=False)
    setting: dict[str, Any] = {"precision": precision, "speed": speed, "texts": len(texts), "voices": voices}
    name = f"words-{precision}{'' if speed == 1 else f'-{speed:g}'}.json"
    (out / name).write_text(json.dumps({**setting, "rows": [asdict(line) for line in lines]}, indent=1) + "\n", "utf-8")


# -- forced alignment --------------------------------------------------------------------------------------------------


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


if __name__ == "__main__":
    typer.run(main)
