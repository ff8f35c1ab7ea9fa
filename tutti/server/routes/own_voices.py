"""/v1/audio/voices: callers add voices of their own, in the form of OpenAI's custom voices, and delete them."""

import asyncio
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple, cast, get_args

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import UploadFile

from tutti.additions import Access, Addition
from tutti.errors import InvalidInput, NotYourVoice, UnknownVoice, did_you_mean
from tutti.server.body_limit import refuse_compressed
from tutti.server.client_key import connection_key
from tutti.server.errors import NotJson, rename_param
from tutti.server.job_schemas import Deleted
from tutti.server.middleware.auth import ApiKeys
from tutti.server.notices import ignored_headers
from tutti.server.openapi import error_responses
from tutti.server.routes.openai import needed_extra, voice_fields
from tutti.server.service import Service
from tutti.settings import Settings
from tutti.voice_file import READERS, Table, check_size, parse_voice, shown
from tutti.voices import VoiceInfo, own_info

MAX_FIELDS = 20  # of a form
TEXT_FIELDS = ("name", "language", "access", "consent")
FILE_FIELDS = ("audio_sample", "file")  # OpenAI's name of the field, and the plain one
# How files of recordings begin, and their suffixes.
RECORDINGS = (b"RIFF", b"ID3", b"OggS", b"fLaC", b"\xff\xfb", b"\xff\xf3", b"\x1aE\xdf\xa3", b"FORM")
RECORDING_SUFFIXES = (".wav", ".mp3", ".ogg", ".oga", ".opus", ".flac", ".m4a", ".mp4", ".aac", ".webm", ".mpeg")
FORM = {
    "type": "object",
    "required": ["name", "audio_sample"],
    "properties": {
        "name": {"type": "string", "description": "lower-case letters, digits and _, such as af_jadzia"},
        "audio_sample": {"type": "string", "format": "binary", "description": "a voice file of Kokoro; or as `file`"},
        "language": {"type": "string", "description": "if the name does not begin like af_; default: en-us"},
        "access": {"type": "string", "enum": list(get_args(Access)), "description": "default: private to your key"},
    },
}
FORM_DOCUMENT = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}


class UnknownVoiceId(UnknownVoice):
    status = 404


class Form(NamedTuple):
    """What a caller sends to add a voice."""

    name: str
    language: str | None
    access: str | None
    file_name: str
    data: bytes
    file_field: str
    ignored: tuple[str, ...]


def own_voice_routes(service: Service, keys: ApiKeys) -> APIRouter:
    routes = APIRouter(prefix="/v1/audio/voices", tags=["discovery"])
    own = service.engine.voices.own

    async def owner(request: Request) -> str:
        """Return whose voices the caller may change; raise without a key where one is needed."""
        return keys.caller(connection_key(request))

    owner_of_request = Depends(owner)

    def fields(voice: VoiceInfo, owner: str) -> dict[str, Any]:
        return {"object": "audio.voice", **voice_fields(voice, needed_extra(service, voice.language), owner)}

    @routes.post("", responses=error_responses(403), openapi_extra=FORM_DOCUMENT)
    async def add(request: Request, owner: str = owner_of_request) -> JSONResponse:
        """Add a voice of your own: a form with a `name` and a voice file of Kokoro. `consent` is accepted, not kept."""
        check_adder(owner, service.settings)
        form = await read_form(request)
        with rename_param(file=form.file_field):
            access = find_access(form.access, has_keys=keys.needed)
            check_alias(form.name, service.aliases.voices)
            table = parse_file(form)
            limit = service.settings.max_voices
            # In a thread: it waits for the disk.
            voice = await asyncio.to_thread(own.add, form.name, form.language, table, Addition(owner, access), limit)
        headers = {"location": f"/v1/audio/voices/{voice.name}", **ignored_headers(form.ignored)}
        return JSONResponse({**fields(own_info(voice), owner), "created_at": voice.stamp[0] // 10**9}, headers=headers)

    @routes.get("/{id}", responses=error_responses(404))
    async def one(request: Request, id: str) -> dict[str, Any]:
        """One voice."""
        return fields(find_voice(service.engine.voices.seen_by(request.state.caller).all(), id), request.state.key)

    @routes.get("/{id}/similar", responses=error_responses(404))
    async def similar(request: Request, id: str) -> dict[str, Any]:
        """All other voices, the most alike first: by the mean of their style vectors, which say timbre and prosody."""
        known = service.engine.voices.seen_by(request.state.caller)
        name = find_voice(known.all(), id).name
        alike = await asyncio.to_thread(known.similar, name)  # it may read many files
        return {"id": name, "data": [{"id": each, "likeness": round(value, 3)} for each, value in alike]}

    @routes.delete("/{id}", responses=error_responses(403, 404))
    async def delete(id: str, owner: str = owner_of_request) -> Deleted:
        """Delete a voice that you have added."""
        voice = find_voice(service.engine.voices.seen_by(owner).all(), id)
        if voice.addition is None or voice.addition.owner != owner:
            raise NotYourVoice(f"voice {voice.name} was not added with your key, so it stays", param="id")
        await asyncio.to_thread(own.remove, voice.name, owner)
        return Deleted(id=voice.name)

    return routes


def check_adder(owner: str, settings: Settings) -> None:
    """Raise if this caller may add no voices."""
    if settings.max_voices == 0:
        raise NotYourVoice("no voices may be added to this server over HTTP (TUTTI_MAX_VOICES)")
    if settings.voice_adders and owner not in settings.voice_adders:
        raise NotYourVoice("your key may not add voices to this server (TUTTI_VOICE_ADDERS)")


async def read_form(request: Request) -> Form:
    refuse_compressed(request.headers)
    if "multipart/form-data" not in request.headers.get("content-type", ""):
        raise NotJson("send a form with a name and a voice file: multipart/form-data")
    async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
        field, upload = next(((name, form[name]) for name in FILE_FIELDS if name in form), ("file", ""))
        if not isinstance(upload, UploadFile):
            raise InvalidInput("send a voice file of Kokoro as `audio_sample` or `file`, with its name", param=field)
        texts = {name: value for name, value in form.items() if isinstance(value, str)}
        if "name" not in texts:
            raise InvalidInput("the voice needs a name, such as af_jadzia", param="name")
        ignored = tuple(name for name in texts if name not in TEXT_FIELDS)
        return Form(
            texts["name"], texts.get("language") or None, texts.get("access") or None,
            upload.filename or "", await upload.read(), field, ignored,
        )  # fmt: skip


def find_access(written: str | None, *, has_keys: bool) -> Access:
    """Return who may use an addition: without another wish only its key, where there are keys."""
    access = written or ("private" if has_keys else "shared")
    if access == "private" and not has_keys:
        raise InvalidInput("this server has no keys, so nothing on it is private; send access=shared", param="access")
    if access not in get_args(Access):
        raise InvalidInput(f"access is private or shared, not {access[:40]!r}", param="access")
    return cast(Access, access)


def check_alias(name: str, aliases: Mapping[str, str]) -> None:
    if name in aliases:
        raise InvalidInput(f"the name {name} stands for another voice already; choose another", param="name")


def parse_file(form: Form) -> Table:
    """Return the table of a voice file; raise InvalidInput that says so for a recording."""
    suffix = PurePath(form.file_name).suffix.lower()
    if suffix in RECORDING_SUFFIXES or (suffix not in READERS and form.data.startswith(RECORDINGS)):
        raise InvalidInput(
            f"{shown(form.file_name)} is a recording, and this server makes no voices of recordings; "
            f"send the file of a Kokoro voice ({', '.join(READERS)})",
            param="file",
        )
    check_size(form.file_name, len(form.data))
    return parse_voice(form.file_name, form.data)


def find_voice(voices: Mapping[str, VoiceInfo], id: str) -> VoiceInfo:
    if id not in voices:
        raise UnknownVoiceId(f"unknown voice {id[:60]!r}{did_you_mean(id, voices)}", param="id")
    return voices[id]
