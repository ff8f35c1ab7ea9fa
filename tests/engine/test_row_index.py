"""Rows are found by their job and by their stream, whatever came and went before."""

import asyncio
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tutti.batching.job import Job, Key
from tutti.engine.playback import Playback
from tutti.engine.row import Row, RowIndex
from tutti.speech import STYLE_SIZE, Utterance

UTTERANCE = Utterance(np.zeros(3, np.int64), np.zeros(STYLE_SIZE, np.float32))


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=40), st.sets(st.integers(0, 5)))
def test_the_rows_of_a_stream_are_those_that_were_added_and_not_removed(
    steps: list[tuple[int, bool]], asked: set[int]
) -> None:
    async def scenario() -> None:
        rows, known = RowIndex(), dict[Job, Row]()
        for stream, is_added in steps:
            own = [job for job in known if job.stream == stream]
            if is_added:
                job = Job(Key("kokoro", "acoustic"), stream, "first", 3, inf)
                known[job] = Row(UTTERANCE, "kokoro", stream, "first", Playback(0.0, 0.0))
                rows.add(job, known[job])
            elif own:
                assert rows.pop(own[0]) is known.pop(own[0])
                rows.discard(own[0])  # it is not there any more
        assert list(rows) == list(known)
        assert list(rows.values()) == list(known.values())
        found = {job: row for job, row in known.items() if job.stream in asked}
        assert dict(rows.of_streams(asked)) == found

    asyncio.run(scenario())
