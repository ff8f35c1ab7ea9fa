"""What to say and how: one value, from which the body of a request and the name in the cache are made."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TypedDict

from tutti.errors import InvalidInput

STREAMED_FROM = 50  # characters; longer texts are asked for as a stream


class Wishes(TypedDict, total=False):
    """What every call may say about the sound. What is left out is the server's choice."""

    voice: str
    format: str
    speed: float
    language: str
    style: str
    sample_rate: int
    seed: int
    model: str
    volume: float
    instructions: str
    optimize_for_latency: bool
    use_gpu: bool


NAMES = {"format": "response_format", "volume": "volume_multiplier"}  # where the wire has another word
ALIKE = ("optimize_for_latency", "use_gpu")  # change how it is made, not how it sounds


@dataclass(frozen=True, slots=True)
class Wish:
    """One text and how it shall be spoken."""

    text: str
    format: str
    wishes: tuple[tuple[str, object], ...]
    events: bool = False  # asks for word times, so the audio comes inside of events

    def body(self, *, whole: bool) -> dict[str, object]:
        """The request as OpenAI shapes it."""
        made: dict[str, object] = {"model": "kokoro", "input": self.text, "response_format": self.format}
        made |= {NAMES.get(name, name): value for name, value in self.wishes}
        if whole:
            made["stream"] = False
        if self.events:
            made |= {"stream_format": "sse", "word_timestamps": True}
        return made

    def key(self, server: str) -> str:
        """The same for the same words in the same voice from the same server."""
        told = [(name, value) for name, value in self.wishes if name not in ALIKE]
        wish = json.dumps([1, server, self.text, self.format, self.events, told], sort_keys=True)
        return sha256(wish.encode("utf-8", "surrogatepass")).hexdigest()


def wish(text: str, wishes: Wishes, *, format: str, voice: str | None, events: bool = False) -> Wish:
    if not text or text.isspace():
        raise InvalidInput("the text is empty", param="text")
    asked = {"voice": voice, **wishes}
    chosen = str(asked.pop("format", None) or format)
    return Wish(
        text, chosen, tuple(sorted((name, value) for name, value in asked.items() if value is not None)), events
    )
