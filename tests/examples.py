"""The number of examples of tests that do not use the default: a share of it in `make check`."""

from hypothesis import settings

DEFAULT = 100  # of Hypothesis, in the full run
MIN = 5  # fewer find nothing: the first examples are trivial


def examples(n: int) -> int:
    """`n` in the full run; in proportion fewer with a profile of fewer examples."""
    return min(n, max(MIN, n * settings.default.max_examples // DEFAULT))
