"""A recording of a speaker, from a file in any format that FFmpeg reads."""

from pathlib import Path

import av
import numpy as np

from tutti.errors import InvalidInput
from tutti.speech import SAMPLE_RATE, Samples

MIN_CLIP_S, MAX_CLIP_S = 3, 30


def read_clip(path: Path) -> Samples:
    """Return the samples of a clip, at 24 kHz; raise InvalidInput if it is no speech of 3 to 30 s."""
    samples = _decode(path)
    length_s = len(samples) / SAMPLE_RATE
    if length_s < MIN_CLIP_S:
        raise InvalidInput(f"{path} has {length_s:.1f} s; record at least {MIN_CLIP_S} s of one speaker", param="clip")
    if length_s > MAX_CLIP_S:
        cure = f"cut it: ffmpeg -i {path.name} -t {MAX_CLIP_S // 2} short.wav"
        raise InvalidInput(f"{path} has more than {MAX_CLIP_S} s; {cure}", param="clip")
    if not samples.any():
        raise InvalidInput(f"{path} is silent; record a speaker", param="clip")
    return samples


def _decode(path: Path) -> Samples:
    """Return the samples of the first stream, to little more than the longest clip."""
    resampler = av.AudioResampler("fltp", "mono", SAMPLE_RATE)
    parts: list[Samples] = []
    try:
        with av.open(str(path)) as file:
            for frame in file.decode(audio=0):
                parts += [part.to_ndarray()[0] for part in resampler.resample(frame)]
                if sum(map(len, parts)) > MAX_CLIP_S * SAMPLE_RATE:
                    break
            else:
                parts += [part.to_ndarray()[0] for part in resampler.resample(None)]
    except (av.FFmpegError, OSError, IndexError) as exc:
        raise InvalidInput(f"cannot read {path} as audio; give a WAV, FLAC or MP3 file", param="clip") from exc
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)
