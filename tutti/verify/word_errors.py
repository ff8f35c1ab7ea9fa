"""How many words a recogniser got wrong."""

import re
from collections.abc import Sequence


def words(text: str) -> list[str]:
    """Lower-case words without punctuation."""
    return re.findall(r"[a-z']+", text.lower())


def edit_distance(expected: Sequence[str], recognised: Sequence[str]) -> int:
    """Wrong, missing and extra words: the Levenshtein distance."""
    costs = list(range(len(recognised) + 1))
    for i, word in enumerate(expected, 1):
        before, costs[0] = costs[0], i
        for j, other in enumerate(recognised, 1):
            before, costs[j] = costs[j], min(before + (word != other), costs[j] + 1, costs[j - 1] + 1)
    return costs[-1]
