"""Azure's speech API: POST /cognitiveservices/v1 speaks SSML, GET /cognitiveservices/voices/list lists voices."""

import re
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tutti.errors import InvalidInput, UnknownFormat
from tutti.server.errors import NotJson, rename_param
from tutti.server.openapi import AUDIO, error_responses
from tutti.server.responses import streamed_response
from tutti.server.schemas import SpeechFields
from tutti.server.service import Service
from tutti.text.language import find_language
from tutti.voices import VoiceInfo

FORMAT_HEADER = "x-microsoft-outputformat"
DEFAULT_FORMAT = "riff-24khz-16bit-mono-pcm"
# Container, rate, bits or bit rate, and codec: audio-24khz-160kbitrate-mono-mp3.
_FORMAT = re.compile(
    r"(raw|riff|audio|ogg)-(?:(\d{1,2})k|(\d{4,5}))hz-\w{1,20}-mono-(pcm|mulaw|alaw|mp3|opus)", re.ASCII
)
KNOWN = (DEFAULT_FORMAT, "raw-24khz-16bit-mono-pcm", "audio-24khz-160kbitrate-mono-mp3", "ogg-24khz-16bit-mono-opus")
_LOCALES = {
    **{"a": "en-US", "b": "en-GB", "e": "es-ES", "f": "fr-FR", "h": "hi-IN"},
    **{"i": "it-IT", "j": "ja-JP", "p": "pt-BR", "z": "zh-CN", "de": "de-DE"},
    **{"sv": "sv-SE", "pl": "pl-PL", "ru": "ru-RU", "vi": "vi-VN", "ar": "ar-SA", "zh-1.1": "zh-CN"},
}


def parse_format(name: str) -> tuple[str, int]:
    """Return format and sample rate of a name of Azure's."""
    match = _FORMAT.fullmatch(name.strip().lower())
    if match is None:
        names = ", ".join(KNOWN)
        raise UnknownFormat(f"{name[:60]!r} is not an output format here; use one like {names}", param=FORMAT_HEADER)
    container, khz, hz, codec = match.groups()
    is_file = container == "riff" and codec == "pcm"
    return "wav" if is_file else codec, int(khz) * 1000 if khz else int(hz)


def voice_fields(voice: VoiceInfo) -> dict[str, Any]:
    return {
        "Name": voice.name,
        "DisplayName": voice.short_name,
        "LocalName": voice.label,
        "ShortName": voice.name,
        "Gender": voice.gender.title(),
        "Locale": _LOCALES[find_language(voice.language).letter],
        "LocaleName": find_language(voice.language).name,
        "SampleRateHertz": "24000",
        "VoiceType": "Neural",
        "Status": "GA",
    }


def azure_routes(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/cognitiveservices", tags=["azure"])

    @routes.post("/v1", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def speak(request: Request) -> Response:
        """Speak SSML, the body, in the format that X-Microsoft-OutputFormat names."""
        if "xml" not in request.headers.get("content-type", ""):
            raise NotJson("send SSML, and say so: Content-Type: application/ssml+xml")
        try:
            text = (await request.body()).decode()
        except UnicodeDecodeError:
            raise InvalidInput("the body is not UTF-8") from None
        with rename_param(input="body", format=FORMAT_HEADER, sample_rate=FORMAT_HEADER):
            name, rate = parse_format(request.headers.get(FORMAT_HEADER, DEFAULT_FORMAT))
            fields = SpeechFields.model_validate({"sample_rate": rate})
            speech_request = fields.build_request(text, name, service.aliases_of(request))
            return await streamed_response(service, request, speech_request)

    @routes.get("/voices/list")
    async def list_voices(request: Request) -> list[dict[str, Any]]:
        """Every voice, in Azure's form."""
        return [voice_fields(voice) for voice in service.aliases_of(request).known.all().values()]

    return routes
