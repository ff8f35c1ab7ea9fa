"""What the G2P process answers, in this process: in order, whole, and in as few messages as possible."""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling
from tests.text.scripted_g2p import ScriptedG2P
from tutti import text as front
from tutti.errors import TuttiError
from tutti.text import g2p_child
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Pronunciation
from tutti.text.g2p_child import MAX_CHUNKS_AT_ONCE, MAX_WAIT_S, MIN_AUDIO_S, PullQueue, TextReader, rank_s
from tutti.text.g2p_messages import Answer, ChunkBatch, CloseText, NextChunks, OpenText
from tutti.text.options import TextOptions

SENTENCE = "Sentence a has some words of its own. "
PIECES = ["", "Hi.", "One two! ", SENTENCE, "[pause:1s] ", "\n\n", "☺ ", "5 % "]
spell = Spelling().pronounce


def answers(reader: TextReader) -> Iterator[Answer]:
    """All answers that need no further request."""
    while reader.has_work:
        if answer := reader.read(reader.next_number()):
            yield answer


def batches(reader: TextReader) -> list[ChunkBatch]:
    results = [answer.result for answer in answers(reader)]
    assert all(isinstance(result, ChunkBatch) for result in results), results
    return results  # type: ignore[return-value]


def read_all(reader: TextReader, opened: OpenText) -> list[Chunk]:
    reader.receive(opened)
    chunks, ended = list[Chunk](), False
    while not ended:
        for batch in batches(reader):
            assert not ended
            chunks += batch.chunks
            ended = batch.ended
        if not ended:
            reader.receive(NextChunks(opened.number))
    return chunks


@given(
    texts=st.lists(
        st.sampled_from(["", "Hi.", "One two! ", SENTENCE, "[pause:1s] ", "\n\n", "☺ ", "5 % "]), max_size=40
    ),
    n_done=st.integers(0, 5),
)
def test_the_answers_are_the_chunks_that_were_not_made_before(texts: list[str], n_done: int) -> None:
    text = "".join(texts)
    chunks = list(front.chunks(text, "en-us", spell))
    assert read_all(TextReader(spell, None), OpenText(text, "en-us", number=1, n_done=n_done)) == chunks[n_done:]


@pytest.mark.parametrize("n_done", [0, 1, 6])
def test_chunks_of_a_long_text_that_are_empty_are_not_answered(n_done: int) -> None:
    text = 400 * SENTENCE
    chunks = list(front.chunks(text, "en-us", spell))
    assert any(chunk.is_empty for chunk in chunks)
    spoken = [chunk for chunk in chunks if not chunk.is_empty]
    assert read_all(TextReader(spell, None), OpenText(text, "en-us", number=1, n_done=n_done)) == spoken[n_done:]


@pytest.mark.parametrize("text", ["Hi.", SENTENCE, 'She said "no"! \n\n', "No stop"])
def test_the_first_answer_to_a_single_sentence_says_that_nothing_follows(text: str) -> None:
    reader = TextReader(spell, None)
    reader.receive(OpenText(text, "en-us", number=1))
    ((chunks, ended, has_sequel),) = batches(reader)
    assert (len(chunks), ended, has_sequel) == (1, True, False)


def test_a_short_text_needs_one_request_and_its_first_chunk_comes_alone() -> None:
    reader = TextReader(spell, None)
    reader.receive(OpenText(4 * SENTENCE, "en-us", number=1))
    first, rest = batches(reader)
    assert (len(first.chunks), first.ended, first.has_sequel) == (1, False, True)
    assert (rest.ended, rest.has_sequel) == (True, False)


def test_no_more_of_a_long_text_is_read_than_was_asked_for() -> None:
    reader = TextReader(spell, None)
    reader.receive(OpenText(400 * SENTENCE, "en-us", number=1))
    assert [len(batch.chunks) for batch in batches(reader)] == [1, MAX_CHUNKS_AT_ONCE]
    reader.receive(NextChunks(1))
    assert [len(batch.chunks) for batch in batches(reader)] == [MAX_CHUNKS_AT_ONCE]


class SimulatedProcess:
    """A reader on a virtual clock; a sentence takes 2 ms of it, one with "mute" 20 ms and has no word."""

    def __init__(self) -> None:
        self.now = 100.0
        self.used_s: Counter[str] = Counter()  # by the first word of the sentences
        self.n_answers: Counter[int] = Counter()  # by text
        self.reader = TextReader(self._pronounce, None, lambda: self.now, lambda: self.now)

    def _pronounce(self, aligned: AlignedText, code: str, ipa: Mapping[int, str]) -> Pronunciation:
        name, *words = aligned.text.split()
        took_s = 0.02 if "mute" in words[-1] else 0.002
        self.now += took_s
        self.used_s[name] += took_s
        return Pronunciation(()) if "mute" in words[-1] else spell(aligned, code, ipa)

    def open(self, number: int, text: str, due_in_s: float = inf, symbol_s: float = 0.07, *, caller: str = "") -> None:
        due_s = self.now + due_in_s
        self.reader.receive(OpenText(text, "en-us", number=number, due_s=due_s, symbol_s=symbol_s, caller=caller))

    def step(self) -> int:
        """Read for one answer; return its text."""
        answer = None
        while answer is None:
            answer = self.reader.read(self.reader.next_number())
        self.n_answers[answer.number] += 1
        return answer.number


def test_a_text_waits_for_those_alone_whose_listeners_need_audio_sooner() -> None:
    process = SimulatedProcess()
    process.open(1, 400 * SENTENCE, 0.2)
    assert [process.step(), process.step()] == [1, 1]
    process.now += 20.0  # of its audio have been played
    process.open(2, SENTENCE, 0.2)
    process.reader.receive(NextChunks(1, process.now + 0.1))
    process.open(3, SENTENCE, 0.05)
    process.open(4, SENTENCE, 20.0)
    assert [process.step() for _ in range(4)] == [3, 1, 2, 4]


@pytest.mark.parametrize(("symbol_s", "order"), [(0.07, [1, 2, 1, 2]), (0.001, [1, 1, 2, 2])])
def test_the_rest_of_a_text_is_due_when_its_first_chunk_has_been_played(symbol_s: float, order: list[int]) -> None:
    process = SimulatedProcess()
    process.open(1, 100 * SENTENCE, 0.2, symbol_s)
    process.open(2, 100 * SENTENCE, 0.4, symbol_s)
    assert [process.step() for _ in range(4)] == order


@pytest.mark.parametrize(("rates", "order"), [({}, [1, 2]), ({"": 4.0}, [1, 1])])
def test_the_audio_of_a_voice_with_a_rate_is_estimated_by_it(rates: dict[str, float], order: list[int]) -> None:
    process, options = SimulatedProcess(), TextOptions(voice_rates=rates)
    for number, due_in_s in ((1, 0.2), (2, 0.4)):
        text = OpenText(100 * SENTENCE, "en-us", number=number, due_s=process.now + due_in_s, symbol_s=0.01)
        process.reader.receive(text._replace(options=options))
    assert [process.step() for _ in range(2)] == order


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.0, 30.0) | st.just(inf)), min_size=2, max_size=30))
def test_nobody_waits_for_a_text_that_comes_long_after_it(requests: list[tuple[float, float]]) -> None:
    queue = PullQueue()
    requests = sorted(requests)
    for number, (asked_s, due_in_s) in enumerate(requests):
        queue.add(number, rank_s(asked_s + due_in_s, asked_s, asked_s, 0.0))
    order = [queue.pop(0.0) for _ in requests]
    for place, number in enumerate(order):
        for before in order[:place]:
            assert requests[before][0] <= requests[number][0] + MAX_WAIT_S
            assert requests[before][0] + min(requests[before][1], MAX_WAIT_S) <= sum(requests[number]) + 1e-9


def test_a_caller_with_many_texts_does_not_make_another_wait_for_all_of_them() -> None:
    process = SimulatedProcess()
    for number in range(100):
        process.open(number, SENTENCE, 0.2, caller="busy")
    for _ in range(20):
        assert process.step() < 100
    process.open(100, SENTENCE, 0.2, caller="polite")
    steps = [process.step() for _ in range(3)]
    assert 100 in steps, "though all others are due before it"
    assert sorted([*range(20), *steps, *(process.step() for _ in range(78))]) == list(range(101))


def test_texts_that_make_no_audio_leave_the_process_to_others() -> None:
    """Sentences without a word, of 20 ms each, beside new streams that could use the whole process."""
    process, n_hostile, started_s = SimulatedProcess(), 3, 100.0
    for number in range(n_hostile):
        process.open(number, "Hostile and mute. " * 3000, 0.2)
    waits, arrived = list[float](), dict[int, float]()
    while process.now < started_s + 20.0:
        if len(arrived) < 2:
            number = 100 + len(waits) + len(arrived)
            arrived[number] = process.now
            process.open(number, "New words in a sentence.", 0.2)
        answered = process.step()
        if answered in arrived:
            waits.append(process.now - arrived.pop(answered))
        elif process.n_answers[answered] > 1:
            process.reader.receive(NextChunks(answered, started_s + 0.2))
    assert process.used_s["Hostile"] <= n_hostile * (20.2 / MIN_AUDIO_S + 0.1)
    assert max(waits) < 1.0


def test_a_text_that_is_due_is_read_between_two_chunks_of_another() -> None:
    process = SimulatedProcess()
    process.open(1, 400 * SENTENCE, 0.2)
    assert process.step() == 1
    assert process.reader.read(process.reader.next_number()) is None, "one chunk of four"
    process.open(2, SENTENCE, 0.2)
    assert [process.step(), process.step()] == [2, 1]


def test_chunks_are_made_again_in_pieces_and_others_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a process had made before it died."""
    monkeypatch.setattr(g2p_child, "MAX_PULL_S", 0.0)
    process = SimulatedProcess()
    process.reader.receive(OpenText(40 * SENTENCE, "en-us", number=1, n_done=9, due_s=process.now + 4))
    assert process.reader.read(process.reader.next_number()) is None, "nothing to be answered"
    process.open(2, SENTENCE, 0.0)
    assert process.step() == 2
    (first, *_) = batches(process.reader)
    assert first.chunks == list(front.chunks(40 * SENTENCE, "en-us", spell))[9:10]


def test_a_closed_or_unknown_text_is_not_read(tmp_path: Path) -> None:
    g2p = ScriptedG2P(tmp_path)
    reader = TextReader(g2p.pronounce, None)
    reader.receive(OpenText(SENTENCE, "en-us", number=1))
    reader.receive(CloseText(1))
    reader.receive(NextChunks(2))
    assert sorted(answers(reader)) == [Answer(1, None), Answer(2, None)]
    assert g2p.n_sentences() == 0


def test_an_error_ends_its_text_and_no_other() -> None:
    def stumbling(aligned: AlignedText, code: str, ipa: Mapping[int, str]) -> Pronunciation:
        if "stumble" in aligned.text:
            raise KeyError("stumbled")
        return spell(aligned, code, ipa)

    reader = TextReader(stumbling, None)
    reader.receive(OpenText("Now stumble.", "en-us", number=1))
    reader.receive(OpenText("Hi.", "en-us", number=2))
    failed, read = answers(reader)
    assert isinstance(failed.result, TuttiError)
    assert isinstance(read.result, ChunkBatch)
