"""The package tutti-tts-model: the official files, for machines that reach no hub. `scripts.model_wheel` builds it."""

from importlib.util import find_spec
from pathlib import Path

NAME = "tutti_tts_model"


def model_package() -> Path | None:
    """The folder with its files; none if it is not installed."""
    spec = find_spec(NAME)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent
