"""How many words a recogniser heard wrongly."""

import re
from collections.abc import Sequence


def words(text: str) -> list[str]:
    """Lower-case words without punctuation."""
    return re.findall(r"[a-z']+", text.lower())


def n_wrong(said: Sequence[str], heard: Sequence[str]) -> int:
    """Wrong, missing and extra words: the fewest edits that make one of the other."""
    costs = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        before, costs[0] = costs[0], i
        for j, other in enumerate(heard, 1):
            before, costs[j] = costs[j], min(before + (word != other), costs[j] + 1, costs[j - 1] + 1)
    return costs[-1]
