# mypy: ignore-errors
"""Kernels that are launched or, for a while, only compiled: many at once, each in a thread."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial

import triton

MAX_THREADS = 12  # that compile: most of the time is LLVM and ptxas, which leave the interpreter to others
_compile_only: ContextVar[bool] = ContextVar("compile_only", default=False)


class kernel:
    """A function of `triton.jit` that `compiling` can keep from being launched."""

    def __init__(self, function) -> None:
        self._function = function

    def __getitem__(self, grid):
        return partial(self._function.run, grid=grid, warmup=_compile_only.get())


@contextmanager
def compiling() -> Iterator[None]:
    """Compile the kernels that would be launched in this block, and wait for them; what they compute is undefined."""
    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1), "tutti-compile") as threads:
        token = _compile_only.set(True)
        try:
            # Older versions of Triton compile one after the other.
            with triton.AsyncCompileMode(threads) if hasattr(triton, "AsyncCompileMode") else nullcontext():
                yield
        finally:
            _compile_only.reset(token)
