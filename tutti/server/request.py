"""One request for speech, the same for all routes."""

import asyncio
from collections.abc import AsyncIterable
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from tutti import __version__
from tutti.admission.ticket import Ticket
from tutti.audio import PCM_FORMATS, Encoder, Format, encoder
from tutti.engine.request import StreamRequest
from tutti.speech import SAMPLE_RATE, Samples, Speech, SpeechParams, WordTime, is_pcm
from tutti.text.incremental import Delta
from tutti.text.marks import marks_as_text, voices_named
from tutti.voices import resolve_aliases


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One text, how it shall be spoken, and the format of the answer."""

    text: str
    params: SpeechParams
    format: Format
    sample_rate: int | None = None
    volume: float = 1.0
    reads_marks: bool = False  # marks of voice, rate and such are read aloud
    urgent: bool = False  # a whole answer as soon as a listener's, instead of behind those
    times: frozenset[str] = frozenset()  # that are sent with the audio in events: word, phoneme, viseme
    notices: tuple[str, ...] = ()  # what the answer says of the request itself, with its first audio
    ignored: tuple[str, ...] = ()  # options that were understood but have no effect, for X-Ignored

    async def stream_request(
        self, ticket: Ticket, live: AsyncIterable[Delta] | None = None, pause_s: float | None = None
    ) -> StreamRequest:
        """Return what the engine is asked for; `live` text replaces `text`."""
        text = await self._text() if live is None else live
        params = replace(self.params, pcm_volume=self.volume) if self._is_pcm else self.params
        return StreamRequest(text, params, ticket, pause_s)

    def at_volume(self, speech: Speech) -> Speech:
        """Return the speech as loud as requested, unless its worker has made it so."""
        if self.volume == 1 or is_pcm(speech.samples):
            return speech
        return replace(speech, samples=scale_volume(speech.samples, self.volume))

    async def _text(self) -> str:
        if not self.reads_marks:
            return self.text
        parts = []
        for part in marks_as_text(self.text):
            parts.append(part)
            await asyncio.sleep(0)  # a long text has many marks
        return "".join(parts)

    @property
    def _is_pcm(self) -> bool:
        """Whether the answer is made of the model's samples as 16-bit integers, which its worker can make."""
        return self.format.name in PCM_FORMATS and self.format.rate(self.sample_rate) == SAMPLE_RATE

    @property
    def content_type(self) -> str:
        return self.format.content_type(self.format.rate(self.sample_rate))

    def voices_named(self) -> list[str]:
        """Return every name of a voice in the request and its text, also those that stand for others."""
        params = self.params
        names = (params.voice, params.style or "", *(() if self.reads_marks else voices_named(self.text)))
        return [*names, *(resolve_aliases(name, params.voice_names) for name in names)]

    def voice_of(self, word: WordTime) -> str:
        """Return the voice that speaks a word."""
        return resolve_aliases(word.voice, self.params.voice_names) if word.voice else self.params.voice

    def encoder(self, n_samples: int | None = None) -> Encoder:
        return encoder(self.format.name, sample_rate=self.sample_rate, n_samples=n_samples)

    def without_words(self) -> "SpeechRequest":
        """Return a copy whose speech has no word times, which take longer than sending the audio."""
        return replace(self, params=replace(self.params, with_words=False))

    def etag(self, sound: object = None) -> str:
        """Return a weak ETag: batches may differ in the last bit, but the same request sounds the same.

        `sound` is what else changes the audio: the model and settings of the server.
        """
        audible = replace(self, params=replace(self.params, lexicon={}, with_words=True), ignored=(), times=frozenset())
        # The lexicon by its lengths and characters: it may have megabytes, for which `repr` takes long.
        words = [*self.params.lexicon.keys(), *self.params.lexicon.values()]
        content = repr((__version__, sound, audible, [len(word) for word in words])) + "".join(words)
        return f'W/"{sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


def scale_volume(samples: Samples, factor: float) -> Samples:
    scaled: Samples = samples * np.float32(factor)
    return scaled
