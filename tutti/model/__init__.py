"""Kokoro as two stages: `acoustic` (tokens to frames) and `vocoder` (frames to samples)."""

import platform
from pathlib import Path
from typing import Literal

from tutti.speech import Model

Precision = Literal["fp32", "int8"]


def resolve(precision: Literal["auto", "fp32", "int8"]) -> Precision:
    """What `auto` means here: int8 where the processor multiplies bytes quickly in ONNX Runtime, else fp32.

    On x86-64 int8 takes about as long as fp32, so the exact numbers cost nothing there.
    """
    if precision != "auto":
        return precision
    return "int8" if platform.machine() in ("aarch64", "arm64") and _has_dot_product() else "fp32"


def load(official: Path, precision: Precision, threads: int) -> Model:
    """The official graph, ready to speak on this machine's processor."""
    from tutti.model.onnx_model import OnnxModel

    return OnnxModel(official, precision, threads)


def _has_dot_product() -> bool:
    if platform.system() == "Darwin":
        return True
    try:
        return "asimddp" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
