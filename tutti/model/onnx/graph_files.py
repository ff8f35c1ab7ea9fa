"""Our own graphs as files, written at first use: building one takes time and memory."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from filelock import FileLock

from tutti.model.light import weights
from tutti.model.light.weights import Weights
from tutti.model.onnx.graph import FORMAT
from tutti.model.onnx.split import write_graph


def written_graph(folder: Path, name: str, source: bytes, build: Callable[[], bytes]) -> Path:
    """The graph with this name, made of this source and the file next to it; those of older sources are deleted."""
    path = folder / f"{name}-{sha256(FORMAT + source).hexdigest()[:16]}.onnx"
    if not path.exists():
        with FileLock(folder / f"{name}.lock"):
            if not path.exists():
                write_graph(build(), path)
                for older in set(folder.glob(f"{name}-*.onnx")) - {path}:
                    older.unlink()
    return path


def packaged_graph(folder: Path, name: str, source: Path, build: Callable[[Weights], bytes]) -> Path:
    """The graph of weights that are a file of the package."""
    key = source.read_bytes() + weights.RANGES_PATH.read_bytes()
    return written_graph(folder, name, key, lambda: build(weights.read(source)))
