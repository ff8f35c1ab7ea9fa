"""What a bulk run is made from: stored in its folder, and compared before a run is resumed."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tutti.errors import InvalidInput
from tutti.files import write_file

FILE = "bulk.json"
Manifest = dict[str, Any]


def load_manifest(folder: Path) -> Manifest | None:
    """The manifest of an earlier run; none for a new or empty folder. Raises for a folder of something else."""
    path = folder / FILE
    try:
        if not path.exists():
            if folder.exists() and any(entry.name != ".lock" for entry in folder.iterdir()):
                raise InvalidInput(f"{folder} is not empty and has no {FILE}; choose a new folder", param="out")
            return None
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"cannot read {path}: {exc}", param="out") from exc
    if not isinstance(manifest, dict):
        raise InvalidInput(f"{path} is not the manifest of a bulk run; choose a new folder", param="out")
    return manifest


def store_manifest(folder: Path, manifest: Manifest) -> None:
    write_file(folder / FILE, json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def check_same(folder: Path, stored: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise InvalidInput, with what differs, unless both would make the same bytes."""
    different = list(differences(stored, json.loads(json.dumps(now))))
    if different:
        message = f"{folder} was made from something else: {'; '.join(different)}. Choose a new folder, or delete it"
        raise InvalidInput(message, param="out")


def differences(then: Any, now: Any, name: str = "") -> Iterator[str]:
    """Each value that differs, by its path: "options.speed was 1.0 and is 1.2"."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted({*then, *now}):
            yield from differences(then.get(key), now.get(key), f"{name}.{key}" if name else key)
    elif then != now:
        yield f"{name} was {_short(then)} and is {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
