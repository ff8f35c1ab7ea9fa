"""Audio files with chapters, a cover and tags, written by FFmpeg's muxers and encoders."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, BinaryIO, Literal, Protocol

import numpy as np

from tutti.audio.encoder import encoder
from tutti.audio.formats import BY_SUFFIX
from tutti.audio.loudness import Finisher
from tutti.audio.pcm import to_int16
from tutti.errors import ModelFailed, UnknownFormat, did_you_mean
from tutti.speech import SAMPLE_RATE, Samples

MS = Fraction(1, 1000)
ImageKind = Literal["jpeg", "png"]


@dataclass(frozen=True, slots=True)
class ChapterMark:
    """A chapter: its title, start and end."""

    title: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class CoverImage:
    """The bytes of a cover image; it is never decoded."""

    data: bytes
    kind: ImageKind
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Tags:
    """Title, author and more of a book, chapters and cover."""

    title: str = ""
    author: str = ""
    marks: Sequence[ChapterMark] = ()
    cover: CoverImage | None = None
    year: str = ""
    series: str = ""
    number: str = ""  # in the series
    narrator: str = ""
    language: str = ""  # as in BCP 47


@dataclass(frozen=True, slots=True)
class Container:
    """A kind of file by its suffix, and whether it can hold chapters and a cover."""

    suffix: str
    media_type: str
    muxer: str = ""  # empty: our own encoder, without tags
    codec: str = ""
    chapters: bool = False
    cover: bool = False


CONTAINERS = {
    kind.suffix: kind
    for kind in (
        Container(".m4b", "audio/mp4", "mp4", "aac", chapters=True, cover=True),
        Container(".m4a", "audio/mp4", "mp4", "aac", chapters=True, cover=True),
        Container(".mp3", "audio/mpeg", "mp3", "libmp3lame", chapters=True, cover=True),
        Container(".opus", "audio/ogg", "opus", "libopus", chapters=True),
        Container(".ogg", "audio/ogg", "opus", "libopus", chapters=True),
        Container(".flac", "audio/flac", "flac", "flac", chapters=True, cover=True),
        *(
            Container(suffix, format.media_type)
            for suffix, format in BY_SUFFIX.items()
            if suffix not in (".mp3", ".opus", ".ogg", ".flac")
        ),
    )
}
# ISO 639-2, as files want it, by ISO 639-1.
LANGUAGES = {
    "ar": "ara", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "fi": "fin", "fr": "fra",
    "he": "heb", "hi": "hin", "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld", "no": "nor",
    "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sv": "swe", "th": "tha", "tr": "tur", "uk": "ukr", "vi": "vie",
    "zh": "zho",
}  # fmt: skip
BIT_RATE = 64_000  # of one voice
SAMPLE_FORMAT = {"aac": "fltp", "libmp3lame": "fltp", "libopus": "flt", "flac": "s16"}


def container(suffix: str) -> Container:
    """The container of a file suffix."""
    kind = CONTAINERS.get(suffix.lower())
    if kind is None:
        hint = did_you_mean(suffix, CONTAINERS) or ";"
        raise UnknownFormat(
            f"{suffix or 'no suffix'!r} names no audio file{hint} use {' '.join(CONTAINERS)}", param="out"
        )
    return kind


class Writer(Protocol):
    """Takes samples at 24 kHz in order; `close` ends the file."""

    def write(self, samples: Samples) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Release a file that will not be finished."""


def file_tags(kind: Container, tags: Tags) -> dict[str, str]:
    """The tags of a file by FFmpeg's names; the narrator is the composer, which is where players look for one."""
    with_number = f"{tags.series} #{tags.number}" if tags.series and tags.number else tags.series
    every = {
        "title": tags.title, "album": tags.title, "artist": tags.author, "album_artist": tags.author,
        "composer": tags.narrator, "genre": "Audiobook", "date": tags.year, "grouping": with_number,
    }  # fmt: skip
    if kind.muxer == "mp4":  # which has a fixed list of names
        every |= {"show": tags.series, "episode_id": tags.number}
    else:
        language = LANGUAGES.get(tags.language[:2].lower(), "")
        every |= {"series": tags.series, "series-part": tags.number, "language": language}
    return {key: text for key, text in every.items() if text}


def writer(kind: Container, file: BinaryIO, tags: Tags, n_samples: int) -> Writer:
    """A writer for one file of `n_samples` in all; tags that the container cannot hold are left out."""
    return MuxedWriter(kind, file, tags) if kind.muxer else PlainWriter(kind, file, n_samples)


class FinishingWriter:
    """Brings what another writer writes to a loudness."""

    def __init__(self, out: Writer, finisher: Finisher) -> None:
        self._out, self._finisher = out, finisher

    def write(self, samples: Samples) -> None:
        self._out.write(self._finisher.write(samples))

    def close(self) -> None:
        self._out.write(self._finisher.flush())
        self._out.close()

    def abandon(self) -> None:
        self._out.abandon()


class PlainWriter:
    """Writes audio without tags."""

    def __init__(self, kind: Container, file: BinaryIO, n_samples: int) -> None:
        name = BY_SUFFIX[kind.suffix].name
        self._encoder = encoder(name, n_samples=n_samples)
        self._file = _ErrorRecorder(file)

    def write(self, samples: Samples) -> None:
        self._file.write(self._encoder.encode(samples))

    def close(self) -> None:
        self._file.write(self._encoder.flush())

    def abandon(self) -> None:
        pass


class MuxedWriter:
    """Writes audio, chapters, tags and a cover."""

    def __init__(self, kind: Container, file: BinaryIO, tags: Tags) -> None:
        import av

        self._av = av
        self._file = _ErrorRecorder(file)
        self._format = SAMPLE_FORMAT[kind.codec]
        self._n_samples = 0
        brand = {"brand": f"{kind.suffix[1:].upper()} ", "movflags": "+faststart"}
        self._out = av.open(self._file, "w", format=kind.muxer, options=brand if kind.muxer == "mp4" else {})
        self._out.metadata.update(file_tags(kind, tags))
        stream = self._out.add_stream(kind.codec, rate=SAMPLE_RATE)
        assert isinstance(stream, av.AudioStream)
        self._stream = stream
        if language := LANGUAGES.get(tags.language[:2].lower()):
            self._stream.metadata["language"] = language
        self._stream.layout, self._stream.format = "mono", self._format
        if kind.codec != "flac":
            self._stream.bit_rate = BIT_RATE
        if kind.codec in ("libopus", "flac"):
            # FFmpeg's own chapters are a second late here where the fraction of a second is a half or more.
            self._out.metadata.update(pair for n, mark in enumerate(tags.marks) for pair in _comments(n, mark))
        else:
            self._out.set_chapters([_chapter(n, mark) for n, mark in enumerate(tags.marks)])
        if kind.cover and tags.cover:
            self._mux([self._cover_packet(tags.cover)])

    def write(self, samples: Samples) -> None:
        if not np.isfinite(samples).all():
            raise ModelFailed("the model made samples that are not finite; no audio can be written from them")
        if not len(samples):
            return
        clipped = np.clip(samples, -1, 1)
        data = to_int16(clipped) if self._format == "s16" else clipped
        frame = self._av.AudioFrame.from_ndarray(data.reshape(1, -1), format=self._format, layout="mono")
        frame.sample_rate = SAMPLE_RATE
        frame.pts = self._n_samples
        frame.time_base = Fraction(1, SAMPLE_RATE)
        from tutti.audio.compressed import single_cpu_affinity

        first = self._n_samples == 0
        self._n_samples += len(samples)
        with single_cpu_affinity() if first else nullcontext():
            self._mux(self._stream.encode(frame))

    def close(self) -> None:
        try:
            self._mux(self._stream.encode(None))
            self._out.close()
        except self._av.FFmpegError as exc:
            raise self._file.error or exc from None

    def abandon(self) -> None:
        with suppress(self._av.FFmpegError, OSError):
            self._out.close()

    def _mux(self, packets: Sequence[Any]) -> None:
        try:
            for packet in packets:
                self._out.mux(packet)
        except self._av.FFmpegError as exc:
            raise self._file.error or exc from None

    def _cover_packet(self, cover: CoverImage) -> Any:
        """The cover as a video stream of one frame, whose bytes are copied without decoding."""
        from av.stream import Disposition

        stream = self._out.add_stream("mjpeg" if cover.kind == "jpeg" else "png", rate=1)
        stream.width, stream.height = cover.width, cover.height
        stream.pix_fmt = "yuvj420p" if cover.kind == "jpeg" else "rgb24"
        stream.disposition = Disposition.attached_pic.value  # type: ignore[assignment]
        stream.metadata["comment"] = "Cover (front)"
        packet = self._av.Packet(cover.data)
        packet.stream, packet.pts, packet.dts, packet.time_base = stream, 0, 0, MS
        return packet


class _ErrorRecorder:
    """A file for FFmpeg that records the OSError of a failed write, which FFmpeg does not report."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.name = str(getattr(file, "name", ""))
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            rest = memoryview(data)
            while rest:  # an unbuffered file may write less than requested
                rest = rest[self._file.write(rest) :]
        except OSError as exc:
            self.error = exc
            raise
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _chapter(n: int, mark: ChapterMark) -> Any:
    start, end = round(1000 * mark.start_s), round(1000 * mark.end_s)
    return {"id": n, "start": start, "end": end, "time_base": MS, "metadata": {"title": mark.title}}


def _comments(n: int, mark: ChapterMark) -> Iterator[tuple[str, str]]:
    """The mark as Vorbis comments."""
    ms = round(1000 * mark.start_s)
    clock = f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
    yield f"CHAPTER{n:03}", clock
    yield f"CHAPTER{n:03}NAME", mark.title
