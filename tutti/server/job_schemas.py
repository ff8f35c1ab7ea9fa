"""What callers of /v1/jobs send and see."""

import time
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tutti.audio.tagged import CONTAINERS
from tutti.audiobook.jobs import AudiobookJob, JobState
from tutti.audiobook.jobs.job import ENDED, RunningJob
from tutti.server.errors import ErrorBody
from tutti.server.openapi import Responses, errors
from tutti.server.schemas import Wishes


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
    state: JobState
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


def status_of(job: AudiobookJob, run: RunningJob | None) -> JobStatus:
    """How a job is doing; `run` is there while it is under way."""
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
        voice=job.params.voice,
        duration_s=_rounded(job.duration_s),
        progress=progress,
        error=JobFault(code=job.error[0], message=job.error[1]) if job.error else None,
        notes=list(job.notes),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def body_document() -> dict[str, Any]:
    """For the OpenAPI document, since the body is read by hand."""
    schema = JobBody.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    form = {**schema, "properties": {"file": {"type": "string", "format": "binary"}, **schema["properties"]}}
    content = {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}
