"""One speech request: its text and options, the JSON body made of them, and its key in the cache."""

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, TypedDict

from tutti.client.options import check_names
from tutti.errors import InvalidInput

TimeKind = Literal["word", "phoneme", "viseme"]
STREAM_ABOVE = 50  # characters; `speak` fetches longer texts as a stream


class SpeechOptions(TypedDict, total=False):
    """How a text is spoken, for every call. The server decides what is left out."""

    voice: str
    format: str
    speed: float
    pitch: float
    pitch_range: float
    energy: float
    emotion: str
    language: str
    lexicon: dict[str, str]
    lexicon_id: str | list[str]
    code_blocks: str
    normalization_options: dict[str, bool]
    pauses: dict[str, float]
    style: str
    sample_rate: int
    seed: int
    model: str
    volume: float
    instructions: str
    optimize_for_latency: bool
    use_gpu: bool


Wishes = SpeechOptions  # the public name of earlier versions
WIRE_NAMES = {"format": "response_format", "volume": "volume_multiplier"}  # options with another name in the JSON body
INAUDIBLE = ("optimize_for_latency", "use_gpu")  # options that do not change the audio: no part of the cache key


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One text and how it is spoken."""

    text: str
    format: str
    options: tuple[tuple[str, object], ...]  # sorted by name
    times: frozenset[TimeKind] = frozenset()  # wanted, so the audio arrives inside server-sent events

    def body(self, *, stream: bool) -> dict[str, object]:
        """Return the JSON body for OpenAI's speech route."""
        body: dict[str, object] = {"model": "kokoro", "input": self.text, "response_format": self.format}
        body |= wire_options(dict(self.options))
        if not stream:
            body["stream"] = False
        if self.times:
            body |= {"stream_format": "sse", **wire_times(self.times)}
        return body

    def key(self, server: str) -> str:
        """Return the cache key: equal for equal text, audible options and server."""
        audible = [(name, value) for name, value in self.options if name not in INAUDIBLE]
        parts = [2, server, self.text, self.format, sorted(self.times), audible]  # 2: version of the key
        return sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def check_options(options: Mapping[str, object], *named: str) -> None:
    """Raise TypeError for an option that is none of SpeechOptions; `named`: further arguments of the call."""
    check_names(options, SpeechOptions.__annotations__, named)


def check_text(text: object) -> None:
    if not isinstance(text, str):
        kind = "None" if text is None else type(text).__name__
        raise InvalidInput(f"the text must be a string, not {kind}", param="text")


def build_request(
    text: str, options: SpeechOptions, *, format: str, voice: str | None, times: Set[TimeKind] = frozenset()
) -> ClientRequest:
    """Check text and options, and fill in the client's default format and voice."""
    check_options(options, "stream", "deadline_s", "words", "timestamps")
    check_text(text)
    if not text or text.isspace():
        raise InvalidInput("the text is empty", param="text")
    merged = {"voice": voice, **options}
    format = str(merged.pop("format", None) or format)
    audible = sorted((name, value) for name, value in merged.items() if value is not None)
    return ClientRequest(text, format, tuple(audible), frozenset(times))


def wire_times(times: Set[TimeKind]) -> dict[str, object]:
    """Return the options that ask for these times; only those of words are known to earlier servers."""
    others = {"timestamps": sorted(times)} if times - {"word"} else {}
    return {"word_timestamps": "word" in times, **others}


def wire_options(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options that are set, under the names the server knows them by."""
    return {WIRE_NAMES.get(name, name): value for name, value in options.items() if value is not None}
