"""When Python looks for garbage in a process that serves streams."""

import gc

FULL_AFTER = 100  # collections of what is younger before a full one; Python's own choice is 10


def collect_rarely() -> None:
    """Leave out what is loaded by now: a collection over it would take 20 ms. Collect the rest in full less often.

    A full collection looks at every open stream (16 ms for 330 of them on a Neoverse-N1), and all others wait for it.
    Streams leave no cycles, so there is little to find.
    """
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, FULL_AFTER)
