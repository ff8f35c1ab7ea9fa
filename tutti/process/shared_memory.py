"""Memory that processes share: a file without a name, mapped in one and handed on to another by its descriptor."""

import mmap
import os
import sys
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DESCRIPTOR = Struct("@i")  # as sockets send it


class SharedMemory(mmap.mmap):
    """A mapped file whose descriptor stays open as long as it is mapped."""

    descriptor: int
    address: int

    @classmethod
    def of(cls, descriptor: int, n_bytes: int) -> "SharedMemory":
        """Map the first bytes of a file; the caller keeps its own descriptor."""
        # A map keeps a duplicate of its descriptor open, but does not tell it; Python 3.13 can do without.
        options = {"trackfd": False} if sys.version_info >= (3, 13) else {}
        memory = cls(descriptor, n_bytes, **options)
        memory.address = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
        memory.descriptor = os.dup(descriptor)
        return memory

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class SharedPlace(NamedTuple):
    """Where values lie in a shared file."""

    memory: SharedMemory  # kept: it holds the descriptor
    offset: int  # bytes

    @property
    def packed(self) -> bytes:
        """The descriptor, as a socket sends it."""
        return DESCRIPTOR.pack(self.memory.descriptor)


def shared_place(values: NDArray[np.generic]) -> SharedPlace | None:
    """Where these values lie, if that is shared memory; they must be contiguous."""
    owner: object = values
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    if not isinstance(owner, SharedMemory):
        return None
    return SharedPlace(owner, values.__array_interface__["data"][0] - owner.address)


def read_shared(descriptor: int, n_bytes: int, offset: int) -> bytes:
    """Copy bytes of a shared file, and close it."""
    try:
        data = os.pread(descriptor, n_bytes, offset)
    finally:
        os.close(descriptor)
    if len(data) != n_bytes:
        raise OSError(f"a shared file has {len(data)} of {n_bytes} bytes at {offset}")
    return data
