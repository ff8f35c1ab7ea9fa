"""A worker reports the memory that it holds."""

import mmap
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tutti.worker import memory


def test_resident_memory_matches_the_system_and_grows_with_what_is_allocated() -> None:
    before = memory.current().resident_bytes
    assert before == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    with mmap.mmap(-1, 100_000_000) as allocated:  # new pages: an array may get memory that others have freed
        allocated.write(bytes(100_000_000))
        assert memory.current().resident_bytes >= before + 90_000_000


def test_without_proc_the_peak_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", Path("/nowhere"))
    assert memory.current().resident_bytes >= 0.8 * psutil.Process().memory_info().rss


MEMORY_STATS = {"reserved_bytes": {"all": {"current": 123}}}


@pytest.mark.parametrize(("initialised", "n_bytes"), [(True, 123), (False, 0)])
def test_device_memory_is_read_only_when_pytorch_already_uses_the_device(
    initialised: bool, n_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: initialised, memory_stats_as_nested_dict=lambda: MEMORY_STATS)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert memory.current().device_bytes == n_bytes
    monkeypatch.delitem(sys.modules, "torch")
    assert memory.current().device_bytes == 0
    assert "torch" not in sys.modules
