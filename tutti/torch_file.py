"""One tensor as `torch.save` writes it, without PyTorch: its numbers, and a pickle that says what they are.

A pickle is a program. It is not run by `pickle` here, but by a reader of the few instructions that build a tensor.
"""

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pickletools import genops
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from tutti.errors import InvalidInput

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


ZIP_MAGIC, LEGACY_MAGIC = b"PK", 0x1950A86A20F9469CFC6C
DTYPES = {"HalfStorage": "f2", "FloatStorage": "f4", "DoubleStorage": "f8"}
MAX_FILES = 100  # in a ZIP; PyTorch writes five for a tensor
MAX_PICKLE = 100_000  # bytes; that of a tensor has 200
MAX_STEPS = 2_000  # instructions of a pickle; a tensor takes 40
MAX_DIMENSIONS = 8
DAMAGED = "it is damaged or not written by torch.save; save the tensor again: torch.save(tensor, path)"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where the numbers of a tensor are, and how they lie there."""

    dtype: str
    storage: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, data: bytes, byteorder: str) -> NDArray[Any]:
        """Return the tensor over the bytes of its storage."""
        numbers = np.frombuffer(data, byteorder + self.dtype)
        last = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        if min((*self.shape, self.offset + 1, *(stride + 1 for stride in self.strides))) < 1 or last >= len(numbers):
            raise InvalidInput(DAMAGED)
        strides = [stride * numbers.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, strides, writeable=False)


@dataclass(frozen=True, slots=True)
class Global:
    """A name in a pickle."""

    name: str


def read_tensor(data: bytes) -> NDArray[Any]:
    """Return the one tensor of floats in a file of `torch.save`; raise InvalidInput for anything else."""
    try:
        return _read_zip(data) if data.startswith(ZIP_MAGIC) else _read_legacy(io.BytesIO(data))
    except (BadZipFile, RuntimeError, NotImplementedError) as exc:  # encrypted; of a kind that Python does not read
        raise InvalidInput(DAMAGED) from exc
    except (LookupError, ValueError, TypeError, AttributeError, EOFError, struct.error, OverflowError) as exc:
        raise InvalidInput(DAMAGED) from exc


def read_tensors(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    """Return the tensors in the dictionary `name` of a training run's file, of before PyTorch 1.6."""
    try:
        value, storages, order = _legacy(io.BytesIO(data))
        return {key: tensor.array(storages[tensor.storage], order) for key, tensor in value[name].items()}
    except (LookupError, ValueError, TypeError, AttributeError, EOFError, struct.error, OverflowError) as exc:
        raise InvalidInput(DAMAGED) from exc


def _read_zip(data: bytes) -> NDArray[Any]:
    with ZipFile(io.BytesIO(data)) as archive:
        files = {info.filename: info for info in archive.infolist()[:MAX_FILES]}
        if any(info.compress_type != ZIP_STORED or info.file_size > len(data) for info in files.values()):
            raise InvalidInput("it is a compressed ZIP, which torch.save does not write; save the tensor again")
        (pickled,) = (name for name in files if name.rpartition("/")[2] == "data.pkl")
        folder = pickled.removesuffix("data.pkl")
        if files[pickled].file_size > MAX_PICKLE:
            raise InvalidInput(DAMAGED)
        tensor = _tensor(_run_pickle(io.BytesIO(archive.read(pickled))))
        order = archive.read(f"{folder}byteorder") if f"{folder}byteorder" in files else b"little"
        return tensor.array(archive.read(f"{folder}data/{tensor.storage}"), ">" if order == b"big" else "<")


def _read_legacy(file: BinaryIO) -> NDArray[Any]:
    value, storages, order = _legacy(file)
    tensor = _tensor(value)
    if [*storages] != [tensor.storage]:
        raise InvalidInput(DAMAGED)
    return tensor.array(storages[tensor.storage], order)


def _legacy(file: BinaryIO) -> tuple[Any, dict[str, bytes], str]:
    """Read a file of before PyTorch 1.6: four pickles, then of each storage the number of elements and the elements.

    Return what was saved, the bytes of the storages by name, and their order.
    """
    if _run_pickle(file) != LEGACY_MAGIC:
        raise InvalidInput(DAMAGED)
    kinds: dict[str, str] = {}
    _, machine, value, keys = (_run_pickle(file, kinds) for _ in range(4))
    storages = {}
    for key in keys:
        n_elements = int.from_bytes(file.read(8), "little")
        storages[key] = file.read(n_elements * np.dtype(kinds[key]).itemsize)
    return value, storages, "<" if machine.get("little_endian", True) else ">"


def _tensor(value: object) -> TensorInfo:
    if not isinstance(value, TensorInfo):
        kind = "several values" if isinstance(value, dict | list | tuple) else "no tensor"
        raise InvalidInput(f"it has {kind}; save one tensor alone: torch.save(tensor, path)")
    return value


def _rebuild_tensor(storage: tuple[str, str], offset: int, shape: Any, strides: Any, *_: object) -> TensorInfo:
    dtype, key = storage
    if not len(shape) == len(strides) <= MAX_DIMENSIONS or not all(isinstance(n, int) for n in (*shape, *strides)):
        raise InvalidInput(DAMAGED)
    return TensorInfo(dtype, key, offset, tuple(shape), tuple(strides))


# All that a pickle may call. Hooks and options of the tensor have no effect.
CALLS: Mapping[str, Callable[..., object]] = {
    "torch._utils _rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils _rebuild_parameter": lambda tensor, *_: tensor,
    "collections OrderedDict": dict,
}


def _storage(id: tuple[Any, ...]) -> tuple[str, str]:
    """Return the type of the numbers, and the name of the storage."""
    kind = id[1].name.rpartition(" ")[2]
    if kind not in DTYPES:
        raise InvalidInput(f"its numbers are a {kind}, not floats of 16, 32 or 64 bits; save tensor.float() instead")
    return DTYPES[kind], str(id[2])


def _call(function: object, arguments: tuple[object, ...]) -> object:
    if not isinstance(function, Global) or function.name not in CALLS:
        raise InvalidInput(DAMAGED)
    return CALLS[function.name](*arguments)


def _global(name: str) -> Global:
    module, _, short = name.partition(" ")
    if name not in CALLS and not (module == "torch" and short.endswith("Storage") and short.isascii()):
        raise InvalidInput(
            f"it would run code when it is loaded ({name[:60]!r}); have only the tensor saved: torch.save(tensor, path)"
        )
    return Global(name)


def _run_pickle(file: BinaryIO, kinds: dict[str, str] | None = None) -> Any:
    """Return the value of the next pickle; only instructions that build tensors are known.

    `kinds`: to be filled with the type of each storage.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def pop(count: int) -> tuple[Any, ...]:
        start = len(stack) - count
        if start < 0:
            raise InvalidInput(DAMAGED)
        values = tuple(stack[start:])
        del stack[start:]
        return values

    def pop_to_mark() -> tuple[Any, ...]:
        return pop(len(stack) - marks.pop())

    argument: Any
    for n_steps, (step, argument, _) in enumerate(genops(file)):
        if n_steps > MAX_STEPS:
            raise InvalidInput(DAMAGED)
        match step.name:
            case "STOP":
                return stack.pop()
            case "PROTO" | "FRAME":
                pass
            case "MARK":
                marks.append(len(stack))
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "BINUNICODE" | "SHORT_BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT":
                stack.append(argument)
            case "NEWTRUE" | "NEWFALSE" | "NONE":
                stack.append({"NEWTRUE": True, "NEWFALSE": False}.get(step.name))
            case "EMPTY_DICT" | "EMPTY_LIST" | "EMPTY_TUPLE":
                stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[step.name]())
            case "BUILD":
                pop(1)  # attributes of a dictionary, such as the versions of its modules
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(pop(int(step.name[-1])))
            case "TUPLE":
                stack.append(pop_to_mark())
            case "APPEND" | "APPENDS":
                values = pop(1) if step.name == "APPEND" else pop_to_mark()
                stack[-1].extend(values)
            case "SETITEM" | "SETITEMS":
                values = pop(2) if step.name == "SETITEM" else pop_to_mark()
                stack[-1].update(zip(values[::2], values[1::2], strict=True))
            case "GLOBAL":
                stack.append(_global(argument))
            case "STACK_GLOBAL":
                stack.append(_global(" ".join(pop(2))))
            case "BINPERSID":
                storage = _storage(stack.pop())
                if kinds is not None:
                    kinds[storage[1]] = storage[0]
                stack.append(storage)
            case "REDUCE":
                stack.append(_call(*pop(2)))
            case _:
                raise InvalidInput(DAMAGED)
    raise InvalidInput(DAMAGED)
