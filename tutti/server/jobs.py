"""/v1/jobs: books read in the background, for callers who come back for them."""

import asyncio
import io
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import PurePath
from typing import Any, BinaryIO, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.types import Message

from tutti.audio.tagged import CONTAINERS, container
from tutti.errors import InvalidInput
from tutti.jobs import Job, Jobs, Limits, State, Wish
from tutti.jobs.job import ENDED
from tutti.reading import Voicing
from tutti.server.bodies import Wishes
from tutti.server.docs import Responses, errors
from tutti.server.errors import ErrorBody, NotJson, TooLarge, fields
from tutti.server.keys import Keys
from tutti.server.names import checkpoint
from tutti.server.replies import event
from tutti.server.service import Service

STILL_HERE_S = 15.0  # a comment keeps proxies from closing a quiet stream of events
FIELDS = 40


class JobBody(Wishes):
    """POST /v1/jobs, as JSON or as fields of a form."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "# One\n\nIt began to fall.", "voice": "bm_george", "format": "m4b"}]}
    )

    text: str | None = Field(None, description="what to read, as Markdown; or send a book as `file` in a form")
    model: str | None = Field(None, description="kokoro, unless told")
    format: str | None = Field(None, description=f"{' '.join(s[1:] for s in CONTAINERS)}; m4b unless told")
    captions: Literal["srt", "vtt", "json"] | None = Field(None, description="also make captions")
    captions_by_word: bool | None = Field(None, description="time each word in vtt")
    title: str | None = Field(None, max_length=1000, description="instead of the book's own")
    author: str | None = Field(None, max_length=1000, description="instead of the book's own")
    encoding: str | None = Field(None, description="of a text that is not UTF-8", examples=["latin-1"])


class JobProgress(BaseModel):
    fraction: float
    characters: int
    of_characters: int
    passages: int = Field(description="stretches of a few sentences that are spoken and kept")
    of_passages: int
    spoken_s: float = Field(description="seconds of audio made so far")
    left_s: float | None = Field(description="how long the rest may take")
    step: Literal["waiting", "reading", "writing"]


class JobFault(BaseModel):
    code: str
    message: str


class JobStatus(BaseModel):
    """A job."""

    id: str
    object: Literal["job"] = "job"
    state: State
    created_at: int
    title: str
    author: str
    chapters: int
    characters: int
    format: str
    captions: str | None
    voice: str
    duration_s: float | None
    progress: JobProgress | None = Field(description="while it is queued or running")
    error: JobFault | None = Field(description="why it was paused or failed; POST …/resume goes on")
    notes: list[str] = Field(description="what was missing from the book, or could not be said or held")


class JobList(BaseModel):
    object: Literal["list"] = "list"
    data: list[JobStatus]


class Deleted(BaseModel):
    id: str
    deleted: Literal[True] = True


def _fault(text: str) -> dict[str, Any]:
    return {"model": ErrorBody, "description": text}


UNKNOWN: Responses = {401: _fault("An API key is needed."), 404: _fault("No such job of this caller.")}
CHANGED: Responses = {**errors(404), 409: _fault("The job is not in a state for that."), 507: _fault("Disk full.")}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
FILES: Responses = {
    **UNKNOWN,
    200: {"content": {"application/octet-stream": _BINARY, **{c.media_type: _BINARY for c in CONTAINERS.values()}}},
    206: {"description": "The part that was asked for."},
    400: _fault("The range is not one."),
    409: _fault("The job is not done."),
    416: _fault("The range lies outside."),
}
EVENTS: Responses = {200: {"content": {"text/event-stream": {}}}, **UNKNOWN}


def jobs_of(service: Service) -> Jobs:
    """The jobs of this server, as its settings limit them."""
    settings = service.settings
    return Jobs(
        service.engine,
        settings.data / "jobs",
        Limits(settings.max_jobs, settings.max_jobs_gb * 1e9),
        passages_at_once=lambda: max(2, int(service.engine.stats()["config"]["max_batch_size"])),
        sound=lambda: {
            "model": (settings.backend, settings.device, settings.precision),
            "lexicon": service.lexicon_stamp(),
        },
    )


def jobs_routes(service: Service, jobs: Jobs, keys: Keys) -> APIRouter:
    routes = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    def owner(request: Request) -> str:
        """Who may see which jobs: listings are open elsewhere, but what others read is nobody's business."""
        return keys.caller(request.headers.get("authorization", ""))

    whose = Depends(owner)

    @routes.post("", status_code=201, response_model=JobStatus, responses=CHANGED, openapi_extra=_body())
    async def create(request: Request, owner: str = whose) -> Response:
        """Read a book: JSON with `text`, or a form with `file` (.epub .html .md .txt). It goes on after a restart."""
        limited = _limited(request, round(service.settings.max_job_mb * 1e6))
        async with aclosing(_given(limited)) as given:
            body, source, name = await anext(given)
            with fields(out="format", book="file"):
                job = await jobs.create(owner, request.state.caller, source, name, _wish(body, service))
        return JSONResponse(_status(jobs, job).model_dump(), 201, {"location": f"/v1/jobs/{job.id}"})

    @routes.get("", responses={401: UNKNOWN[401]})
    async def listing(owner: str = whose) -> JobList:
        """The caller's jobs, the newest first."""
        return JobList(data=[_status(jobs, job) for job in jobs.all(owner)])

    @routes.get("/{id}", responses=UNKNOWN)
    async def status(id: str, owner: str = whose) -> JobStatus:
        """How a job is doing."""
        return _status(jobs, jobs.get(owner, id))

    @routes.get("/{id}/events", response_class=StreamingResponse, responses=EVENTS)
    async def events(id: str, owner: str = whose) -> Response:
        """The same as events, at each change, until the job has ended."""
        jobs.get(owner, id)
        about = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_told(jobs, owner, id), media_type="text/event-stream", headers=about)

    @routes.post("/{id}/cancel", responses=CHANGED)
    async def cancel(id: str, owner: str = whose) -> JobStatus:
        """Stop; what was read is kept, and `resume` goes on with it."""
        return _status(jobs, await jobs.cancel(owner, id))

    @routes.post("/{id}/resume", responses=CHANGED)
    async def resume(id: str, owner: str = whose) -> JobStatus:
        """Go on with a job that was cancelled, paused or failed."""
        return _status(jobs, await jobs.resume(owner, id))

    @routes.get("/{id}/audio", response_class=FileResponse, responses=FILES)
    async def audio(id: str, owner: str = whose) -> Response:
        """The audiobook, whole or in ranges."""
        job = jobs.get(owner, id)
        path = jobs.file(owner, id, "audio")
        return FileResponse(path, media_type=container(job.suffix).media_type, filename=_named(job, job.suffix))

    @routes.get("/{id}/captions", response_class=FileResponse, responses=FILES)
    async def captions(id: str, owner: str = whose) -> Response:
        """The captions, where they were asked for."""
        path = jobs.file(owner, id, "captions")
        return FileResponse(path, filename=_named(jobs.get(owner, id), path.suffix))

    @routes.delete("/{id}", responses=CHANGED)
    async def delete(id: str, owner: str = whose) -> Deleted:
        """Stop a job, and forget it with all its files."""
        await jobs.delete(owner, id)
        return Deleted(id=id)

    return routes


def _status(jobs: Jobs, job: Job) -> JobStatus:
    run = jobs.run(job.id)
    progress = None
    if job.state not in ENDED:
        now = run.progress if run else None
        progress = JobProgress(
            fraction=round(now.n_characters / max(1, now.of_characters), 4) if now else 0.0,
            characters=now.n_characters if now else 0,
            of_characters=now.of_characters if now else job.n_characters,
            passages=now.n_passages if now else 0,
            of_passages=now.of_passages if now else 0,
            spoken_s=round(now.spoken_s, 3) if now else 0.0,
            left_s=_rounded(run.left_s(time.monotonic()) if run else None),
            step="writing" if run and run.writing else "reading" if run else "waiting",
        )
    return JobStatus(
        id=job.id,
        state=job.state,
        created_at=round(job.created_s),
        title=job.title,
        author=job.author,
        chapters=job.n_chapters,
        characters=job.n_characters,
        format=job.suffix[1:],
        captions=job.captions,
        voice=job.voicing.voice,
        duration_s=_rounded(job.duration_s),
        progress=progress,
        error=JobFault(code=job.error[0], message=job.error[1]) if job.error else None,
        notes=list(job.notes),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


async def _told(jobs: Jobs, owner: str, id: str) -> AsyncIterator[bytes]:
    """An event for each change; the last one names the state in which the job ended."""
    async with aclosing(jobs.watch(owner, id)) as changes:
        while True:
            change = asyncio.ensure_future(anext(changes, None))
            try:
                while not (await asyncio.wait((change,), timeout=STILL_HERE_S))[0]:
                    yield b": still here\n\n"
            finally:
                if not change.done():
                    change.cancel()
                    await asyncio.gather(change, return_exceptions=True)
            job = change.result()
            if job is None:
                return
            ended = job.state in ENDED
            yield event({"type": f"job.{job.state if ended else 'progress'}", "job": _status(jobs, job).model_dump()})


def _wish(body: JobBody, service: Service) -> Wish:
    if body.sample_rate is not None or body.volume_multiplier is not None:
        raise InvalidInput("jobs are written at 24 kHz and as loud as they are read", param="sample_rate")
    cast = service.cast
    ask = body.ask_for("", "wav", cast)
    voicing = Voicing(
        ask.voice, ask.style, ask.speed, ask.prosody.pitch, ask.prosody.pitch_range, ask.prosody.energy, ask.emotion,
        ask.language, dict(ask.lexicon), dict(ask.names), ask.seed,
        None if body.model is None else checkpoint(body.model, cast.checkpoints),
    )  # fmt: skip
    suffix = f".{(body.format or 'm4b').lower()}"
    with fields(out="format"):
        container(suffix)
    return Wish(voicing, suffix, body.captions, bool(body.captions_by_word), body.encoding, body.title, body.author)


async def _given(request: Request) -> AsyncGenerator[tuple[JobBody, BinaryIO, str]]:
    """What was sent: the wishes and the book with its name."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        body = _checked(await _json(request))
        if not body.text:
            raise InvalidInput("text is missing", param="text")
        yield body, io.BytesIO(body.text.encode("utf-8", "replace")), "book.md"
    elif kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=FIELDS) as form:
            upload = form.get("file")
            texts = {name: value for name, value in form.items() if isinstance(value, str)}
            body = _checked(_unpacked(texts))
            if isinstance(upload, UploadFile):
                yield body, upload.file, PurePath(upload.filename or "book").name
            elif body.text:
                yield body, io.BytesIO(body.text.encode("utf-8", "replace")), "book.md"
            else:
                raise InvalidInput("send a book as `file`, or its text as `text`", param="file")
    else:
        raise NotJson("send JSON (application/json) or a form with a file (multipart/form-data)")


async def _json(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"the body is not JSON: {exc}") from exc


def _unpacked(texts: dict[str, str]) -> dict[str, Any]:
    """Fields of a form are texts; a lexicon in one is JSON."""
    if "lexicon" not in texts:
        return dict(texts)
    try:
        return {**texts, "lexicon": json.loads(texts["lexicon"])}
    except (ValueError, RecursionError) as exc:
        raise InvalidInput("lexicon is not JSON", param="lexicon") from exc


def _checked(content: Any) -> JobBody:
    try:
        return JobBody.model_validate(content)
    except ValidationError as exc:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in exc.errors()]) from exc


def _limited(request: Request, max_bytes: int) -> Request:
    """The request, whose body may have this many bytes and no more."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotJson("send the body as it is, not compressed")
    n_bytes = 0

    async def receive() -> Message:
        nonlocal n_bytes
        message = await request.receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > max_bytes:
            raise TooLarge(f"a book may have {max_bytes / 1e6:g} MB (TUTTI_MAX_JOB_MB)", param="file")
        return message

    return Request(request.scope, receive)


def _named(job: Job, suffix: str) -> str:
    """What a browser saves it as."""
    kept = "".join(char if char.isalnum() or char in " -_.,()" else "_" for char in job.title)[:80].strip(" .")
    return f"{kept or 'book'}{suffix}"


def _body() -> dict[str, Any]:
    """For the OpenAPI document, since the body is read by hand."""
    schema = JobBody.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    form = {**schema, "properties": {"file": {"type": "string", "format": "binary"}, **schema["properties"]}}
    content = {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}
