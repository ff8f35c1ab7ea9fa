"""The formats tutti speaks, as data: names, media types, file suffixes, sample rates."""

from dataclasses import dataclass
from pathlib import PurePath

from tutti.errors import InvalidInput, UnknownFormat, did_you_mean
from tutti.speech import SAMPLE_RATE

ALL_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
OPUS_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)  # libopus knows no others


@dataclass(frozen=True, slots=True)
class Format:
    """What a client may ask for, and what it will get."""

    name: str
    media_type: str
    suffixes: tuple[str, ...]  # the first is the one tutti gives its own files
    streaming: str  # how the bytes look while the length is not known yet
    sample_rates: tuple[int, ...] = ALL_RATES
    default_rate: int = SAMPLE_RATE
    headerless: bool = False  # the bytes do not say their rate, so the content type must

    def content_type(self, sample_rate: int) -> str:
        return f"{self.media_type};rate={sample_rate};channels=1" if self.headerless else self.media_type

    def rate(self, asked: int | None) -> int:
        """The rate to write: the one asked for if this format can hold it, else an error that lists those it can."""
        if asked is None:
            return self.default_rate
        if asked not in self.sample_rates:
            allowed = ", ".join(str(rate) for rate in self.sample_rates)
            raise InvalidInput(f"{self.name} cannot have {asked} samples a second; use {allowed}", param="sample_rate")
        return asked


FORMATS = {
    each.name: each
    for each in (
        Format("mp3", "audio/mpeg", (".mp3",), "frames of one bit rate, no tags"),
        Format("opus", "audio/ogg", (".opus", ".ogg"), "Ogg pages of 20 ms", OPUS_RATES),
        Format("aac", "audio/aac", (".aac",), "ADTS frames"),
        Format("flac", "audio/flac", (".flac",), "a header with no length, then frames"),
        Format("wav", "audio/wav", (".wav",), "one header with open sizes, then 16-bit samples"),
        Format("pcm", "audio/pcm", (".pcm", ".raw"), "bare 16-bit little-endian samples", headerless=True),
        Format("mulaw", "audio/PCMU", (".ulaw",), "bare bytes, one a sample", default_rate=8_000, headerless=True),
        Format("alaw", "audio/PCMA", (".alaw",), "bare bytes, one a sample", default_rate=8_000, headerless=True),
    )
}

BY_SUFFIX = {suffix: each for each in FORMATS.values() for suffix in each.suffixes}


def find_format(name: str) -> Format:
    """The format of this name."""
    found = FORMATS.get(name.lower())
    if found is None:
        hint = did_you_mean(name, FORMATS)
        raise UnknownFormat(
            f"unknown audio format {name!r}{hint or ';'} choose from {', '.join(FORMATS)}", param="format"
        )
    return found


def format_of_file(path: str | PurePath) -> Format:
    """The format that a file's suffix promises."""
    suffix = PurePath(path).suffix.lower()
    if found := BY_SUFFIX.get(suffix):
        return found
    if suffix in (".m4a", ".mp4"):
        raise UnknownFormat(
            f"{suffix} needs its index written last, so it cannot be streamed; use .aac", param="format"
        )
    hint = did_you_mean(suffix, BY_SUFFIX)
    seen = f"suffix {suffix!r} of {str(path)!r} names no audio format" if suffix else f"{str(path)!r} has no suffix"
    raise UnknownFormat(f"{seen}{hint or ';'} use one of {', '.join(BY_SUFFIX)}", param="format")
