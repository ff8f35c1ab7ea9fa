"""What a caller wants to hear, whichever route it came by."""

from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from hashlib import sha256

import numpy as np

from tutti import __version__
from tutti.audio import Encoder, Format, encoder
from tutti.server.engine_protocol import Speaks
from tutti.speech import Prosody, Samples, Speech
from tutti.text.incremental import Delta


@dataclass(frozen=True, slots=True)
class Ask:
    """One text, how it shall be spoken and in which bytes."""

    text: str
    voice: str
    format: Format
    sample_rate: int | None = None
    speed: float = 1.0
    language: str | None = None
    style: str | None = None
    seed: int | None = None
    model: str | None = None  # a checkpoint of the engine; none = its first
    volume: float = 1.0
    ignored: tuple[str, ...] = ()  # wishes that were understood but cannot be met
    prosody: Prosody = field(default_factory=Prosody)
    emotion: str | None = None
    lexicon: tuple[tuple[str, str], ...] = ()  # words and how they are said
    names: Mapping[str, str] = field(default_factory=dict)  # of voices, for marks in the text

    async def spoken(
        self,
        engine: Speaks,
        *,
        caller: str,
        bulk: bool = False,
        whole: bool = False,
        live: AsyncIterable[Delta] | None = None,
        pause_s: float | None = None,
    ) -> AsyncGenerator[Speech]:
        """The speech in pieces, at the loudness asked for, of the text or of one that comes `live` in its place.

        Closing this closes the engine's stream.
        """
        stream = engine.stream(
            self.text if live is None else live,
            voice=self.voice,
            style=self.style,
            speed=self.speed,
            pitch=self.prosody.pitch,
            pitch_range=self.prosody.pitch_range,
            energy=self.prosody.energy,
            emotion=self.emotion,
            language=self.language,
            lexicon=dict(self.lexicon),
            names=self.names,
            seed=self.seed,
            model=self.model,
            caller=caller,
            bulk=bulk,
            whole=whole,
            pause_s=pause_s,
        )
        try:
            async for speech in stream:
                yield speech if self.volume == 1 else replace(speech, samples=louder(speech.samples, self.volume))
        finally:
            await stream.aclose()

    def encoder(self, n_samples: int | None = None) -> Encoder:
        return encoder(self.format.name, sample_rate=self.sample_rate, n_samples=n_samples)

    def without(self, wish: str) -> "Ask":
        """The same, but the answer will say that this wish was not met."""
        return replace(self, ignored=(*self.ignored, wish))

    def etag(self, lexicon: object = None) -> str:
        """Weak, since batches may differ in the last bit: the same wish to the same version sounds the same.

        `lexicon` is the state of the operator's pronunciations.
        """
        wish = repr((__version__, lexicon, self.format.name, astuple(replace(self, ignored=()))))
        return f'W/"{sha256(wish.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


def louder(samples: Samples, factor: float) -> Samples:
    scaled: Samples = samples * np.float32(factor)
    return scaled
