"""JSON of jobs: what starts one, and what is said of it."""

import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tutti.audio.loudness import PRESETS, parse_loudness
from tutti.audio.tagged import CONTAINERS, container
from tutti.audiobook.cast import MAX_SPEAKERS
from tutti.audiobook.formats.parts import parse_skip
from tutti.audiobook.jobs import AudiobookJob, JobState
from tutti.audiobook.jobs.job import ENDED, RunningJob
from tutti.server.errors import rename_param
from tutti.server.schemas import Lexicon, LexiconIds, Name, Options, PauseFields, SpeechFields, at_most

# Fields of a body that a job has under the same name.
SAME_NAMES = ("captions", "captions_by_word", "title", "author", "year", "series", "narrator", "loudness", "encoding",
              "keep")  # fmt: skip


class BookPauses(PauseFields):
    """Silence of some lengths, also between chapters."""

    chapter: float | None = Field(None, description="up to 10000; default: 1500")


class BookFields(Options):
    """The book, and how its files are written."""

    text: str | None = Field(None, description="the text as Markdown; or send a book as `file` in a form")
    format: Name | None = Field(None, description=f"{' '.join(s[1:] for s in CONTAINERS)}; default: m4b")
    captions: Literal["srt", "vtt", "json"] | None = Field(None, description="also make captions")
    captions_by_word: bool | None = Field(None, description="time each word in vtt")
    title: str | None = Field(None, max_length=1000, description="instead of the book's own")
    author: str | None = Field(None, max_length=1000, description="instead of the book's own")
    year: Annotated[str, Field(pattern=r"^\d{4}$")] | None = Field(None, description="instead of the book's own")
    series: str | None = Field(None, max_length=500, description="with the number", examples=["The Winters #2"])
    narrator: str | None = Field(None, max_length=500, description="in the tags; default: the name of the voice")
    loudness: Name | None = Field(
        None, description=f"{' '.join(PRESETS)}, or LUFS; default: as spoken", examples=["acx"]
    )
    skip: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="parts that are not read, with commas between them", examples=["copyright,notes"]
    )
    encoding: Name | None = Field(None, description="of a text that is not UTF-8", examples=["latin-1"])
    keep: bool | None = Field(None, description="what was spoken, so that a correction speaks only what differs")

    def job_fields(self) -> dict[str, Any]:
        """Return those that are set, as fields of a job; raise InvalidInput for a wrong one."""
        if self.loudness:
            parse_loudness(self.loudness)
        fields: dict[str, Any] = {name: getattr(self, name) for name in SAME_NAMES}
        if self.skip is not None:
            fields["skip"] = tuple(sorted(parse_skip(self.skip)))
        if self.format is not None:
            with rename_param(out="format"):
                fields["suffix"] = container(f".{self.format.lower()}").suffix
        return {name: value for name, value in fields.items() if value is not None}


class JobBody(SpeechFields, BookFields):
    """POST /v1/jobs, as JSON or as fields of a form."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "# One\n\nIt began to fall.", "voice": "bm_george", "format": "m4b"}]}
    )

    cast: Annotated[dict[str, Any], at_most(MAX_SPEAKERS)] | None = Field(
        None,
        description="which voice, or {voice, rate}, speaks the turns (`Anna: …`) and quotes of whom",
        examples=[{"Anna": "af_heart"}],
    )
    pauses: BookPauses | None = Field(
        None, description="beside what the voice pauses by itself", examples=[{"paragraph": 500, "chapter": 2000}]
    )


class CorrectionBody(BookFields):
    """POST /v1/jobs/{id}/again, as JSON or as fields of a form: what changes."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lexicon": {"Kira": "keera"}}]})

    lexicon: Lexicon | None = Field(None, description="entries that are added to those of the job, or replace them")
    lexicon_id: LexiconIds | None = Field(None, description="the entries of stored lexicons, as they are now")


class JobProgress(BaseModel):
    fraction: float
    characters: int
    of_characters: int
    passages: int = Field(description="parts of a few sentences that are done")
    of_passages: int
    spoken_s: float = Field(description="seconds of audio made so far")
    left_s: float | None = Field(description="estimated seconds until the job is done")
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
    cover: bool = Field(description="whether GET …/cover has one, once the job is done")
    keep: bool = Field(description="whether a correction speaks only what differs")
    progress: JobProgress | None = Field(description="while the job is queued or running")
    error: JobFault | None = Field(description="why the job was paused or failed; POST …/resume continues it")
    notes: list[str] = Field(description="what was missing from the book, or was not spoken as written or not stored")


class JobList(BaseModel):
    object: Literal["list"] = "list"
    data: list[JobStatus]


class Deleted(BaseModel):
    id: str
    deleted: Literal[True] = True


def job_status(job: AudiobookJob, run: RunningJob | None) -> JobStatus:
    """Return the state of a job; `run` exists only while the job is running."""
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
        cover=job.has_cover,
        keep=job.keep,
        progress=None if job.state in ENDED else _job_progress(job, run),
        error=JobFault(code=job.error[0], message=job.error[1]) if job.error else None,
        notes=list(job.notes),
    )


def _job_progress(job: AudiobookJob, run: RunningJob | None) -> JobProgress:
    now = run.progress if run else None
    return JobProgress(
        fraction=round(now.n_characters / max(1, now.of_characters), 4) if now else 0.0,
        characters=now.n_characters if now else 0,
        of_characters=now.of_characters if now else job.n_characters,
        passages=now.n_passages if now else 0,
        of_passages=now.of_passages if now else 0,
        spoken_s=round(now.spoken_s, 3) if now else 0.0,
        left_s=_rounded(run.left_s(time.time()) if run else None),
        step="writing" if run and run.writing else "reading" if run else "waiting",
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
