"""The audio formats as data: names, media types, file suffixes, sample rates."""

from dataclasses import dataclass
from pathlib import PurePath

from tutti.errors import InvalidInput, UnknownFormat, did_you_mean
from tutti.speech import SAMPLE_RATE

ALL_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
OPUS_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)  # libopus supports no others


@dataclass(frozen=True, slots=True)
class Format:
    """One audio format."""

    name: str
    media_type: str
    suffixes: tuple[str, ...]  # the first is for files that tutti names itself
    streaming: str  # layout of the bytes when the length is not known yet
    sample_rates: tuple[int, ...] = ALL_RATES
    default_rate: int = SAMPLE_RATE
    headerless: bool = False  # the bytes do not contain their rate, so the content type does

    def content_type(self, sample_rate: int) -> str:
        return f"{self.media_type};rate={sample_rate};channels=1" if self.headerless else self.media_type

    def rate(self, requested: int | None) -> int:
        """The requested rate, or the default; raise InvalidInput if this format does not support it."""
        if requested is None:
            return self.default_rate
        if requested not in self.sample_rates:
            allowed = ", ".join(str(rate) for rate in self.sample_rates)
            message = f"{self.name} does not support {requested} samples a second; use {allowed}"
            raise InvalidInput(message, param="sample_rate")
        return requested


FORMATS = {
    format.name: format
    for format in (
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

BY_SUFFIX = {suffix: format for format in FORMATS.values() for suffix in format.suffixes}


def find_format(name: str) -> Format:
    """The format of this name."""
    format = FORMATS.get(name.lower())
    if format is None:
        hint = did_you_mean(name, FORMATS)
        raise UnknownFormat(
            f"unknown audio format {name!r}{hint or ';'} choose from {', '.join(FORMATS)}", param="format"
        )
    return format


def format_of_file(path: str | PurePath) -> Format:
    """The format of a file's suffix."""
    suffix = PurePath(path).suffix.lower()
    if format := BY_SUFFIX.get(suffix):
        return format
    if suffix in (".m4a", ".mp4"):
        raise UnknownFormat(
            f"{suffix} needs its index written last, so it cannot be streamed; use .aac, or run: tutti read",
            param="format",
        )
    hint = did_you_mean(suffix, BY_SUFFIX)
    problem = f"suffix {suffix!r} of {str(path)!r} names no audio format" if suffix else f"{str(path)!r} has no suffix"
    raise UnknownFormat(f"{problem}{hint or ';'} use one of {', '.join(BY_SUFFIX)}", param="format")
