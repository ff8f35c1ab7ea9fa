"""What a worker says it holds is what it holds."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from tutti.worker import memory


def test_resident_memory_is_what_the_system_counts_and_grows_with_what_is_kept() -> None:
    before = memory.current().resident_bytes
    assert before == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    kept = np.ones(100_000_000, np.uint8)
    assert memory.current().resident_bytes >= before + 0.9 * kept.nbytes


def test_where_the_system_tells_only_the_peak_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", Path("/nowhere"))
    assert memory.current().resident_bytes >= 0.8 * psutil.Process().memory_info().rss


NUMBERS = {"reserved_bytes": {"all": {"current": 123}}}


@pytest.mark.parametrize(("initialised", "held"), [(True, 123), (False, 0)])
def test_a_device_is_asked_only_when_pytorch_already_uses_it(
    initialised: bool, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: initialised, memory_stats_as_nested_dict=lambda: NUMBERS)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert memory.current().device_bytes == held
    monkeypatch.delitem(sys.modules, "torch")
    assert memory.current().device_bytes == 0
    assert "torch" not in sys.modules
