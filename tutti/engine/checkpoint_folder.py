"""A checkpoint of others as a folder: weights, `config.json` with its symbols, voices, a card with its licence."""

import json
import re
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutti.errors import InvalidInput, UnknownLanguage, WeightsUnavailable
from tutti.text import vocab
from tutti.text.language import find_language

SUFFIXES = (".onnx", ".safetensors", ".pth", ".pt", ".npz")  # of weights; a processor runs the first fastest
WEIGHT_FOLDERS = (".", "onnx")
VOICE_FOLDERS = ("voices", "voicepacks")
CONFIG, CARD = "config.json", "README.md"
LIGHT = "light.npz"  # weights of its light vocoder, by `make light`; not of Kokoro
MAX_CONFIG = 1_000_000  # bytes
MAX_CARD = 1_000_000
MAX_VOICE = 5_000_000  # bytes; a larger file is one of weights
N_TOKENS = 178  # ids of Kokoro's embedding
_LANGUAGE = re.compile(r"^language:\s*(?:-\s*)?['\"]?([A-Za-z-]{2,20})", re.MULTILINE)
_LICENCE = re.compile(r"^license:\s*['\"]?([\w.+ -]{1,60})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """What a folder holds."""

    weights: Path
    ids: tuple[int, ...] | None  # of its symbols, by the ids of Kokoro's; none if they are the same
    missing: frozenset[str]  # symbols of Kokoro that it does not have
    stand_ins: Mapping[str, str]  # for symbols that it does not have, beyond Kokoro's
    voices: Path | None
    light: Path | None  # weights of its light vocoder
    language: str | None  # code, of voices whose names do not say it
    licence: str  # "" if its card does not say it


def read_folder(folder: Path, name: str, language: str | None = None) -> CheckpointFolder:
    """Return what a folder holds; raise InvalidInput or WeightsUnavailable that says what is missing.

    `language`: else that which the name of the model is a code of, else the first on its card.
    """
    symbols, card = _symbols(folder / CONFIG), _head(folder / CARD)
    ids = None if symbols is None else translate(symbols)
    voices = next((folder / each for each in VOICE_FOLDERS if (folder / each).is_dir()), None)
    if voices is None and any(path.stat().st_size < MAX_VOICE for path in folder.glob("*.pt")):
        voices = folder
    return CheckpointFolder(
        _weights(folder, name),
        ids,
        frozenset() if symbols is None else frozenset(vocab.SYMBOLS.keys() - symbols.keys()),
        vocab.stand_ins(symbols or ()),
        voices,
        folder / LIGHT if (folder / LIGHT).is_file() else None,
        _in_its_symbols(_code(language or name) or _code(_on_card(_LANGUAGE, card)), symbols or ()),
        _on_card(_LICENCE, card),
    )


def translate(symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the checkpoint's id for each of Kokoro's; a symbol that it lacks is a space. None if all are the same."""
    ids = [*range(N_TOKENS), *[0] * len(vocab.NEAREST)]
    same = list(ids)
    for symbol, id in vocab.IDS.items():
        ids[id] = symbols.get(symbol, symbols.get(" ", 0) if id < N_TOKENS else 0)
    return None if ids == same else tuple(ids)


def _weights(folder: Path, name: str) -> Path:
    every = [path for each in WEIGHT_FOLDERS for path in sorted((folder / each).glob("*")) if path.suffix in SUFFIXES]
    every = [path for path in every if path.suffix != ".pt" or path.stat().st_size >= MAX_VOICE]
    every = [path for path in every if path.name != LIGHT]
    for suffix in SUFFIXES:
        files = [path for path in every if path.suffix == suffix]
        if whole := [path for path in files if len(files) == 1 or path.name == "model.onnx"]:
            return whole[0]
        if files:
            names = ", ".join(path.name for path in files[:5])
            raise InvalidInput(
                f"models: {folder} has several {suffix} files ({names}); leave one, or name it: {name}={files[0]}",
                param="models",
            )
    raise WeightsUnavailable(f"models: {folder} has no weights ({', '.join(SUFFIXES)})", param="models")


def _symbols(path: Path) -> Mapping[str, int] | None:
    """Return the symbols of a `config.json` as Kokoro has it; none without the file or without symbols in it."""
    try:
        if path.stat().st_size > MAX_CONFIG:
            raise InvalidInput(f"{path} has more than {MAX_CONFIG:,} bytes", param="models")
        config: Any = json.loads(path.read_text(encoding="utf-8"))
        symbols = config.get("vocab")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, RecursionError) as exc:
        raise InvalidInput(f"{path} is not the config of a Kokoro model: {exc}", param="models") from exc
    if symbols is None:
        return None
    if not isinstance(symbols, dict) or not all(map(_is_symbol, symbols.items())):
        rule = f"single characters with ids from 0 to {N_TOKENS - 1}"
        raise InvalidInput(f"{path}: vocab must be {rule}, the size of Kokoro's embedding", param="models")
    return symbols


def _is_symbol(entry: tuple[object, object]) -> bool:
    symbol, id = entry
    return isinstance(symbol, str) and len(symbol) == 1 and type(id) is int and 0 <= id < N_TOKENS


def _code(language: str) -> str | None:
    """Return the code of a language that can be read here; none for any other word."""
    with suppress(UnknownLanguage):
        return find_language(language).code if len(language) > 1 else None
    return None


def _in_its_symbols(code: str | None, symbols: Container[str]) -> str | None:
    """Return the language, or Chinese as Kokoro 1.1 writes it if the checkpoint has its symbols."""
    return "zh-1.1" if code == "zh" and "ㄅ" in symbols else code


def _head(path: Path) -> str:
    """Return the head of a model card; "" if there is none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as card:
            head = card.read(MAX_CARD).partition("\n---")[0]
    except OSError:
        return ""
    return head if head.startswith("---") else ""


def _on_card(field: re.Pattern[str], head: str) -> str:
    match = field.search(head)
    return match[1].strip() if match else ""
