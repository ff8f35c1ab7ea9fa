"""The same batches: what is decided under ten simulated loads is what was decided when they were recorded.

A change that should decide nothing anew leaves the records as they are. After one that should, read what differs,
say in the commit why it is better, and record again: python -m tests.batching.test_recorded_loads
"""

from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.batching.load_driver import replay
from tests.batching.loads import LOADS

RECORDED = Path(__file__).parent / "recorded"
N_BEFORE, N_AFTER = 6, 3  # lines that are shown around the first that differs


def path_of(name: str) -> Path:
    return RECORDED / f"{name}.txt"


@pytest.mark.parametrize("name", LOADS)
def test_a_recorded_load_is_decided_as_before(name: str) -> None:
    recorded, replayed = path_of(name).read_text("utf-8").splitlines(), replay(LOADS[name]())
    if recorded != replayed:
        pytest.fail(difference(name, recorded, replayed), pytrace=False)


def difference(name: str, recorded: list[str], replayed: list[str]) -> str:
    """The first line that differs, with what was decided before it, and how much differs in all."""
    pairs = enumerate(zip_longest(recorded, replayed))
    first = next(n for n, (old, new) in pairs if old != new)
    same = sum(block.size for block in SequenceMatcher(None, recorded, replayed, autojunk=False).get_matching_blocks())
    start = max(0, first - N_BEFORE)
    return "\n".join(
        [
            f"{name}: line {first + 1} of {path_of(name).name} differs, the first of "
            f"{len(recorded) - same} of {len(recorded)} lines",
            *(f"    {line}" for line in recorded[start:first]),
            *(f"  - {line}" for line in recorded[first : first + N_AFTER] or ["the end"]),
            *(f"  + {line}" for line in replayed[first : first + N_AFTER] or ["the end"]),
        ]
    )


def test_a_difference_is_shown_with_what_came_before_it() -> None:
    shown = difference("load", ["1 a", "2 b", "3 c"], ["1 a", "2 x"])
    assert shown.splitlines()[1:] == ["    1 a", "  - 2 b", "  - 3 c", "  + 2 x"]
    assert "  + the end" in difference("load", ["1 a", "2 b"], ["1 a"])


def record() -> None:
    RECORDED.mkdir(exist_ok=True)
    for name, load in LOADS.items():
        lines = replay(load())
        path_of(name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        print(f"{name}: {len(lines)} lines")


if __name__ == "__main__":
    record()
