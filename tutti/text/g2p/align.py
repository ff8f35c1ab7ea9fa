"""Align groups of phonemes with written words where the G2P merged words or split one."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher


def align(alone: Sequence[str], together: Sequence[str]) -> list[tuple[int, int]]:
    """Return for each group of phonemes in `together` the words [first, last) it reads, in order and without a gap.

    `alone` holds the phonemes of each word by itself; matching blocks (difflib) tell which word is in which group.
    """
    if not alone or len(alone) == len(together):
        return [(i, i + 1) for i in range(len(together))]
    word_of = [i for i, phonemes in enumerate(alone) for _ in phonemes]
    group_of = [j for j, phonemes in enumerate(together) for _ in phonemes]
    shared: list[Counter[int]] = [Counter() for _ in together]
    matcher = SequenceMatcher(None, "".join(alone), "".join(together), autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        for k in range(size):
            shared[group_of[b + k]][word_of[a + k]] += 1

    ranges: list[tuple[int, int]] = []
    last = 0  # words before this one are assigned
    for j, counts in enumerate(shared):
        # A word belongs to a group that has at least half of its phonemes.
        members = [i for i, n in counts.items() if 2 * n >= len(alone[i]) and i >= last]
        if members:
            start, last = last, max(members) + 1
        else:  # another part of the previous word, or the first part of the next
            start = max(0, last - 1)
            last = max(last, start + 1)
        if j == len(together) - 1:
            last = len(alone)
        ranges.append((min(start, last - 1), last))
    return ranges
