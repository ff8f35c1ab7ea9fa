"""/v1/jobs: books read in the background, for callers who come back for them."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any, BinaryIO

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.types import Message

from tutti.audio.tagged import container
from tutti.audiobook.fingerprint import sound_of
from tutti.audiobook.jobs import AudiobookJob, JobLimits, JobService, JobSpec
from tutti.audiobook.jobs.job import ENDED
from tutti.errors import InvalidInput
from tutti.server.aliases import checkpoint
from tutti.server.errors import NotJson, TooLarge, fields
from tutti.server.job_schemas import (
    CHANGED,
    EVENTS,
    FILES,
    UNKNOWN,
    Deleted,
    JobBody,
    JobList,
    JobStatus,
    body_document,
    status_of,
)
from tutti.server.middleware.auth import Keys
from tutti.server.responses import event
from tutti.server.service import Service

STILL_HERE_S = 15.0  # a comment keeps proxies from closing a quiet stream of events
FIELDS = 40


def jobs_of(service: Service) -> JobService:
    """The jobs of this server, as its settings limit them."""
    settings = service.settings
    return JobService(
        service.engine,
        settings.data / "jobs",
        JobLimits(settings.max_jobs, settings.max_jobs_gb * 1e9),
        passages_at_once=lambda: max(2, int(service.engine.stats()["config"]["max_batch_size"])),
        sound=lambda: sound_of(settings),
    )


def jobs_routes(service: Service, jobs: JobService, keys: Keys) -> APIRouter:
    routes = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    def owner(request: Request) -> str:
        """Who may see which jobs: listings are open elsewhere, but what others read is nobody's business."""
        return keys.caller(request.headers.get("authorization", ""))

    def told(job: AudiobookJob) -> JobStatus:
        return status_of(job, jobs.running(job.id))

    whose = Depends(owner)

    @routes.post("", status_code=201, response_model=JobStatus, responses=CHANGED, openapi_extra=body_document())
    async def create(request: Request, owner: str = whose) -> Response:
        """Read a book: JSON with `text`, or a form with `file` (.epub .html .md .txt). It goes on after a restart."""
        limited = _limited(request, round(service.settings.max_job_mb * 1e6))
        async with aclosing(_given(limited)) as given:
            body, source, name = await anext(given)
            caller = request.state.caller
            admit = partial(service.limits.characters.take, caller)
            with fields(out="format", book="file"):
                job = await jobs.create(owner, caller, source, name, _wish(body, service), admit)
        return JSONResponse(told(job).model_dump(), 201, {"location": f"/v1/jobs/{job.id}"})

    @routes.get("", responses={401: UNKNOWN[401]})
    async def listing(owner: str = whose) -> JobList:
        """The caller's jobs, the newest first."""
        return JobList(data=[told(job) for job in jobs.all(owner)])

    @routes.get("/{id}", responses=UNKNOWN)
    async def status(id: str, owner: str = whose) -> JobStatus:
        """How a job is doing."""
        return told(jobs.get(owner, id))

    @routes.get("/{id}/events", response_class=StreamingResponse, responses=EVENTS)
    async def events(id: str, owner: str = whose) -> Response:
        """The same as events, at each change, until the job has ended."""
        jobs.get(owner, id)
        about = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_told(jobs, owner, id), media_type="text/event-stream", headers=about)

    @routes.post("/{id}/cancel", responses=CHANGED)
    async def cancel(id: str, owner: str = whose) -> JobStatus:
        """Stop; what was read is kept, and `resume` goes on with it."""
        return told(await jobs.cancel(owner, id))

    @routes.post("/{id}/resume", responses=CHANGED)
    async def resume(id: str, owner: str = whose) -> JobStatus:
        """Go on with a job that was cancelled, paused or failed."""
        return told(await jobs.resume(owner, id))

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


async def _told(jobs: JobService, owner: str, id: str) -> AsyncIterator[bytes]:
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
            kind = f"job.{job.state if ended else 'progress'}"
            yield event({"type": kind, "job": status_of(job, jobs.running(job.id)).model_dump()})


def _wish(body: JobBody, service: Service) -> JobSpec:
    if body.sample_rate is not None or body.volume_multiplier is not None:
        raise InvalidInput("jobs are written at 24 kHz and as loud as they are read", param="sample_rate")
    cast = service.cast
    model = None if body.model is None else checkpoint(body.model, cast.checkpoints)
    params = replace(body.params(cast), model=model)
    suffix = f".{(body.format or 'm4b').lower()}"
    with fields(out="format"):
        container(suffix)
    return JobSpec(params, suffix, body.captions, bool(body.captions_by_word), body.encoding, body.title, body.author)


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


def _named(job: AudiobookJob, suffix: str) -> str:
    """What a browser saves it as."""
    kept = "".join(char if char.isalnum() or char in " -_.,()" else "_" for char in job.title)[:80].strip(" .")
    return f"{kept or 'book'}{suffix}"
