"""The straight line from text to speech, and the one door for everything above it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from tutti import text as front
from tutti.errors import InvalidInput, NothingToSpeak
from tutti.model import choose, load
from tutti.model.contract import check_speed
from tutti.settings import Settings
from tutti.speech import MAX_PHONEMES, SAMPLE_RATE, SAMPLES_PER_FRAME, Model, Samples, Speech, Utterance, WordTime
from tutti.text import vocab
from tutti.text.chunk import Chunk
from tutti.text.g2p import G2P
from tutti.text.language import language as find_language
from tutti.text.marks import bare
from tutti.voices import Voice, Voices
from tutti.weights import FP32_MODEL, INT8_MODEL, Store, shown, sources, wanted

MAX_TEXT = 2_000_000  # characters; a long novel has about one million


class Pronouncer(Protocol):
    """Whoever knows how words sound: in this process or behind a URL."""

    @property
    def pronounce(self) -> front.Pronounce: ...


class Engine:
    """Text in, speech out, in order: `stream()` is the path, `speak()` joins it."""

    def __init__(self, model: Model, voices: Voices, g2p: Pronouncer) -> None:
        self._model = model
        self._voices = voices
        self._g2p = g2p

    async def stream(
        self, text: str, *, voice: str, style: str | None = None, speed: float = 1.0, language: str | None = None
    ) -> AsyncIterator[Speech]:
        """Speech chunk by chunk, the next ones under way while the caller plays this one.

        `style` names a second voice whose prosody is spoken with the timbre of the first; `language` is the voice's own
        unless given.
        """
        if len(text) > MAX_TEXT:
            raise InvalidInput(f"the text has {len(text)} characters; at most {MAX_TEXT} fit in one go", param="input")
        check_speed(speed)
        speaker = self._voices.get(voice, style)
        code = find_language(language or speaker.language).code
        chunks = front.chunks(text, code, self._g2p.pronounce)
        sizes = group_sizes(self._model.lanes)

        async def say_next() -> list[Speech]:
            return await asyncio.to_thread(self._say, text, chunks, next(sizes), speaker, speed)

        n_samples = 0
        dropped: list[str] = []
        ahead = asyncio.create_task(say_next())
        try:
            while speeches := await ahead:
                ahead = asyncio.create_task(say_next())
                for speech in speeches:
                    dropped += speech.dropped
                    if len(speech.samples):
                        yield later(speech, n_samples / SAMPLE_RATE)
                        n_samples += len(speech.samples)
        finally:
            ahead.cancel()
            ahead.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody waits for it now
        if n_samples == 0:
            raise NothingToSpeak(_nothing(dropped), param="input")

    async def speak(
        self, text: str, *, voice: str, style: str | None = None, speed: float = 1.0, language: str | None = None
    ) -> Speech:
        """The whole text as one speech."""
        stream = self.stream(text, voice=voice, style=style, speed=speed, language=language)
        return join([speech async for speech in stream])

    def _say(self, text: str, chunks: Iterator[Chunk], n_chunks: int, voice: Voice, speed: float) -> list[Speech]:
        """The next chunks through front end and both stages. Runs in a thread: the event loop must stay free."""
        taken = take(chunks, n_chunks)
        frames = self._model.acoustic([utterance(chunk, voice, speed) for chunk in taken if chunk.words])
        sounds = iter(zip(frames, self._model.vocoder(frames), strict=True))
        speeches = []
        for chunk in taken:
            pieces, words = [silence(chunk.pause_s)], tuple[WordTime, ...]()
            if chunk.words:
                row, samples = next(sounds)
                pieces.insert(0, samples)
                words = word_times(text, chunk, row.durations)
            speeches.append(Speech(np.concatenate(pieces), words, chunk.span, chunk.dropped))
        return speeches


def open_engine(settings: Settings) -> Engine:
    """An engine on this machine, its model files fetched first where they are missing."""
    choice = choose(settings.backend, settings.device, settings.precision, settings.compile)
    store = Store(settings.home)
    with shown() as progress:
        store.ensure(wanted(choice.weights), sources=sources(offline=settings.offline), progress=progress)
    model = load(store.path(FP32_MODEL if choice.weights == "fp32" else INT8_MODEL), choice, settings.threads)
    return Engine(model, Voices(settings.home / "voices"), _pronouncer(settings))


def _pronouncer(settings: Settings) -> Pronouncer:
    if settings.g2p_url is None:
        return G2P(settings.home)
    from tutti.text.g2p.remote import RemoteG2P

    return RemoteG2P(settings.g2p_url, settings.g2p_timeout_s)


def group_sizes(lanes: int) -> Iterator[int]:
    """How many chunks to speak at once: two alone, so that sound comes early, then enough to keep every lane busy.

    Later groups hold two chunks for each lane, because a lane that is done early takes the next one.
    """
    yield from (1, 1, lanes)
    while True:
        yield 2 * lanes


def take(chunks: Iterator[Chunk], n_chunks: int) -> list[Chunk]:
    """The next chunks that sound, and the silences between them; the rest where fewer are left."""
    taken: list[Chunk] = []
    for chunk in chunks:
        taken.append(chunk)
        n_chunks -= bool(chunk.words)
        if n_chunks == 0:
            break
    return taken


def utterance(chunk: Chunk, voice: Voice, speed: float) -> Utterance:
    tokens = vocab.encode(chunk.phonemes)
    return Utterance(tokens, voice.style(min(len(tokens) - 2, MAX_PHONEMES)), speed)


def word_times(text: str, chunk: Chunk, durations: np.ndarray) -> tuple[WordTime, ...]:
    """When each word of the original is heard: the frames of its symbols, added up.

    Words that read the same stretch of the original ("five dollars" for "$5") are one word to the listener.
    """
    ends = np.cumsum(durations) * (SAMPLES_PER_FRAME / SAMPLE_RATE)  # ends[0]: the pad before the first symbol
    times: list[WordTime] = []
    at = 0
    for word in chunk.words:
        first = at + len(word.before)
        last = first + len(word.phonemes)
        at += len(word.symbols)
        if not word.phonemes:
            continue
        start_s, end_s = float(ends[first]), float(ends[last])
        if times and times[-1].span == word.span:
            times[-1] = replace(times[-1], end_s=end_s)
        else:
            times.append(WordTime(bare(text[slice(*word.span)]), start_s, end_s, word.span))
    return tuple(times)


def later(speech: Speech, by_s: float) -> Speech:
    """The same speech, its words timed from the start of the whole audio."""
    words = (replace(word, start_s=word.start_s + by_s, end_s=word.end_s + by_s) for word in speech.words)
    return replace(speech, words=tuple(words))


def silence(length_s: float) -> Samples:
    return np.zeros(round(length_s * SAMPLE_RATE), np.float32)


def join(speeches: Sequence[Speech]) -> Speech:
    """Consecutive speeches as one."""
    samples: Samples = np.concatenate([speech.samples for speech in speeches])
    spans = [speech.span for speech in speeches if speech.words]
    return Speech(
        samples,
        tuple(word for speech in speeches for word in speech.words),
        (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, 0),
        tuple(symbol for speech in speeches for symbol in speech.dropped),
    )


def _nothing(dropped: Sequence[str]) -> str:
    if not dropped:
        return "the text is empty; give some words to say"
    shown = " ".join(dict.fromkeys(dropped[:20]))
    return f"the text has nothing that can be said, only: {shown}; give some words"
