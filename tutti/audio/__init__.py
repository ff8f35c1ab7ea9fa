"""Samples to bytes: resampling and the eight formats. A codec is loaded only when it is used."""

from tutti.audio.encoder import PCM_FORMATS, Encoder, encoder, true_header
from tutti.audio.formats import FORMATS, Format, find_format, format_of_file
from tutti.audio.resample import Resampler, resampler

__all__ = ["FORMATS", "PCM_FORMATS", "Encoder", "Format", "Resampler", "encoder", "find_format", "format_of_file",
           "resampler", "true_header"]  # fmt: skip
