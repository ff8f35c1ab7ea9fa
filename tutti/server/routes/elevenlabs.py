"""Routes of ElevenLabs' API, for its SDKs: speech, whole and streamed, and the list of voices."""

import re
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from tutti.audio import find_format
from tutti.errors import UnknownFormat
from tutti.server.aliases import Aliases, find_checkpoint, voice_label
from tutti.server.errors import rename_param
from tutti.server.openapi import AUDIO, error_responses
from tutti.server.request import SpeechRequest
from tutti.server.responses import cached_response, streamed_response
from tutti.server.schemas import MAX_SEED, Name, Options, SpeechFields
from tutti.server.service import Service
from tutti.text.language import find_language
from tutti.voices import GRADES, NAMES, gender

DEFAULT_FORMAT = "mp3_44100_128"
OUTPUT_FORMAT = re.compile(r"([a-z0-9]{2,5})_(\d{4,5})(?:_\d{1,3})?\Z", re.ASCII)  # codec, hertz, kbit/s
CODECS = {"ulaw": "mulaw"}  # under another name here
FIELD_NAMES = {
    "input": "text",
    "voice": "voice_id",
    "format": "output_format",
    "sample_rate": "output_format",
    "language": "language_code",
    "model": "model_id",
}

# Ids of ElevenLabs' own voices, as found in its examples, and voices of Kokoro that are like them.
VOICES = {
    **{"JBFqnCBsd6RMkjVDRZzb": "bm_george", "onwK4e9ZLuTAKqWW03F9": "bm_daniel", "pFZP5JQG7iQjIQuC4Bku": "bf_lily"},
    **{"Xb7hH8MSUJpSbSDYk0k2": "bf_alice", "EXAVITQu4vr4xnSDxMaL": "af_sarah", "cgSgspJ2msm6clMCkdW9": "af_jessica"},
    **{"SAz9YHcvj6GT2YYXdXww": "af_river", "cjVigY5qzO86Huf0OWal": "am_eric", "TX3LPaxmHKxFdv7VOQHJ": "am_liam"},
    **{"pNInz6obpgDQGcFmaJgB": "am_adam", "21m00Tcm4TlvDq8ikWAM": "af_heart", "9BWtsMINqrJLrRacOk9x": "af_bella"},
}


class VoiceSettings(Options):
    """Only the speed has an effect; the answer names the others in X-Ignored."""

    speed: float | None = Field(None, ge=0.25, le=4)


class TextToSpeechBody(Options):
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
            voice = VOICES.get(voice_id, voice_id)
            fields = SpeechFields.model_validate(
                {
                    "voice": voice,
                    "speed": settings.speed,
                    "language": language_of(self.language_code, voice),
                    "seed": self.seed,
                    "sample_rate": sample_rate,
                }
            )
            request = fields.build_request(self.text, name, aliases)
            model = None if self.model_id is None else find_model(self.model_id, aliases)
        return replace(request, params=replace(request.params, model=model), ignored=self.ignored_options())


def elevenlabs_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["elevenlabs"])
    voices = [voice_fields(name) for name in NAMES]

    @routes.post("/v1/text-to-speech/{voice_id}", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def convert(
        request: Request, voice_id: str, body: TextToSpeechBody, output_format: str = DEFAULT_FORMAT
    ) -> Response:
        """Speak a text; one whole answer."""
        with rename_param(**FIELD_NAMES):
            speech_request = body.speech_request(voice_id, output_format, service.aliases)
            return await cached_response(service, request, speech_request)

    @routes.post(
        "/v1/text-to-speech/{voice_id}/stream", response_class=Response, responses={**AUDIO, **error_responses(404)}
    )
    async def stream(
        request: Request, voice_id: str, body: TextToSpeechBody, output_format: str = DEFAULT_FORMAT
    ) -> Response:
        """Speak a text; the audio is sent as it is made."""
        with rename_param(**FIELD_NAMES):
            speech_request = body.speech_request(voice_id, output_format, service.aliases)
            return await streamed_response(service, request, speech_request)

    @routes.get("/v1/voices")
    @routes.get("/v2/voices")
    async def list_voices() -> dict[str, Any]:
        """Every voice."""
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


def language_of(code: str | None, voice: str) -> str | None:
    """Return the language to ask for; none if it is the voice's own: `en` with a British voice stays British."""
    if code is None:
        return None
    own = next((find_language(name[0]) for name in NAMES if voice.startswith(name)), None)
    if own and own.code.split("-")[0] == code.lower():
        return None
    return find_language(code).code


def find_model(model_id: str, aliases: Aliases) -> str:
    """Return the checkpoint; every model of ElevenLabs stands for the default one."""
    return aliases.checkpoints[0] if model_id.startswith("eleven_") else find_checkpoint(model_id, aliases)


def voice_fields(name: str) -> dict[str, Any]:
    language = find_language(name[0])
    return {
        "voice_id": name,
        "name": voice_label(name),
        "category": "premade",
        "labels": {"language": language.code, "accent": language.name, "gender": gender(name), "grade": GRADES[name]},
        "description": None,
        "preview_url": None,
    }
