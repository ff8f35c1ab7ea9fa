"""Routes of ElevenLabs' API, for its SDKs: speech with and without times, dialogues, voices, models and the user."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ConfigDict, Field

from tutti.audio import find_format
from tutti.errors import UnknownFormat
from tutti.server.aliases import Aliases, find_checkpoint
from tutti.server.dialogue import MAX_TURNS, DialogueBody
from tutti.server.encoding import OpenStream, PieceEncoder, WholeAudio
from tutti.server.errors import rename_param
from tutti.server.openapi import AUDIO, Responses, error_responses, only_errors
from tutti.server.request import SpeechRequest
from tutti.server.responses import (
    WholeResponse,
    audio_headers,
    base64_text,
    cached_response,
    finish_stream,
    json_line,
    start_encoder,
    start_stream,
    streamed_response,
    streaming_response,
)
from tutti.server.schemas import MAX_SEED, Name, Options, SpeechFields, at_most
from tutti.server.service import Service
from tutti.server.wires.elevenlabs_dictionaries import LocatorsBody, located_entries
from tutti.server.wires.foreign import foreign_voice, known_voice, language_of
from tutti.server.wires.token_times import CharTime, TokenTimes, char_times
from tutti.speech import SAMPLE_RATE
from tutti.text.language import LANGUAGES, find_language
from tutti.voices import VoiceInfo

DEFAULT_FORMAT = "mp3_44100_128"
OUTPUT_FORMAT = re.compile(r"([a-z0-9]{2,5})_(\d{4,5})(?:_\d{1,3})?\Z", re.ASCII)  # codec, hertz, kbit/s
CODECS = {"ulaw": "mulaw"}  # under another name here
TIMED_LINES: Responses = {200: {"content": {"application/x-ndjson": {}}}}
VOICE_SETTINGS = {"stability": 0.5, "similarity_boost": 0.75, "style": 0.0, "use_speaker_boost": False, "speed": 1.0}
MAX_CHARACTERS = 1_000_000_000  # that a subscription names; nothing is counted
SUBSCRIPTION = {
    **{"tier": "self-hosted", "status": "active", "currency": None, "billing_period": None},
    **{"character_count": 0, "character_limit": MAX_CHARACTERS, "max_character_limit_extension": None},
    **{"max_credit_limit_extension": 0, "professional_voice_slots_used_in_workspace": 0},
    **{"current_overage": {"amount": "0", "currency": "usd"}},
    **{"can_extend_character_limit": False, "allowed_to_extend_character_limit": False},
    **{"voice_slots_used": 0, "voice_limit": 0, "max_voice_add_edits": None, "voice_add_edit_counter": 0},
    **{"professional_voice_slots_used": 0, "professional_voice_limit": 0, "has_open_invoices": False},
    **{"can_extend_voice_limit": False, "can_use_instant_voice_cloning": False, "open_invoices": []},
    **{"can_use_professional_voice_cloning": False, "next_character_count_reset_unix": None, "next_invoice": None},
}
USER = {
    **{"is_new_user": False, "is_onboarding_completed": True, "is_onboarding_checklist_completed": True},
    **{"can_use_delayed_payment_methods": False, "created_at": 1_735_689_600, "seat_type": "workspace_member"},
}
FIELD_NAMES = {
    "input": "text",
    "voice": "voice_id",
    "format": "output_format",
    "sample_rate": "output_format",
    "language": "language_code",
    "model": "model_id",
}
FIELDS_OF_DIALOGUES = {**FIELD_NAMES, **dict.fromkeys(("input", "turns", "voice"), "inputs")}


class VoiceSettings(Options):
    """Only the speed has an effect; the answer names the others in X-Ignored."""

    speed: float | None = Field(None, ge=0.25, le=4)


class TextToSpeechBody(LocatorsBody):
    """POST /v1/text-to-speech/{voice_id} and …/stream. Most options of ElevenLabs are named in X-Ignored."""

    model_config = ConfigDict(
        protected_namespaces=(),
        json_schema_extra={"examples": [{"text": "All voices, one pass.", "model_id": "eleven_flash_v2_5"}]},
    )

    text: str = Field(description="the text to speak")
    model_id: Name | None = Field(None, description="any of ElevenLabs' names, or kokoro")
    language_code: Name | None = Field(None, description="of the text; default: that of the voice", examples=["en"])
    voice_settings: VoiceSettings | None = None
    seed: int | None = Field(None, ge=0, le=MAX_SEED)

    def speech_request(self, voice_id: str, output_format: str, aliases: Aliases) -> SpeechRequest:
        with rename_param(**FIELD_NAMES):
            settings = self.voice_settings or VoiceSettings.model_validate({})
            name, sample_rate = parse_output_format(output_format)
            voice = foreign_voice(voice_id, aliases)
            fields = SpeechFields.model_validate(
                {
                    "voice": voice,
                    "speed": settings.speed,
                    "language": language_of(self.language_code, voice, aliases),
                    "seed": self.seed,
                    "sample_rate": sample_rate,
                }
            )
            request = fields.build_request(self.text, name, aliases)
            model = None if self.model_id is None else find_model(self.model_id, aliases)
        located = located_entries(self.pronunciation_dictionary_locators, aliases)
        lexicon = {**request.params.lexicon, **located}
        return replace(
            request, params=replace(request.params, model=model, lexicon=lexicon), ignored=self.ignored_options()
        )


class DialogueInput(Options):
    """What one speaker says."""

    text: str
    voice_id: Name


class TextToDialogueBody(LocatorsBody):
    """POST /v1/text-to-dialogue and …/stream."""

    model_config = ConfigDict(
        protected_namespaces=(),
        json_schema_extra={"examples": [{"inputs": [{"text": "Ready?", "voice_id": "af_heart"}]}]},
    )

    inputs: Annotated[list[DialogueInput], at_most(MAX_TURNS)] = Field(min_length=1)
    model_id: Name | None = None
    language_code: Name | None = None

    def speech_request(self, output_format: str, aliases: Aliases) -> SpeechRequest:
        name, sample_rate = parse_output_format(output_format)
        turns = [{"voice": foreign_voice(each.voice_id, aliases), "text": each.text} for each in self.inputs]
        fields = {"turns": turns, "response_format": name, "sample_rate": sample_rate, "language": self.language_code}
        with rename_param(turns="inputs", response_format="output_format", language="language_code"):
            request = DialogueBody.model_validate(fields).speech_request(aliases)
        lexicon = located_entries(self.pronunciation_dictionary_locators, aliases)
        return replace(request, params=replace(request.params, lexicon=lexicon), ignored=self.ignored_options())


def elevenlabs_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["elevenlabs"])

    @routes.post("/v1/text-to-speech/{voice_id}", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def convert(
        request: Request, voice_id: str, body: TextToSpeechBody, output_format: str = DEFAULT_FORMAT
    ) -> Response:
        """Speak a text; one whole answer."""
        with rename_param(**FIELD_NAMES):
            speech_request = body.speech_request(voice_id, output_format, service.aliases_of(request))
            return await cached_response(service, request, speech_request)

    @routes.post(
        "/v1/text-to-speech/{voice_id}/stream", response_class=Response, responses={**AUDIO, **error_responses(404)}
    )
    async def stream(
        request: Request, voice_id: str, body: TextToSpeechBody, output_format: str = DEFAULT_FORMAT
    ) -> Response:
        """Speak a text; the audio is sent as it is made."""
        with rename_param(**FIELD_NAMES):
            speech_request = body.speech_request(voice_id, output_format, service.aliases_of(request))
            return await streamed_response(service, request, speech_request)

    @routes.post("/v1/text-to-speech/{voice_id}/with-timestamps", responses=error_responses(404))
    async def with_timestamps(
        request: Request, voice_id: str, body: TextToSpeechBody, output_format: str = DEFAULT_FORMAT
    ) -> Response:
        """Speak a text; one whole answer with the times of its characters."""
        with rename_param(**FIELD_NAMES):
            speech_request = body.speech_request(voice_id, output_format, service.aliases_of(request))
            stream = await start_stream(service, request, speech_request)
        whole = await finish_stream(service, request, stream)
        headers = audio_headers(service, speech_request, whole.first, whole.encode_s, whole.unspoken)
        # In a thread: there may be megabytes of audio.
        with whole.held.released_on_error():
            data = await asyncio.to_thread(_whole_line, speech_request.text, whole)
            whole.held.grow(len(data))
        return WholeResponse(service, data, whole.held, headers=headers, media_type="application/json")

    @routes.post(
        "/v1/text-to-speech/{voice_id}/stream/with-timestamps",
        response_class=JSONResponse,
        responses={**TIMED_LINES, **error_responses(404)},
    )
    async def stream_with_timestamps(
        request: Request, voice_id: str, body: TextToSpeechBody, output_format: str = DEFAULT_FORMAT
    ) -> Response:
        """Speak a text; lines of JSON as it is made, each with some audio and the times of its characters."""
        with rename_param(**FIELD_NAMES):
            speech_request = body.speech_request(voice_id, output_format, service.aliases_of(request))
            stream = await start_stream(service, request, speech_request)
        encoder = await start_encoder(service, stream)
        pieces = _timed_lines(stream, encoder)
        return streaming_response(service, request, stream, encoder, pieces, "application/x-ndjson", json_line)

    @routes.post("/v1/text-to-dialogue", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def dialogue(request: Request, body: TextToDialogueBody, output_format: str = DEFAULT_FORMAT) -> Response:
        """Speak the inputs, each in its voice; one whole answer."""
        with rename_param(**FIELDS_OF_DIALOGUES):
            return await cached_response(
                service, request, body.speech_request(output_format, service.aliases_of(request))
            )

    @routes.post("/v1/text-to-dialogue/stream", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def dialogue_stream(
        request: Request, body: TextToDialogueBody, output_format: str = DEFAULT_FORMAT
    ) -> Response:
        """Speak the inputs, each in its voice; the audio is sent as it is made."""
        with rename_param(**FIELDS_OF_DIALOGUES):
            return await streamed_response(
                service, request, body.speech_request(output_format, service.aliases_of(request))
            )

    @routes.get("/v1/voices/settings/default")
    async def default_settings() -> dict[str, Any]:
        """The settings of all voices: only the speed has an effect."""
        return VOICE_SETTINGS

    @routes.get("/v1/voices/{voice_id}/settings", responses=only_errors(400))
    async def voice_settings(request: Request, voice_id: str) -> dict[str, Any]:
        """The settings of a voice: only the speed has an effect."""
        known_voice(voice_id, service.aliases_of(request), "voice_id")
        return VOICE_SETTINGS

    @routes.get("/v1/voices/{voice_id}", responses=only_errors(400))
    async def one_voice(request: Request, voice_id: str) -> dict[str, Any]:
        """One voice."""
        return voice_fields(known_voice(voice_id, service.aliases_of(request), "voice_id"))

    @routes.get("/v1/user")
    async def user() -> dict[str, Any]:
        """A user without limits: several programs test their key with this."""
        return {"user_id": "tutti", "first_name": "tutti", "subscription": SUBSCRIPTION, **USER}

    @routes.get("/v1/user/subscription")
    async def subscription() -> dict[str, Any]:
        """A subscription without limits."""
        return SUBSCRIPTION

    @routes.get("/v1/voices")
    @routes.get("/v2/voices")
    async def list_voices(request: Request) -> dict[str, Any]:
        """Every voice."""
        voices = [voice_fields(voice) for voice in service.aliases_of(request).known.all().values()]
        return {"voices": voices, "has_more": False, "total_count": len(voices), "next_page_token": None}

    return routes


def parse_output_format(output_format: str) -> tuple[str, int]:
    """Return format and sample rate of a name such as mp3_44100_128. The bit rate is ours: 96 kbit/s for mp3."""
    match = OUTPUT_FORMAT.match(output_format)
    if match is None:
        known = "write codec and rate: mp3_44100_128, pcm_24000"
        raise UnknownFormat(f"{output_format[:40]!r} is not an output format; {known}", param="format")
    name = CODECS.get(match[1], match[1])
    find_format(name)
    return name, int(match[2])


def find_model(model_id: str, aliases: Aliases) -> str:
    """Return the checkpoint; every model of ElevenLabs stands for the default one."""
    return aliases.checkpoints[0] if model_id.startswith("eleven_") else find_checkpoint(model_id, aliases)


def models_list(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the models as ElevenLabs' SDKs read them."""
    languages = [{"language_id": language.code, "name": language.name} for language in LANGUAGES]
    abilities = {"can_do_text_to_speech": True, "can_do_voice_conversion": False, "can_be_finetuned": False}
    return [{"model_id": name, "name": name, "languages": languages, **abilities} for name in names]


def timed_line(data: bytes, chars: Sequence[CharTime], end_s: float) -> bytes:
    """Return a line of audio and its characters, timed from the start of the text; each lasts until the next."""
    starts = [round(char.start_s, 3) for char in chars]
    times = {
        "characters": [char.char for char in chars],
        "character_start_times_seconds": starts,
        "character_end_times_seconds": [*starts[1:], round(max(end_s, chars[-1].start_s), 3)] if chars else [],
    }
    content = {"audio_base64": base64_text(data), "alignment": times or None, "normalized_alignment": times or None}
    return json_line(content)


def _whole_line(text: str, whole: WholeAudio) -> bytes:
    tokens = TokenTimes()
    tokens.add(text)
    return timed_line(whole.data, char_times(tokens.take(whole.words, is_end=True)), whole.duration_s)


async def _timed_lines(stream: OpenStream, encoder: PieceEncoder) -> AsyncIterator[bytes]:
    tokens, n_samples = TokenTimes(), 0
    tokens.add(stream.request.text)
    async for speech in stream.speeches():
        n_samples += len(speech.samples)
        data = b"".join([piece async for piece in encoder.pieces(speech)])
        yield timed_line(data, char_times(tokens.take(speech.words)), n_samples / SAMPLE_RATE)
        del speech, data
    yield timed_line(await encoder.flush(), char_times(tokens.take((), is_end=True)), n_samples / SAMPLE_RATE)


def voice_fields(voice: VoiceInfo) -> dict[str, Any]:
    return {
        "voice_id": voice.name,
        "name": voice.label,
        "category": "generated" if voice.is_own else "premade",
        "labels": {
            "language": voice.language,
            "accent": find_language(voice.language).name,
            "gender": voice.gender,
            "grade": voice.grade,
        },
        "description": None,
        "preview_url": None,
    }
