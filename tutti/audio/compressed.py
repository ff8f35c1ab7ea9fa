"""The formats that need a codec. FFmpeg's encoders make the frames; the framing around them is written here, so that
every byte leaves as soon as its frame is full and none waits in a container's buffer."""

import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import av
import numpy as np
from numpy.typing import NDArray

from tutti.audio.ogg import FIRST, LAST, OggStream
from tutti.audio.pcm import to_int16
from tutti.speech import Samples

OPUS_RATE = 48_000  # granule positions of Ogg Opus count at this rate for any input
OPUS_BIT_RATE = 48_000  # bits per second
# Of ten, for mp3 and opus; higher is slower. 5 halves the processor time at the same distance from the original.
COMPRESSION_LEVEL = "5"
ADTS_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000)
ADTS_HEADER_BYTES = 7
MAX_FLAC_SAMPLES = (1 << 36) - 1
SAMPLE_FORMAT = {"libmp3lame": "fltp", "aac": "fltp", "libopus": "flt", "flac": "s16"}

Audio = NDArray[np.float32] | NDArray[np.int16]


def bit_rate(sample_rate: int) -> int:
    """For mp3 and aac: transparent for one voice, and allowed at every sample rate of both."""
    if sample_rate < 16_000:
        return 32_000
    return 64_000 if sample_rate == 16_000 else 96_000


@contextmanager
def single_cpu_affinity() -> Iterator[None]:
    """Let FFmpeg count one CPU. PyAV puts a filter graph before each encoder, which would otherwise start one idle
    thread for each CPU and stream: thousands on a large server."""
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)  # of the calling thread alone
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


class FrameEncoder:
    """One FFmpeg encoder, fed with frames of exactly its size: the output does not depend on the input's chunks."""

    def __init__(self, name: str, sample_rate: int, *, bit_rate: int | None = None, **options: str) -> None:
        context = av.CodecContext.create(name, "w")
        assert isinstance(context, av.AudioCodecContext)
        context.sample_rate = sample_rate
        context.layout = "mono"
        context.format = SAMPLE_FORMAT[name]
        if bit_rate is not None:
            context.bit_rate = bit_rate
        context.options = options
        context.open()
        self.frame_size = context.frame_size
        self.header = bytes(context.extradata or b"")
        self.n_samples = 0  # of input so far
        self._context = context
        self._started = False
        self._pending: Audio = np.zeros(0, np.int16) if name == "flac" else np.zeros(0, np.float32)

    def encode(self, samples: Audio) -> list[bytes]:
        """The packets that these samples complete."""
        self.n_samples += len(samples)
        pending: Audio = np.concatenate([self._pending, samples])
        n_whole = len(pending) - len(pending) % self.frame_size
        self._pending = pending[n_whole:].copy()
        frames = pending[:n_whole].reshape(-1, self.frame_size)
        return [packet for frame in frames for packet in self._send(frame)]

    def silence(self, n_samples: int) -> list[bytes]:
        """The packets that this much silence completes."""
        return self.encode(np.zeros(n_samples, self._pending.dtype))

    def drain(self) -> list[bytes]:
        """The packets still inside; the last frame may be a short one."""
        last = self._send(self._pending) if len(self._pending) else []
        return last + [bytes(packet) for packet in self._context.encode(None)]

    def _send(self, samples: Audio) -> list[bytes]:
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format=self._context.format.name, layout="mono")
        frame.sample_rate = self._context.sample_rate
        with nullcontext() if self._started else single_cpu_affinity():
            self._started = True
            return [bytes(packet) for packet in self._context.encode(frame)]


class Mp3:
    """Frames of a constant bit rate without tags, so that streams can be concatenated."""

    def __init__(self, sample_rate: int) -> None:
        self._frames = FrameEncoder(
            "libmp3lame", sample_rate, bit_rate=bit_rate(sample_rate), compression_level=COMPRESSION_LEVEL
        )

    def encode(self, samples: Samples) -> bytes:
        return b"".join(self._frames.encode(samples))

    def flush(self) -> bytes:
        return b"".join(finish_lossy(self._frames))


class Aac:
    """AAC-LC, each frame after its ADTS header."""

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._frames = FrameEncoder("aac", sample_rate, bit_rate=bit_rate(sample_rate))

    def encode(self, samples: Samples) -> bytes:
        return self._adts(self._frames.encode(samples))

    def flush(self) -> bytes:
        return self._adts(finish_lossy(self._frames))

    def _adts(self, packets: list[bytes]) -> bytes:
        return b"".join(adts_header(self._sample_rate, len(packet)) + packet for packet in packets)


def finish_lossy(frames: FrameEncoder) -> list[bytes]:
    """The packets to the end of the speech; for an empty one a frame of silence, since an empty file is not valid."""
    n_short = -frames.n_samples % frames.frame_size if frames.n_samples else frames.frame_size
    return frames.silence(n_short) + frames.drain()


def adts_header(sample_rate: int, packet_bytes: int) -> bytes:
    """The seven bytes before an AAC-LC mono frame (ISO 14496-3, 1.A.2)."""
    head = 0xFFF1  # sync word, MPEG-4, no checksum
    head = head << 2 | 1  # low complexity
    head = head << 4 | ADTS_RATES.index(sample_rate)
    head = head << 4 | 1  # private bit 0; one channel
    head = head << 17 | packet_bytes + ADTS_HEADER_BYTES  # four flags 0; 13 bits of length
    head = head << 13 | 0x7FF << 2  # buffer fullness: variable rate; one block
    return head.to_bytes(ADTS_HEADER_BYTES)


class Flac:
    """The STREAMINFO block, with the length if it is known, then frames."""

    def __init__(self, sample_rate: int, n_samples: int | None) -> None:
        self._frames = FrameEncoder("flac", sample_rate)
        self._header = flac_header(self._frames.header, n_samples)

    def encode(self, samples: Samples) -> bytes:
        return self._take_header() + b"".join(self._frames.encode(to_int16(samples)))

    def flush(self) -> bytes:
        return self._take_header() + b"".join(self._frames.drain())

    def _take_header(self) -> bytes:
        header, self._header = self._header, b""
        return header


def flac_header(stream_info: bytes, n_samples: int | None) -> bytes:
    """The bytes before the first frame; a length of 0 and a checksum of zeros mean "unknown"."""
    n_known = n_samples if n_samples is not None and n_samples <= MAX_FLAC_SAMPLES else 0
    fields = int.from_bytes(stream_info[10:18])  # rate, channels, bits, and the length in the last 36 bits
    fields = fields & ~MAX_FLAC_SAMPLES | n_known
    body = stream_info[:10] + fields.to_bytes(8) + bytes(16)
    return b"fLaC" + (0x80 << 24 | len(body)).to_bytes(4) + body  # the only block, of type 0


class Opus:
    """Ogg Opus (RFC 7845): one page for each 20 ms, and granule positions that give the exact length."""

    def __init__(self, sample_rate: int) -> None:
        self._frames = FrameEncoder(
            *("libopus", sample_rate), bit_rate=OPUS_BIT_RATE, application="audio", frame_duration="20", vbr="on",
            compression_level=COMPRESSION_LEVEL,
        )  # fmt: skip
        (self._pre_skip,) = struct.unpack_from("<H", self._frames.header, 10)  # samples at 48 kHz that a decoder drops
        self._scale = OPUS_RATE // sample_rate
        self._granule = 0
        self._ogg = OggStream()
        vendor = b"tutti"
        tags = b"OpusTags" + struct.pack("<I", len(vendor)) + vendor + struct.pack("<I", 0)
        self._header = self._ogg.page(self._frames.header, granule=0, flags=FIRST) + self._ogg.page(tags, granule=0)

    def encode(self, samples: Samples) -> bytes:
        header, self._header = self._header, b""
        return header + b"".join(self._page(packet) for packet in self._frames.encode(samples))

    def flush(self) -> bytes:
        # The pre-skip moves the end of the speech past the last full frame, so at least one packet is still to come,
        # and pages need not be delayed to find out which is the last.
        end = self._pre_skip + self._frames.n_samples * self._scale
        n_missing = -end % (self._frames.frame_size * self._scale) + self._pre_skip
        *packets, last = self._frames.silence(-(-n_missing // self._scale))
        header, self._header = self._header, b""
        pages = b"".join(self._page(packet) for packet in packets)
        return header + pages + self._ogg.page(last, granule=end, flags=LAST)

    def _page(self, packet: bytes) -> bytes:
        self._granule += self._frames.frame_size * self._scale
        return self._ogg.page(packet, granule=self._granule)
