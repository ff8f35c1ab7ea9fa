"""A job as it is stored, and the progress of a running one."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Literal

from tutti.audiobook.narrate import NarrationProgress
from tutti.captions import CaptionFormat
from tutti.speech import SpeechParams

JobState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]
ENDED: tuple[JobState, ...] = ("paused", "done", "failed", "cancelled")  # no further change without a request


@dataclass(frozen=True, slots=True)
class JobSpec:
    """How a caller wants a book to be read and written."""

    params: SpeechParams
    suffix: str  # of the audio file
    captions: CaptionFormat | None = None
    captions_by_word: bool = False
    encoding: str | None = None
    title: str | None = None
    author: str | None = None
    notes: tuple[str, ...] = ()  # on the request itself
    cast: tuple[str, ...] = ()  # names of speakers, whose voices are in `params`
    loudness: str | None = None  # as `parse_loudness` reads it
    skip: tuple[str, ...] = ()  # parts that are not read
    year: str = ""
    series: str = ""
    narrator: str = ""
    keep: bool = False  # what was spoken, for corrections


@dataclass(frozen=True, slots=True)
class AudiobookJob:
    """One book to be read for one caller."""

    id: str
    owner: str  # the API key that may see it, by name; "" if the server has no keys
    caller: str  # for the fair share of the device
    created_s: float  # seconds since 1970
    name: str  # of the stored book file
    encoding: str | None
    suffix: str  # of the audio file
    captions: CaptionFormat | None
    captions_by_word: bool
    params: SpeechParams
    title: str
    author: str
    n_chapters: int
    n_characters: int
    notes: tuple[str, ...] = ()
    state: JobState = "queued"
    error: tuple[str, str] | None = None  # code and message
    duration_s: float | None = None
    cast: tuple[str, ...] = ()  # names of speakers, whose voices are in `params`
    loudness: str | None = None  # as the caller wrote it
    skip: tuple[str, ...] = ()  # parts that are not read
    year: str = ""  # these three, if they are not the book's own
    series: str = ""
    narrator: str = ""
    has_cover: bool = False  # known when it is done
    keep: bool = False  # what was spoken stays when it is done, so that a correction speaks only what differs

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "AudiobookJob":
        fields: dict[str, Any] = json.loads(text)
        if "voicing" in fields:  # older versions: another key, and `names` for `voice_names`
            fields["params"] = fields.pop("voicing")
            fields["params"]["voice_names"] = fields["params"].pop("names")
        fields["params"] = SpeechParams(**fields["params"])
        for name in ("notes", "cast", "skip"):
            fields[name] = tuple(fields.get(name, ()))
        fields["error"] = tuple(fields["error"]) if fields["error"] else None
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Correction:
    """What changes in a job that has ended."""

    fields: Mapping[str, Any]  # of the job, by name
    lexicon: Mapping[str, str]  # entries that are added to its own, or replace them
    book: BinaryIO | None = None  # in place of the stored one
    name: str = ""  # of its file


@dataclass(slots=True)
class RunningJob:
    """How far a running job is, and when it will be done."""

    started_s: float  # seconds since 1970: other servers read it, too
    progress: NarrationProgress | None = None
    ends_s: float | None = None  # seconds since 1970, as estimated
    writing: bool = False  # everything is spoken, the files are being written

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "RunningJob":
        fields: dict[str, Any] = json.loads(text)
        fields.pop("initial", None)  # of servers of earlier versions
        fields["progress"] = NarrationProgress(**fields["progress"]) if fields["progress"] else None
        return cls(**fields)

    def left_s(self, now_s: float) -> float | None:
        """The remaining seconds, as far as they can be estimated."""
        return None if self.ends_s is None else max(0.0, self.ends_s - now_s)
