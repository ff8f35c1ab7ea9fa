"""A tensor as `torch.save` writes it, without PyTorch: a ZIP of its numbers and a pickle that says what they are."""

import io
import struct
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

FOLDER = "archive"  # of all files in the ZIP


def torch_file(array: NDArray[np.float32]) -> bytes:
    """Return the file of a tensor of 32-bit floats."""
    files = {
        "data.pkl": _pickled_tensor(array.shape),
        "byteorder": b"little",
        "data/0": np.ascontiguousarray(array, "<f4").tobytes(),
        "version": b"3\n",
    }
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:  # stored: PyTorch reads no compressed files
        for name, data in files.items():
            archive.writestr(ZipInfo(f"{FOLDER}/{name}"), data)
    return buffer.getvalue()


def _pickled_tensor(shape: tuple[int, ...]) -> bytes:
    """Return the pickle of a tensor over the whole of storage 0, in protocol 2."""
    strides = [int(np.prod(shape[n + 1 :], dtype=np.int64)) for n in range(len(shape))]
    storage = _tuple(_text("storage"), _name("torch", "FloatStorage"), _text("0"), _text("cpu"), _int(np.prod(shape)))
    hooks = _name("collections", "OrderedDict") + b")R"  # called without arguments
    arguments = _tuple(
        storage + b"Q",  # a persistent id, which the reader replaces by the storage
        _int(0),
        _tuple(*map(_int, shape)),
        _tuple(*map(_int, strides)),
        b"\x89",  # needs no gradient
        hooks,
    )
    return b"\x80\x02" + _name("torch._utils", "_rebuild_tensor_v2") + arguments + b"R."


def _tuple(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


def _name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def _int(number: int | np.integer) -> bytes:
    return b"J" + struct.pack("<i", int(number))
