"""A job as it is kept."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tutti.audiobook import Progress
from tutti.captions import CaptionFormat
from tutti.speech import SpeechParams

State = Literal["queued", "running", "paused", "done", "failed", "cancelled"]
ENDED: tuple[State, ...] = ("paused", "done", "failed", "cancelled")  # nothing more happens by itself


@dataclass(frozen=True, slots=True)
class Job:
    """One book to be read for one caller."""

    id: str
    owner: str  # who may see it: the name of an API key, "" where none are set
    caller: str  # who shares the device fairly with others
    created_s: float  # seconds since 1970
    name: str  # of the file that the book came in
    encoding: str | None
    suffix: str  # of the audio
    captions: CaptionFormat | None
    captions_by_word: bool
    params: SpeechParams
    title: str
    author: str
    n_chapters: int
    n_characters: int
    notes: tuple[str, ...] = ()
    state: State = "queued"
    error: tuple[str, str] | None = None  # code and message
    duration_s: float | None = None

    def dumped(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def loaded(cls, text: str) -> "Job":
        fields: dict[str, Any] = json.loads(text)
        fields["params"] = SpeechParams(**fields["params"])
        fields["notes"] = tuple(fields["notes"])
        fields["error"] = tuple(fields["error"]) if fields["error"] else None
        return cls(**fields)


@dataclass(slots=True)
class Run:
    """A job under way: how far it is, and how fast it came there."""

    started_s: float  # monotonic
    progress: Progress | None = None
    first: Progress | None = None  # when this run began
    writing: bool = False  # all is spoken

    def told(self, progress: Progress) -> None:
        self.first = self.first or progress
        self.progress = progress

    def left_s(self, now_s: float) -> float | None:
        """How long the rest will take, if it goes on as it has since this run began."""
        if self.progress is None or self.first is None:
            return None
        n_done = self.progress.n_characters - self.first.n_characters
        n_left = self.progress.of_characters - self.progress.n_characters
        return (now_s - self.started_s) / n_done * n_left if n_done else None
