"""A voice from a file as people share them: .pt, .npy, .bin or .safetensors, checked, and read without running code."""

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutti.errors import InvalidInput
from tutti.speech import MAX_PHONEMES, STYLE_SIZE
from tutti.torch_file import read_tensor

Table = NDArray[np.float32]  # [510, 256]

MAX_FILE = 2_000_000  # bytes; a table in 64 bits has 1.05 MB
MAX_HEADER = 50_000  # bytes of JSON in a .safetensors
MAX_NAME = 40  # characters
# Of the largest number in a row: Kokoro's own voices have 0.7 to 3.2. Far from them the model screams or is silent.
LEAST, MOST = 0.05, 30.0
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
# Rows of a file, and the first that counts. Row 0 of Kokoro 0.19's 511 is for no phoneme; 512 end with padding.
FIRST_ROWS = {MAX_PHONEMES: 0, MAX_PHONEMES + 1: 1, MAX_PHONEMES + 2: 0}
SHAPES = "[510, 1, 256], [510, 256], or the same with 511 or 512 rows"
# NumPy's own reader evaluates the header as Python.
_NPY_HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[^']{1,20})', 'fortran_order': (?P<order>True|False), "
    r"'shape': \((?P<shape>[\d, ]{1,60})\), \}",
    re.ASCII,
)
SAFE_DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def read_voice(path: Path) -> Table:
    """Return the table in a file, which is opened once; raise InvalidInput that names the file and the cure."""
    try:
        # Not blocking: it could be a pipe.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput(f"{path} is not a file", param="file")
            check_size(path.name, status.st_size)
            return parse_voice(path.name, file.read(MAX_FILE))
    except OSError as exc:
        raise InvalidInput(f"cannot read {path}: {exc.strerror or exc}", param="file") from exc


def check_size(name: str, n_bytes: int) -> None:
    """Raise InvalidInput if a file is too large for one voice, before it is read."""
    if n_bytes > MAX_FILE:
        size = f"{n_bytes / 1e6:,.0f} MB; the file of a voice has at most {MAX_FILE / 1e6:.0f}"
        raise InvalidInput(f"{shown(name)} has {size}; save one voice in a file", param="file")


def parse_voice(name: str, data: bytes) -> Table:
    """Return the table in the content of a file with this name."""
    suffix = Path(name).suffix.lower()
    if suffix not in READERS:
        raise InvalidInput(f"{shown(name)}: a voice is a file with the suffix {', '.join(READERS)}", param="file")
    try:
        return _checked(READERS[suffix](data))
    except InvalidInput as exc:
        raise InvalidInput(f"{shown(name)}: {exc.message}", param="file") from exc


def check_name(name: str) -> str:
    """Return the name for a voice; raise InvalidInput unless it may be one."""
    if not NAME.fullmatch(name):
        rule = f"up to {MAX_NAME} lower-case letters, digits and _, the first a letter, such as af_jadzia"
        raise InvalidInput(f"{name[:60]!r} is not a name for a voice: {rule}", param="name")
    return name


def shown(name: str) -> str:
    """Return the name of a file for a message."""
    return "".join(character if character.isprintable() else "?" for character in name)[:80]


def _checked(numbers: NDArray[Any]) -> Table:
    shape = numbers.shape
    if len(shape) == 3 and shape[1] == 1:
        shape = (shape[0], shape[2])
    if len(shape) != 2 or shape[0] not in FIRST_ROWS or shape[1] != STYLE_SIZE:
        raise InvalidInput(f"a voice of Kokoro has the shape {SHAPES}; this one has {list(numbers.shape)}")
    first = FIRST_ROWS[shape[0]]
    with np.errstate(over="ignore"):  # a number of 64 bits may be too large for 32; then it is not finite
        table = numbers.reshape(shape)[first : first + MAX_PHONEMES].astype("<f4", order="C")
    largest = np.abs(table).max(axis=1)
    if not np.isfinite(largest).all():
        raise InvalidInput("it has numbers that are not finite; train or convert it again")
    if largest.min() < LEAST or largest.max() > MOST:
        row = f"{largest.min():.3g} to {largest.max():.3g}; in voices of Kokoro it is {LEAST:g} to {MOST:g}"
        raise InvalidInput(f"it is not a voice of Kokoro: the largest number of a row is {row}")
    return table


def _npy(data: bytes) -> NDArray[Any]:
    start = 10 if data[6:7] == b"\x01" else 12
    length = int.from_bytes(data[8:start], "little")
    header = _NPY_HEADER.fullmatch(data[start : start + min(length, MAX_HEADER)].decode("latin-1").strip())
    if not data.startswith(b"\x93NUMPY") or header is None:
        raise InvalidInput("it is damaged or not an array of floats; write it with numpy.save")
    if header["dtype"][:1] not in "<>=" or header["dtype"][1:] not in ("f2", "f4", "f8"):
        raise InvalidInput(f"its numbers are {header['dtype'][:20]}; save floats: array.astype('float32')")
    shape = tuple(int(size) for size in header["shape"].split(",") if size.strip())
    try:
        numbers = np.frombuffer(data[start + length :], header["dtype"])
        return numbers.reshape(shape, order="F" if header["order"] == "True" else "C")
    except (ValueError, OverflowError) as exc:
        raise InvalidInput("it is damaged; write it again with numpy.save") from exc


def _bin(data: bytes) -> NDArray[Any]:
    if len(data) not in (4 * STYLE_SIZE * rows for rows in FIRST_ROWS):
        sizes = " or ".join(f"{4 * STYLE_SIZE * rows:,}" for rows in FIRST_ROWS)
        raise InvalidInput(f"a .bin file has {sizes} bytes, which are floats of 32 bits; this one has {len(data):,}")
    return np.frombuffer(data, "<f4").reshape(-1, STYLE_SIZE)


def _safetensors(data: bytes) -> NDArray[Any]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(MAX_HEADER, len(data) - 8):
        raise InvalidInput("it is damaged or no .safetensors file; save the tensor again")
    try:
        header = json.loads(data[8 : 8 + length])
        names = [name for name in header if name != "__metadata__"]
        if len(names) != 1:
            raise InvalidInput(f"it has {len(names)} tensors; save one alone")
        info = header[names[0]]
        if info["dtype"] not in SAFE_DTYPES:
            raise InvalidInput(f"its numbers are {str(info['dtype'])[:20]}, not F16, F32 or F64; save tensor.float()")
        start, end = info["data_offsets"]
        return np.frombuffer(data[8 + length :][start:end], SAFE_DTYPES[info["dtype"]]).reshape(info["shape"])
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as exc:
        raise InvalidInput("it is damaged or no .safetensors file; save the tensor again") from exc


READERS: Mapping[str, Callable[[bytes], NDArray[Any]]] = {
    ".pt": read_tensor,
    ".pth": read_tensor,
    ".npy": _npy,
    ".bin": _bin,
    ".safetensors": _safetensors,
}
