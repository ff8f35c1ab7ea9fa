"""Messages of a stream between two processes."""

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tutti.process.messages import MessageReader, pack
from tutti.speech import Speech, Timing, WordTime

samples = st.integers(0, 50).map(lambda n: np.arange(n, dtype=np.int16))
values = st.binary(max_size=300) | st.integers() | st.text(max_size=20) | st.tuples(st.text(max_size=5), samples)


def as_plain(message: object) -> object:
    """Something that can be compared with ==."""
    return (message[0], message[1].dtype, message[1].tolist()) if isinstance(message, tuple) else message


@given(messages=st.lists(values, max_size=10), cuts=st.lists(st.integers(0, 4000), max_size=20))
def test_messages_are_whole_however_their_bytes_arrive(messages: list[object], cuts: list[int]) -> None:
    parts = [b"".join(pack(message).parts) for message in messages]
    data, reader = b"".join(parts), MessageReader()
    ends, received, at = [len(b"".join(parts[: n + 1])) for n in range(len(parts))], list[object](), 0
    expected = [as_plain(message) for message in messages]
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        received += map(as_plain, reader.feed(data[at:cut]))
        at = cut
        assert received == expected[: sum(end <= at for end in ends)], "each as soon as its last byte is there"


def test_samples_are_sent_without_a_copy() -> None:
    speech = np.arange(1000, dtype=np.int16)
    sent = pack(("speech", speech)).parts[-1]
    speech[0] = 77
    assert np.frombuffer(sent, np.int16)[0] == 77


def test_a_speech_arrives_as_it_was_sent() -> None:
    words = (WordTime("deep", 0.1, 0.4, (3, 7)),)
    sent = Speech(np.arange(9, dtype=np.int16), words, (3, 9), ("x",), Timing(1.0, 2.0, 3.0, 4.0, 5), ("a notice",))
    (received,) = MessageReader().feed(b"".join(pack(sent).parts))
    assert received.samples.tolist() == sent.samples.tolist()
    assert received.samples.dtype == sent.samples.dtype
    for field in fields(Speech):
        assert field.name == "samples" or getattr(received, field.name) == getattr(sent, field.name), field.name
