"""What clients send. Tolerant: null means absent, keys that nobody knows are let pass."""

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tutti.audio import find_format
from tutti.model.prosody import EMOTIONS
from tutti.server.aliases import Cast, checkpoint, voice_expression
from tutti.server.errors import fields
from tutti.server.request import SpeechRequest
from tutti.speech import SpeechParams

MAX_SEED = 2**63 - 1


class VoiceId(BaseModel):
    """A voice as openai 3 sends it."""

    id: str


class Wishes(BaseModel):
    """What every body may say about the sound."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    voice: str | VoiceId | None = Field(
        None, description="a name, a blend, or {'id': name}", examples=["af_bella(2)+af_sky(1)"]
    )
    speed: float | None = Field(None, ge=0.25, le=4, description="1 = as the voice speaks by itself")
    language: str | None = Field(None, description="of the text; else that of the voice", examples=["en-gb"])
    sample_rate: int | None = Field(None, description="samples a second; else what the format is used to")
    style: str | None = Field(None, description="speak with the prosody of this other voice", examples=["am_puck"])
    pitch: float | None = Field(None, description="semitones up or down, -12 to 12")
    pitch_range: float | None = Field(None, description="how far the pitch moves: 0 monotone, 1 as it is, up to 2")
    energy: float | None = Field(None, description="decibels of effort, -3 to 3")
    emotion: str | None = Field(None, description=f"a preset of the four: {' '.join(EMOTIONS)}", examples=["calm"])
    lexicon: dict[str, str] | None = Field(
        None, description="how words are said: /IPA/ or other words", examples=[{"nginx": "/ˈɛnʤɪnˈɛks/"}]
    )
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    volume_multiplier: float | None = Field(None, ge=0, le=4)

    def named(self, default: str) -> str:
        """The voice as the caller calls it."""
        return (self.voice.id if isinstance(self.voice, VoiceId) else self.voice) or default

    def ask_for(self, text: str, format: str, cast: Cast) -> SpeechRequest:
        chosen = find_format(format)
        chosen.rate(self.sample_rate)
        return SpeechRequest(text, self.params(cast), chosen, self.sample_rate, _or(self.volume_multiplier, 1.0))

    def params(self, cast: Cast) -> SpeechParams:
        """How to speak, with every name of a voice resolved."""
        return SpeechParams(
            voice=voice_expression(self.named(cast.voice), cast.names),
            style=voice_expression(self.style, cast.names) if self.style else None,
            speed=_or(self.speed, 1.0),
            pitch=_or(self.pitch, 0.0),
            pitch_range=_or(self.pitch_range, 1.0),
            energy=_or(self.energy, 0.0),
            emotion=self.emotion,
            language=self.language,
            lexicon=self.lexicon or {},
            voice_names=cast.names,
            seed=self.seed,
        )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


class SpeechBody(Wishes):
    """POST /v1/audio/speech."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "kokoro", "input": "All voices, one pass.", "voice": "af_heart"}],
        }
    )

    input: str = Field(description="what to say; marks such as [pause:1.5s] and SSML are heard")
    model: str | None = Field(None, description="kokoro, or OpenAI's names for speech models", examples=["kokoro"])
    response_format: str | None = Field(None, description="mp3 opus aac flac wav pcm mulaw alaw; mp3 unless told")
    stream_format: Literal["audio", "sse"] | None = Field(None, description="sse: JSON events with base64 audio")
    stream: bool | None = Field(None, description="false: one answer with true lengths")
    lang_code: str | None = Field(None, description="another name for language")
    word_timestamps: bool | None = Field(None, description="with sse: events with the times of words")

    # Understood, and not met: the answer names them in X-Ignored.
    instructions: Any = None
    normalization_options: Any = None

    def ask(self, cast: Cast) -> SpeechRequest:
        model = None if self.model is None else checkpoint(self.model, cast.checkpoints)
        told = self if self.language else self.model_copy(update={"language": self.lang_code})
        with fields(format="response_format"):
            ask = told.ask_for(self.input, self.response_format or "mp3", cast)
        ignored = tuple(name for name in UNMET if getattr(self, name) is not None)
        return replace(ask, params=replace(ask.params, model=model), ignored=ignored)


UNMET = ("instructions", "normalization_options")


class CaptionBody(SpeechBody):
    """POST /dev/captioned_speech."""

    return_timestamps: bool | None = Field(None, description="true unless told")


class TtsBody(Wishes):
    """POST /tts and /tts/stream, and each item of /tts/batch."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "All voices, one pass.", "voice": "af_heart", "format": "wav"}]}
    )

    text: str = Field(description="what to say")
    format: str | None = Field(None, description="wav pcm mp3 opus aac flac mulaw alaw; wav unless told")

    def ask(self, cast: Cast) -> SpeechRequest:
        return self.ask_for(self.text, self.format or "wav", cast)


class BatchBody(BaseModel):
    """POST /tts/batch."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"examples": [{"requests": [{"text": "One."}, {"text": "Two.", "voice": "am_adam"}]}]},
    )

    requests: list[TtsBody] = Field(description="each becomes one file of the ZIP")


class PhonemizeBody(BaseModel):
    """POST /dev/phonemize."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"text": "Hello!", "language": "a"}]})

    text: str
    language: str | None = Field(None, description="a code or the letter of a voice; American English unless told")
    lexicon: dict[str, str] | None = Field(None, description="how words are said: /IPA/ or other words")


class PhonemesBody(BaseModel):
    """POST /dev/generate_from_phonemes."""

    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"examples": [{"phonemes": "həlˈO wˈɜɹld!", "voice": "af_heart"}]}
    )

    phonemes: str = Field(description="in Kokoro's symbols")
    voice: str | VoiceId | None = None
    speed: float | None = Field(None, ge=0.25, le=4)
