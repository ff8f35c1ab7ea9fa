"""A disk without room, for files that are written atomically."""

import os

import pytest

from tutti.files import PARTIAL


def fill_disk(patch: pytest.MonkeyPatch) -> None:
    """Send every unfinished file to /dev/full."""
    real_open = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        return real_open("/dev/full", os.O_RDWR) if str(path).endswith(PARTIAL) else real_open(path, flags, mode)

    patch.setattr(os, "open", full)
