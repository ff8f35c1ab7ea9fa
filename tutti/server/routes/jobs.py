"""/v1/jobs: turn books into audiobooks in the background."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from tutti.audio.tagged import CONTAINERS, container
from tutti.audiobook.cast import parse_cast
from tutti.audiobook.jobs import AudiobookJob, Correction, JobLimits, JobService, JobSpec
from tutti.audiobook.jobs.job import ENDED
from tutti.engine.checkpoints import audio_fingerprint
from tutti.errors import InvalidInput
from tutti.server.body_limit import check_json, limit_body, read_body, refuse_compressed
from tutti.server.client_key import connection_key
from tutti.server.disconnect import ClientDisconnected, cancel_on_disconnect
from tutti.server.errors import ErrorBody, NotJson, TooLarge, rename_param
from tutti.server.job_schemas import BookFields, CorrectionBody, Deleted, JobBody, JobList, JobStatus, job_status
from tutti.server.middleware.auth import ApiKeys
from tutti.server.notices import ignored_headers
from tutti.server.openapi import BINARY, CAPTION_FILES, EVENTS, Responses, error_responses
from tutti.server.podcast import podcast, podcast_item
from tutti.server.responses import sse_event
from tutti.server.schemas import all_entries
from tutti.server.service import Service
from tutti.tasks import cancel_all
from tutti.text.options import parse_pauses

KEEP_ALIVE_S = 15.0  # between comments in a quiet stream of events, so that proxies do not close it
FEED, CHAPTERS = "application/rss+xml", "application/json+chapters"
COVERS = {"image/png": BINARY, "image/jpeg": BINARY}
PNG = b"\x89PNG"
MAX_FIELDS = 40  # of a form
Body = TypeVar("Body", bound=BookFields)


def _error(text: str) -> dict[str, Any]:
    return {"model": ErrorBody, "description": text}


NOT_FOUND: Responses = {401: _error("An API key is needed."), 404: _error("The caller has no such job.")}
CHANGES: Responses = {**error_responses(404), 409: _error("Not in this state."), 507: _error("Disk full.")}
FILES: Responses = {
    **NOT_FOUND,
    200: {"content": {"application/octet-stream": BINARY, **{c.media_type: BINARY for c in CONTAINERS.values()}}},
    206: {"description": "The requested range."},
    400: _error("The range is malformed."),
    409: _error("The job is not done."),
    416: _error("The range is outside the file."),
}


def make_jobs(service: Service) -> JobService:
    """Build the jobs of this server, with the limits of its settings."""
    settings = service.settings
    return JobService(
        service.engine,
        service.engine.voices,
        settings.data / "jobs",
        JobLimits(settings.max_jobs, settings.max_jobs_gb * 1e9),
        passages_at_once=lambda: service.engine.passages_at_once,
        audio_settings=lambda: audio_fingerprint(settings),
    )


def jobs_routes(service: Service, jobs: JobService, keys: ApiKeys) -> APIRouter:
    routes = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    async def owner(request: Request) -> str:
        """Return whose jobs the caller may see. Unlike other GET routes, this needs a key: jobs are private."""
        await jobs.refresh_soon()
        return keys.caller(connection_key(request))

    def status_of(job: AudiobookJob) -> JobStatus:
        return job_status(job, jobs.running(job.id))

    owner_of_request = Depends(owner)

    def limited(request: Request) -> Request:
        """The same request, which fails if its book is too large."""
        refuse_compressed(request.headers)
        max_mb = service.settings.max_job_mb
        too_large = TooLarge(f"a book may have {max_mb:g} MB (TUTTI_MAX_JOB_MB)", param="file")
        return Request(request.scope, limit_body(request.receive, round(max_mb * 1e6), too_large))

    @routes.post(
        "", status_code=201, response_model=JobStatus, responses=CHANGES, openapi_extra=_body_document(JobBody)
    )
    async def create(request: Request, owner: str = owner_of_request) -> Response:
        """Read a book: JSON with `text`, or a form with `file`, such as an .epub. A restart resumes it."""
        async with aclosing(_parse_request(limited(request), service.settings.max_body, JobBody)) as parsed:
            body, source, name = await anext(parsed)
            if source is None:
                raise InvalidInput("send a book as `file` in a form, or its text as `text`", param=name)
            caller = request.state.caller
            admit = partial(service.limits.characters.take, caller)
            with rename_param(book="file"):
                creating = jobs.create(owner, caller, source, name, _job_params(body, service, caller), admit)
                job = await cancel_on_disconnect(request.receive, creating)
        headers = {"location": f"/v1/jobs/{job.id}", **ignored_headers(body.ignored_options())}
        return JSONResponse(status_of(job).model_dump(), 201, headers)

    @routes.post(
        "/{id}/again", response_model=JobStatus, responses=CHANGES, openapi_extra=_body_document(CorrectionBody)
    )
    async def again(request: Request, id: str, owner: str = owner_of_request) -> Response:
        """Correct a job that has ended: another text, words of its lexicon, tags, files. `keep` spares the rest."""
        jobs.get(owner, id)
        async with aclosing(_parse_request(limited(request), service.settings.max_body, CorrectionBody)) as parsed:
            body, source, name = await anext(parsed)
            caller = request.state.caller
            entries = all_entries(body.lexicon_id, body.lexicon, service.aliases_of_caller(caller))
            change = Correction(body.job_fields(), entries, source, name)
            admit = partial(service.limits.characters.take, caller)
            with rename_param(book="file"):
                job = await cancel_on_disconnect(request.receive, jobs.correct(owner, caller, id, change, admit))
        return JSONResponse(status_of(job).model_dump(), headers=ignored_headers(body.ignored_options()))

    @routes.get("", responses={401: NOT_FOUND[401]})
    async def listing(owner: str = owner_of_request) -> JobList:
        """The caller's jobs, the newest first."""
        return JobList(data=[status_of(job) for job in jobs.all(owner)])

    @routes.get("/feed", response_class=Response, responses={**NOT_FOUND, 200: {"content": {FEED: {}}}})
    async def feed(request: Request, owner: str = owner_of_request) -> Response:
        """The caller's finished books as a podcast. Its links have the key if the request has it as `api_key`."""
        finished = [(job, jobs.file(owner, job.id, "audio")) for job in jobs.all(owner) if job.state == "done"]
        items = [podcast_item(job, path) for job, path in finished if path.exists()]
        base = f"{str(request.base_url).rstrip('/')}/v1/jobs"
        return Response(podcast(items, base, request.query_params.get("api_key", "")), media_type=FEED)

    @routes.get("/{id}", responses=NOT_FOUND)
    async def status(id: str, owner: str = owner_of_request) -> JobStatus:
        """The state of a job."""
        return status_of(jobs.get(owner, id))

    @routes.get("/{id}/events", response_class=StreamingResponse, responses={**EVENTS, **NOT_FOUND})
    async def events(id: str, owner: str = owner_of_request) -> Response:
        """The state as an event at each change, until the job has ended."""
        jobs.get(owner, id)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_job_events(jobs, owner, id), media_type="text/event-stream", headers=headers)

    @routes.post("/{id}/cancel", responses=CHANGES)
    async def cancel(id: str, owner: str = owner_of_request) -> JobStatus:
        """Stop a job. What was read is kept, and `resume` continues from there."""
        return status_of(await jobs.cancel(owner, id))

    @routes.post("/{id}/resume", responses=CHANGES)
    async def resume(id: str, owner: str = owner_of_request) -> JobStatus:
        """Continue a job that was cancelled, paused or failed."""
        return status_of(await jobs.resume(owner, id))

    @routes.get("/{id}/audio", response_class=FileResponse, responses=FILES)
    async def audio(id: str, owner: str = owner_of_request) -> Response:
        """The audiobook, whole or in ranges."""
        job = jobs.get(owner, id)
        path = jobs.file(owner, id, "audio")
        return FileResponse(path, media_type=container(job.suffix).media_type, headers=_as_download(job, job.suffix))

    @routes.get("/{id}/captions", response_class=FileResponse, responses={**FILES, **CAPTION_FILES})
    async def captions(id: str, owner: str = owner_of_request) -> Response:
        """The captions, if they were requested."""
        path = jobs.file(owner, id, "captions")
        return FileResponse(path, headers=_as_download(jobs.get(owner, id), path.suffix))

    @routes.get("/{id}/cover", response_class=FileResponse, responses={**FILES, 200: {"content": COVERS}})
    async def cover(id: str, owner: str = owner_of_request) -> Response:
        """The cover of a finished book, a PNG or JPEG file."""
        path = jobs.file(owner, id, "cover")
        with path.open("rb") as file:
            kind = "image/png" if file.read(4) == PNG else "image/jpeg"
        return FileResponse(path, media_type=kind)

    @routes.get("/{id}/chapters", response_class=FileResponse, responses={**FILES, 200: {"content": {CHAPTERS: {}}}})
    async def chapters(id: str, owner: str = owner_of_request) -> Response:
        """Titles of chapters and where they start, in seconds, as podcasts have them."""
        return FileResponse(jobs.file(owner, id, "chapters"), media_type=CHAPTERS)

    @routes.delete("/{id}", responses=CHANGES)
    async def delete(id: str, owner: str = owner_of_request) -> Deleted:
        """Stop a job, and delete it with all its files."""
        await jobs.delete(owner, id)
        return Deleted(id=id)

    return routes


async def _job_events(jobs: JobService, owner: str, id: str) -> AsyncIterator[bytes]:
    """Yield an event for each change; the last one names the state in which the job ended."""
    async with aclosing(jobs.watch(owner, id)) as changes:
        while True:
            change = asyncio.ensure_future(anext(changes, None))
            try:
                while not (await asyncio.wait((change,), timeout=KEEP_ALIVE_S))[0]:
                    yield b": still here\n\n"
            finally:
                await cancel_all([change])
            job = change.result()
            if job is None:
                return
            ended = job.state in ENDED
            kind = f"job.{job.state if ended else 'progress'}"
            yield sse_event({"type": kind, "job": job_status(job, jobs.running(job.id)).model_dump()})


def _job_params(body: JobBody, service: Service, caller: str) -> JobSpec:
    if body.sample_rate is not None or body.volume_multiplier is not None:
        raise InvalidInput(
            "jobs are written at 24 kHz; sample_rate and volume_multiplier are not supported",
            param="sample_rate",
        )
    aliases = service.aliases_of_caller(caller)
    params, notes = body.speech_params(aliases)
    params = replace(params, pauses={**parse_pauses(service.settings.pauses), **params.pauses})
    cast = None if body.cast is None else parse_cast(body.cast, aliases.known)
    params = cast.params(params) if cast else params
    return JobSpec(params, notes=notes, cast=cast.names if cast else (), **{"suffix": ".m4b", **body.job_fields()})


async def _parse_request(
    request: Request, max_json: int, kind_of_body: type[Body]
) -> AsyncGenerator[tuple[Body, BinaryIO | None, str]]:
    """Yield the options, the book and its file name; without a book, the name of the field in which it belongs."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        body = _validate(await _json(request, max_json), kind_of_body)
        yield (body, *_text_file(body, "text"))
    elif kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            upload = form.get("file")
            fields = {name: value for name, value in form.items() if isinstance(value, str)}
            body = _validate(_parse_tables(fields), kind_of_body)
            if isinstance(upload, UploadFile):
                yield body, upload.file, PurePath(upload.filename or "book").name
            else:
                yield (body, *_text_file(body, "file"))
    else:
        raise NotJson("send JSON (application/json) or a form with a file (multipart/form-data)")


def _text_file(body: BookFields, missing: str) -> tuple[BinaryIO | None, str]:
    if body.text is None:
        return None, missing
    if not body.text:
        raise InvalidInput("text is empty", param="text")
    return io.BytesIO(body.text.encode("utf-8", "replace")), "book.md"


async def _json(request: Request, max_bytes: int) -> Any:
    too_large = TooLarge(
        f"a job in JSON may have {max_bytes:,} bytes (TUTTI_MAX_BODY); send a larger book as `file` in a form",
        param="text",
    )
    body = await read_body(limit_body(request.receive, max_bytes, too_large))
    if body is None:
        raise ClientDisconnected
    check_json(body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"the body is not JSON: {exc}") from exc


def _parse_tables(fields: dict[str, str]) -> dict[str, Any]:
    """Parse the lexicon, the cast and the pauses, which are JSON in text fields of a form."""
    parsed: dict[str, Any] = dict(fields)
    for name in parsed.keys() & {"lexicon", "cast", "pauses"}:
        try:
            check_json(fields[name].encode("utf-8", "surrogatepass"))
            parsed[name] = json.loads(fields[name])
        except (ValueError, RecursionError) as exc:
            raise InvalidInput(f"{name} is not JSON", param=name) from exc
    return parsed


def _validate(content: Any, kind: type[Body]) -> Body:
    try:
        return kind.model_validate(content)
    except ValidationError as exc:
        raise RequestValidationError([{**error, "loc": ("body", *error["loc"])} for error in exc.errors()]) from exc


def _body_document(body: type[BookFields]) -> dict[str, Any]:
    """Return the OpenAPI description of the body, which FastAPI cannot derive: the route parses it itself."""
    schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    form = {**schema, "properties": {"file": {"type": "string", "format": "binary"}, **schema["properties"]}}
    content = {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


def _as_download(job: AudiobookJob, suffix: str) -> dict[str, str]:
    """Return the header that names the file of a download: in ASCII for curl, and as it is for browsers."""
    title = "".join(char if char.isalnum() or char in " -_.,()" else "_" for char in job.title)[:80].strip(" .")
    name = f"{title or 'book'}{suffix}"
    plain = name.encode("ascii", "replace").decode().replace("?", "_")
    return {"content-disposition": f"attachment; filename=\"{plain}\"; filename*=utf-8''{quote(name)}"}
