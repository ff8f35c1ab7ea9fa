"""JSON bodies: requests, in which null means absent and unknown keys are named in X-Ignored."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from tutti.audio import find_format
from tutti.lexicons import MAX_AT_ONCE, named_lexicons
from tutti.model.prosody import EMOTIONS, clamp_speed, combine
from tutti.server.aliases import Aliases, add_voices, find_checkpoint, resolve_voice, voice_of_model
from tutti.server.errors import rename_param
from tutti.server.instructions import Followed, read_instructions
from tutti.server.request import SpeechRequest
from tutti.speech import Prosody, SpeechParams
from tutti.text.options import NORMALIZATIONS

MAX_READ_WORD = 60  # characters of a word whose readings are listed
MAX_SEED = 2**63 - 1
MAX_NAME = 500  # characters; a blend of eight voices has 200. Longer ones would be compared with all known names
MAX_SWITCHES = 100  # of normalization_options, known or not
MAX_TIMES = 16  # items of timestamps
MAX_VOICES = 100  # items of a list of voices
MAX_ITEMS = 1000  # of POST /tts/batch, whatever the settings say
DOWNLOAD_OPTIONS = ("return_download_link", "download_format", "return_timing")
VOICE_TAGS = "false: marks such as [voice:af_sky] are read aloud; pauses and pronunciations still act"
URGENT = "true: a whole answer is spoken with the priority of a stream; streams always have it"


def _check_lexicon(value: object) -> object:
    """Raise for the first wrong entry: pydantic would collect the errors of all, in a body of thousands."""
    for word, pronunciation in value.items() if isinstance(value, dict) else ():
        if not isinstance(pronunciation, str):
            raise ValueError(f"{str(word)[:40]!r}: a pronunciation is a text")
    return value


def at_most(n: int) -> BeforeValidator:
    """Limit the characters of a name, or the items of a list or table, before anything is done with them."""

    def check(value: object) -> object:
        if isinstance(value, str | list | dict) and len(value) > n:
            unit = "characters" if isinstance(value, str) else "items"
            raise ValueError(f"it has {len(value):,} {unit}; at most {n:,} fit")
        return value

    return BeforeValidator(check)


Name = Annotated[str, at_most(MAX_NAME)]  # of a voice, language, format or model
Lexicon = Annotated[dict[str, str], BeforeValidator(_check_lexicon)]
LexiconIds = Name | Annotated[list[Name], at_most(MAX_AT_ONCE)]  # of stored lexicons; the first wins
Switches = Annotated[dict[str, bool | None], at_most(MAX_SWITCHES)]
Times = Annotated[list[Literal["word", "phoneme", "viseme"]], at_most(MAX_TIMES)]


class Options(BaseModel):
    """An object of a request. Keys that it does not know have no effect, and are named to the caller."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    def ignored_options(self) -> tuple[str, ...]:
        """Return the names of keys without effect; those of an object inside stand behind its own name."""
        names = []
        for field in type(self).model_fields:
            value = getattr(self, field)
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, Options):
                    names += [f"{field}.{name}" for name in part.ignored_options()]
        names += [name for name, value in (self.model_extra or {}).items() if value is not None]
        return tuple(dict.fromkeys(names))


class VoiceId(Options):
    """A voice as openai 3 sends it."""

    id: Name


class VoiceAlias(BaseModel):
    """A voice that a request names, with a pace of its own."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    voice: Name
    rate: float | None = Field(None, ge=0.25, le=4, description="times the speed of the request and of rate marks")


VoiceChoice = Name | VoiceId | Annotated[list[Name], at_most(MAX_VOICES)]


VoiceAliases = Annotated[dict[str, Name | VoiceAlias], at_most(MAX_VOICES)]


def voice_expression(voice: VoiceChoice | None) -> str | None:
    """Return the name or blend that was sent; several voices in a list are a blend."""
    if isinstance(voice, VoiceId):
        return voice.id
    return "+".join(voice) if isinstance(voice, list) else voice


class PauseFields(Options):
    """Silence of some lengths."""

    comma: float | None = Field(None, description="milliseconds after , ; : and dashes, up to 1000; default: 0")
    sentence: float | None = Field(None, description="up to 10000; default: 0")
    paragraph: float | None = Field(None, description="up to 10000; default: 350")

    def lengths_ms(self) -> dict[str, float]:
        """Return those that are set."""
        lengths = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: length_ms for name, length_ms in lengths if length_ms is not None}


class SpeechFields(Options):
    """The options that every body has."""

    voice: VoiceChoice | None = Field(
        None, description="a name, a blend, a list of names, or {'id': name}", examples=["af_bella(2)+af_sky(1)"]
    )
    model: Name | None = Field(None, description="a name from /v1/models; default: the first", examples=["kokoro"])
    speed: float | None = Field(None, ge=0.25, le=4, description="1 = the voice's own speed")
    language: Name | None = Field(
        None, description="of the text; auto: that of each sentence; default: that of the voice", examples=["en-gb"]
    )
    sample_rate: int | None = Field(None, description="samples per second; default: that of the format")
    style: Name | None = Field(None, description="speak with the prosody of this other voice", examples=["am_puck"])
    pitch: float | None = Field(None, description="semitones up or down, -12 to 12")
    pitch_range: float | None = Field(None, description="how far the pitch moves: 0 monotone, 1 unchanged, up to 2")
    energy: float | None = Field(None, description="vocal effort in decibels, -3 to 3")
    emotion: Name | None = Field(None, description=f"a preset of these four: {' '.join(EMOTIONS)}", examples=["calm"])
    lexicon: Lexicon | None = Field(
        None, description="pronunciations of words: /IPA/ or other words", examples=[{"nginx": "/ˈɛnʤɪnˈɛks/"}]
    )
    lexicon_id: LexiconIds | None = Field(
        None, description="a stored lexicon, or several, the first before the others; `lexicon` wins over them"
    )
    code_blocks: Literal["read", "skip", "announce"] | None = Field(
        None, description="blocks of code in Markdown; default: the server's"
    )
    normalization_options: Switches | None = Field(
        None,
        description=f"switches, on but for emoji_normalization: {' '.join(NORMALIZATIONS)}",
        examples=[{"normalize": True}],
    )
    pauses: PauseFields | None = Field(
        None, description="beside what the voice pauses by itself", examples=[{"sentence": 300, "paragraph": 700}]
    )
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    volume_multiplier: float | None = Field(None, ge=0, le=4)

    def voice_name(self, aliases: Aliases) -> str:
        """Return the voice under the name that the caller used."""
        own = voice_expression(self.voice) or voice_of_model(self.model, aliases)
        return own or aliases.of_model(self.model).default_voice

    def build_request(self, text: str, format_name: str, aliases: Aliases) -> SpeechRequest:
        format = find_format(format_name)
        format.rate(self.sample_rate)
        text, in_text = named_lexicons(text)
        volume = _or_default(self.volume_multiplier, 1.0)
        params, notices = self.speech_params(aliases)
        if in_text:
            params = replace(params, lexicon={**aliases.stored_entries(in_text, "input"), **params.lexicon})
        ignored = self.ignored_options()
        return SpeechRequest(text, params, format, self.sample_rate, volume, notices=notices, ignored=ignored)

    def ignored_options(self) -> tuple[str, ...]:
        unknown = (name for name in self.normalization_options or {} if name not in NORMALIZATIONS)
        return (*super().ignored_options(), *(f"normalization_options.{name}" for name in unknown))

    def speech_params(self, aliases: Aliases) -> tuple[SpeechParams, tuple[str, ...]]:
        """Return how to speak, with the aliases of voices resolved, and notices of voices that stand for others."""
        lexicon = all_entries(self.lexicon_id, self.lexicon, aliases)
        aliases = aliases.of_model(self.model)
        voice, notices = resolve_voice(self.voice_name(aliases), aliases)
        style, notices_of_style = resolve_voice(self.style, aliases) if self.style else (None, ())
        params = SpeechParams(
            voice=voice,
            style=style,
            speed=_or_default(self.speed, 1.0),
            pitch=_or_default(self.pitch, 0.0),
            pitch_range=_or_default(self.pitch_range, 1.0),
            energy=_or_default(self.energy, 0.0),
            emotion=self.emotion,
            language=self.language,
            lexicon=lexicon,
            voice_names=aliases.voices,
            voice_rates=self._voice_rates(aliases),
            model=None if self.model is None else find_checkpoint(self.model, aliases),
            seed=self.seed,
            code_blocks=self.code_blocks,
            pauses=self.pauses.lengths_ms() if self.pauses else {},
            normalization={
                name: value
                for name, value in (self.normalization_options or {}).items()
                if name in NORMALIZATIONS and value is not None
            },
        )
        return params, notices + notices_of_style

    def _voice_rates(self, aliases: Aliases) -> dict[str, float]:
        """Return the rates of all aliases, and as "" that of the voice itself."""
        own = aliases.rates.get(self.voice_name(aliases).strip().lower())
        return dict(aliases.rates) if own is None else {**aliases.rates, "": own}


def all_entries(ids: str | list[str] | None, lexicon: dict[str, str] | None, aliases: Aliases) -> dict[str, str]:
    """Return the pronunciations of a request: its own over those of stored lexicons."""
    names = [ids] if isinstance(ids, str) else ids or []
    return {**aliases.stored_entries(names), **(lexicon or {})}


def _or_default(value: float | None, default: float) -> float:
    return default if value is None else value


class SpeechBody(SpeechFields):
    """POST /v1/audio/speech."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "kokoro", "input": "All voices, one pass.", "voice": "af_heart"}],
        }
    )

    input: str = Field(description="the text; it may contain marks such as [pause:1.5s], or SSML")
    response_format: Name | None = Field(None, description="mp3 (default) opus aac flac wav pcm mulaw alaw")
    stream_format: Literal["audio", "sse"] | None = Field(None, description="sse: JSON events with base64 audio")
    stream: bool | None = Field(None, description="false: one answer with its true length")
    lang_code: Name | None = Field(None, description="another name for language")
    word_timestamps: bool | None = Field(None, description="with sse: events with the times of words")
    timestamps: Times | None = Field(None, description="with sse or on a WebSocket: events with these times")
    return_download_link: bool | None = Field(None, description="also store the audio; X-Download-Path has its path")
    download_format: Name | None = Field(None, description="of the stored audio; default: response_format")
    return_timing: bool | None = Field(None, description="with a link: also store when each part is spoken")
    optimize_for_latency: bool | None = Field(None, description=URGENT)
    allow_voice_tags: bool | None = Field(None, description=VOICE_TAGS)
    instructions: str | None = Field(None, description="in plain words; a notice says what of them is followed")
    ssml: bool | None = Field(None, description="not needed: a text that begins with <speak> is SSML")
    voice_aliases: VoiceAliases | None = Field(
        None,
        description="further names of voices, each for a voice or {'voice', 'rate'}",
        examples=[{"narrator": {"voice": "bm_george", "rate": 0.9}}],
    )

    @property
    def times(self) -> frozenset[str]:
        """Return which times are asked for: word, phoneme, viseme."""
        return frozenset([*(self.timestamps or ()), *(("word",) if self.word_timestamps else ())])

    def _changes(self, followed: Followed | None) -> dict[str, object]:
        """Return the options that others of this body change: the language, and what instructions say."""
        changes: dict[str, object] = {} if self.language or not self.lang_code else {"language": self.lang_code}
        if followed is None:
            return changes
        prosody = combine(
            Prosody(self.pitch or 0.0, _or_default(self.pitch_range, 1.0)),
            Prosody(followed.pitch, followed.pitch_range),
        )
        return changes | {
            "emotion": self.emotion or followed.emotion,
            "speed": clamp_speed(_or_default(self.speed, 1.0) * followed.speed),
            "pitch": prosody.pitch,
            "pitch_range": prosody.pitch_range,
            "volume_multiplier": min(_or_default(self.volume_multiplier, 1.0) * followed.volume, 4.0),
        }

    def ignored_options(self) -> tuple[str, ...]:
        unused = self.instructions and not read_instructions(self.instructions)
        return (*super().ignored_options(), *(("instructions",) if unused else ()))

    def named_voices(self, aliases: Aliases) -> tuple[Aliases, tuple[str, ...]]:
        """Return the aliases with those of this request, and notices of voices that stand for others."""
        aliases, own = aliases.of_model(self.model), (self.voice_aliases or {}).items()
        targets = {name: (each, None) if isinstance(each, str) else (each.voice, each.rate) for name, each in own}
        with rename_param(voice="voice_aliases"):
            return add_voices(aliases, targets) if targets else (aliases, ())

    def speech_request(self, aliases: Aliases) -> SpeechRequest:
        followed = read_instructions(self.instructions or "")
        changes = self._changes(followed)
        options = self.model_copy(update=changes) if changes else self
        aliases, notices = self.named_voices(aliases)
        with rename_param(format="response_format"):
            request = options.build_request(self.input, self.response_format or "mp3", aliases)
        urgent, reads_marks = bool(self.optimize_for_latency), self.allow_voice_tags is False
        notices = (*notices, *request.notices, *((followed.notice,) if followed else ()))
        return replace(request, urgent=urgent, times=self.times, reads_marks=reads_marks, notices=notices)


def name_unused(request: SpeechRequest, body: SpeechBody, *options: str) -> SpeechRequest:
    """Return a request that names those of its options that were sent but have no effect on this route."""
    return replace(request, ignored=(*request.ignored, *(name for name in options if getattr(body, name))))


class CaptionBody(SpeechBody):
    """POST /dev/captioned_speech."""

    return_timestamps: bool | None = Field(None, description="default: true")


class TtsSettings(Options):
    """Settings of a speaker, as some servers nest them."""

    speed: float | None = Field(None, ge=0.25, le=4, description="if `speed` is not there")


class TtsBody(SpeechFields):
    """POST /tts and /tts/stream, and each item of /tts/batch. Of two names for one option the first has an effect."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "All voices, one pass.", "voice": "af_heart", "format": "wav"}]}
    )

    text: str = Field(validation_alias=AliasChoices("text", "input"), description="the text to speak; or `input`")
    voice: VoiceChoice | None = Field(
        None, validation_alias=AliasChoices("voice", "speaker"), description="a name, a blend; or `speaker`"
    )
    settings: TtsSettings | None = None
    format: Name | None = Field(None, description="wav (default) pcm mp3 opus aac flac mulaw alaw")
    optimize_for_latency: bool | None = Field(None, description=URGENT)
    allow_voice_tags: bool | None = Field(None, description=VOICE_TAGS)

    @property
    def suffix(self) -> str:
        """Of the name of a file with this audio."""
        return find_format(self.format or "wav").name

    def speech_request(self, aliases: Aliases) -> SpeechRequest:
        nested = self.settings.speed if self.settings else None
        options = self if nested is None or self.speed is not None else self.model_copy(update={"speed": nested})
        request = options.build_request(self.text, self.format or "wav", aliases)
        reads_marks, ignored = self.allow_voice_tags is False, self.ignored_options()
        return replace(request, urgent=bool(self.optimize_for_latency), reads_marks=reads_marks, ignored=ignored)

    def ignored_options(self) -> tuple[str, ...]:
        names = super().ignored_options()
        both = self.speed is not None and self.settings is not None and self.settings.speed is not None
        return (*names, "settings.speed") if both else names


class BatchBody(Options):
    """POST /tts/batch."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"requests": [{"text": "One."}, {"text": "Two.", "voice": "am_adam"}]}]},
    )

    requests: Annotated[list[TtsBody], at_most(MAX_ITEMS)] = Field(description="each becomes one file of the ZIP")


class PhonemizeBody(Options):
    """POST /dev/phonemize."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Hello!", "language": "a"}]})

    text: str
    language: Name | None = Field(None, description="a code or the letter of a voice; default: American English")
    lexicon: Lexicon | None = Field(None, description="pronunciations of words: /IPA/ or other words")
    lexicon_id: LexiconIds | None = Field(None, description="a stored lexicon, or several")


class ReadingsBody(Options):
    """POST /dev/readings."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"word": "bass", "language": "en-gb"}]})

    word: Annotated[str, at_most(MAX_READ_WORD)] = Field(description="a word, or a few")
    language: Name | None = Field(None, description="a code or the letter of a voice; default: American English")


class SsmlBody(Options):
    """POST /dev/ssml."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": '<speak>One, <break time="1s"/> two.</speak>', "voice": "af_heart"}]}
    )

    text: str
    voice: Name | None = Field(None, description="that of the later request; without it only pauses are written")


class PhonemesBody(Options):
    """POST /dev/generate_from_phonemes."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"phonemes": "həlˈO wˈɜɹld!", "voice": "af_heart"}]})

    phonemes: str = Field(description="in Kokoro's symbols")
    voice: VoiceChoice | None = None
    speed: float | None = Field(None, ge=0.25, le=4)


class TrialBody(Options):
    """POST /v1/stats/trial."""

    policy: Name
