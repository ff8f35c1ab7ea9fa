"""Routes of OpenAI's API: POST /v1/audio/speech, and the lists of models and voices, which need no key."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from tutti.additions import Addition
from tutti.admission.ticket import Delivery
from tutti.audio import format_of_file
from tutti.server.aliases import MODELS, find_checkpoint
from tutti.server.dialogue import DialogueBody
from tutti.server.downloads import TIMES, Downloads, shown_name
from tutti.server.errors import UnknownDownload, rename_param
from tutti.server.openapi import AUDIO, error_responses, only_errors
from tutti.server.request import SpeechRequest
from tutti.server.responses import (
    cached_response,
    event_response,
    finished_response,
    raw_response,
    start_stream,
    streamed_response,
)
from tutti.server.routes.body_route import BodyRoute
from tutti.server.schemas import DOWNLOAD_OPTIONS, SpeechBody, name_unused
from tutti.server.service import Service
from tutti.server.wires.elevenlabs import models_list
from tutti.text.g2p.extras import missing_extra
from tutti.text.language import LANGUAGES, OF_OTHERS, find_language
from tutti.voices import VoiceInfo

CREATED = 1_735_689_600  # Unix time of 2025-01-01, when Kokoro 1.0 was new


def speech_routes(service: Service, downloads: Downloads) -> APIRouter:
    routes = APIRouter(tags=["speech"], route_class=BodyRoute)

    @routes.post("/v1/audio/speech", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def speech(request: Request, body: SpeechBody) -> Response:
        """Speak a text. Audio is sent as it is made, unless `stream` is false."""
        return await speak(request, body)

    @routes.post("/v1/audio/dialogue", response_class=Response, responses={**AUDIO, **error_responses(404)})
    @routes.post("/dev/dialogue", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def dialogue(request: Request, body: DialogueBody) -> Response:
        """Speak the turns of a dialogue, each in its voice. The options of `/v1/audio/speech` have their effect."""
        with rename_param(voice="turns", input="turns"):
            return await speak(request, body)

    async def speak(request: Request, body: SpeechBody) -> Response:
        speech_request = body.speech_request(service.aliases_of(request))
        if body.stream_format == "sse":
            speech_request = name_unused(speech_request, body, *DOWNLOAD_OPTIONS)
            return await event_response(service, request, speech_request)
        speech_request = name_unused(speech_request, body, "word_timestamps", "timestamps")
        if body.return_download_link:
            return await stored(request, body, speech_request)
        respond = cached_response if body.stream is False else streamed_response
        return await respond(service, request, name_unused(speech_request, body, *DOWNLOAD_OPTIONS))

    async def stored(request: Request, body: SpeechBody, speech_request: SpeechRequest) -> Response:
        """Speak a text and store its audio, and the times of its parts if they are asked for. Nothing is cached."""
        with downloads.storing(speech_request, body) as download:
            is_copy = download.format is not speech_request.format
            tee = download.tee(service, speech_request, audio=is_copy)
            wanted = speech_request if download.times else speech_request.without_words()
            if body.stream is False:
                delivery: Delivery = "live" if speech_request.urgent else "whole"
                stream = await start_stream(service, request, wanted, tee, delivery)
                response = await finished_response(service, request, stream)
            else:
                response = await raw_response(service, request, await start_stream(service, request, wanted, tee))
        if not is_copy:
            download.record(response)
        download.announce(response)
        return response

    @routes.get("/v1/download/{file}", response_class=FileResponse, responses=error_responses(404))
    async def download(file: str, name: str = "") -> FileResponse:
        """Audio that a request with `return_download_link` has stored; for an hour. `name`: under which it is saved."""
        path = downloads.find(file)
        if path is None:
            raise UnknownDownload("there is no such download; it may be unfinished, or older than an hour")
        media_type = "application/json" if file.endswith(TIMES) else format_of_file(file).media_type
        return FileResponse(path, media_type=media_type, filename=shown_name(file, name))

    # X-Download-Path is meant to be put behind /v1; some clients put it behind the address of the server.
    for path, methods in (("/v1/download/{file}", ["HEAD"]), ("/download/{file}", ["GET", "HEAD"])):
        routes.add_api_route(path, download, methods=methods, include_in_schema=False)
    return routes


def discovery_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["discovery"])
    names = (*MODELS, *(name for name in service.engine.checkpoints if name not in MODELS))

    def fields_of(name: str) -> dict[str, Any]:
        folder = service.own_models.get(name)
        if folder is None:
            return model_fields(name)
        voices = len(service.engine.voices.of_model(name))
        # It has learned nothing from our light networks, and they nothing from it.
        own = {"license": folder.licence or None, "language": folder.language, "voices": voices, "vocoder": "exact"}
        return {**model_fields(name), **own}

    @routes.get("/v1/models")
    async def models(request: Request) -> Any:
        """Every model, under all its names; for ElevenLabs' SDKs as a list."""
        if "xi-api-key" in request.headers:
            return models_list(names)
        return {"object": "list", "data": [fields_of(name) for name in names]}

    @routes.get("/v1/models/{name:path}", responses=error_responses(404))
    async def one_model(name: str) -> dict[str, Any]:
        """One model."""
        find_checkpoint(name, service.aliases)
        return fields_of(name)

    @routes.get("/v1/audio/models")
    async def audio_models() -> dict[str, Any]:
        """Every model, in the form of Open WebUI."""
        return {"models": [{"id": name, "name": name} for name in names]}

    @routes.get("/v1/audio/voices", responses=only_errors(400))
    async def voices(request: Request, legacy: bool = False, model: str | None = None) -> dict[str, Any]:
        """Every voice, or those of a model with its own; `legacy=true` for the bare names."""
        aliases = service.aliases_of(request).of_model(model)
        known, default_voice = aliases.known.all(), aliases.default_voice
        if legacy:
            return {"voices": list(known), "default_voice": default_voice}
        needs = {language.letter: needed_extra(service, language.code) for language in (*LANGUAGES, *OF_OTHERS)}
        owner = request.state.key
        rows = [voice_fields(voice, needs[find_language(voice.language).letter], owner) for voice in known.values()]
        problems = aliases.known.own.problems()
        refused = {"refused": list(problems.values())} if problems else {}
        return {"voices": rows, "default_voice": default_voice, **refused}

    @routes.get("/v1/test")
    async def test() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @routes.get("/v1/")
    async def root() -> dict[str, str]:
        """Which server this is."""
        return {"object": "tutti"}

    return routes


def model_fields(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "tutti"}


def needed_extra(service: Service, language: str) -> str | None:
    """Return the extra that a language lacks on this server; none if another server makes phonemes."""
    return missing_extra(language) if service.settings.g2p_url is None else None


def voice_fields(voice: VoiceInfo, needs: str | None, owner: str) -> dict[str, str | bool | None]:
    """Describe a voice; `needs` is the extra that its language lacks on this server."""
    return {
        "id": voice.name,
        "name": voice.name,  # clients take it for the voice to send
        "label": voice.label,
        "language": voice.language,
        "gender": voice.gender,
        "grade": voice.grade,
        "description": voice.description,
        "needs": needs,
        **(own_fields(voice.addition, owner) if voice.is_own else {}),
    }


def own_fields(addition: Addition | None, owner: str) -> dict[str, str | bool | None]:
    """Say who may use an own voice, and whether the caller may delete it."""
    if addition is None:
        return {"access": "shared", "yours": False}
    return {"access": addition.access, "yours": addition.owner == owner}
