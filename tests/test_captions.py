"""Captions: every word in its place and at its time, lines that can be read, and no drift however long the text."""

import json
import re
from bisect import bisect
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import running, silent_voices, tone_engine
from tutti.captions import LINE, LINES, LONGEST_S, SHORTEST_S, Cue, cues, kind_of_file, written
from tutti.errors import InvalidInput
from tutti.model.tone import pitch_hz
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, WordTime
from tutti.text.vocab import SYMBOLS

FRAME_S = 0.025


@st.composite
def spoken_texts(draw: st.DrawFn) -> tuple[str, list[WordTime]]:
    """Words with punctuation and gaps between them, each with its time."""
    text, words, at_s = draw(st.sampled_from(["", "“", "[rate:2]", "- "])), [], 0.0
    for _ in range(draw(st.integers(0, 40))):
        word = draw(st.one_of(st.sampled_from(["a", "is", "bridge", "$5.20", "well-known"]), st.just("x" * 100)))
        at_s += FRAME_S * draw(st.sampled_from([0, 1, 3, 12, 80]))
        end_s = at_s + FRAME_S * draw(st.integers(1, 60))
        words.append(WordTime(word, at_s, end_s, (len(text), len(text) + len(word))))
        text += word + draw(st.sampled_from([" ", ". ", ", ", " — ", "\n\n", "—", " [pause:1s] ", ".” “", " <b> & "]))
        at_s = end_s
    return text, words


@given(spoken_texts())
def test_no_word_is_lost(spoken: tuple[str, list[WordTime]]) -> None:
    text, words = spoken
    seen = "".join(piece.text for cue in cues(text, words) for line in cue.lines for piece in line)
    letters = re.compile(r"[^\w$]")
    assert letters.sub("", seen) == letters.sub("", "".join(word.word for word in words))


@given(spoken_texts())
def test_cues_can_be_read(spoken: tuple[str, list[WordTime]]) -> None:
    made = cues(*spoken)
    for cue in made:
        lines = cue.text.split("\n")
        assert 1 <= len(lines) <= LINES
        assert all(0 < len(line) <= LINE and line == line.strip() for line in lines)
        n_pieces = sum(map(len, cue.lines))
        assert cue.end_s - cue.start_s <= LONGEST_S + 1e-9 or n_pieces == 1
    for cue, after in pairwise(made):
        assert cue.end_s <= after.start_s
        assert cue.end_s - cue.start_s >= SHORTEST_S - 1e-9 or cue.end_s == after.start_s or speaks_on(cue, after)
    if made:
        assert made[-1].end_s - made[-1].start_s >= SHORTEST_S - 1e-9


def speaks_on(cue: Cue, after: Cue) -> bool:
    """Too short to read, and no room to stay."""
    return after.start_s - cue.start_s < SHORTEST_S


@given(spoken_texts())
def test_a_cue_begins_with_its_first_word(spoken: tuple[str, list[WordTime]]) -> None:
    text, words = spoken
    starts = {word.start_s for word in words if len(word.word) <= LINE}
    long = any(len(word.word) > LINE for word in words)
    assert long or all(cue.start_s in starts for cue in cues(text, words))


def timed(text: str, each_s: float = 0.3, apart_s: float = 0.1) -> list[WordTime]:
    found = enumerate(re.finditer(r"[\w'$-]+(?:\.\w+)?", text))
    return [WordTime(m[0], i * (each_s + apart_s), i * (each_s + apart_s) + each_s, m.span()) for i, m in found]


def test_borders_are_those_of_sentences_and_clauses() -> None:
    text = "Here is a bridge. Under it, the water that nobody has ever crossed runs very deep, and the night is long."
    assert [cue.text for cue in cues(text, timed(text, 0.2, 0.08))] == [
        "Here is a bridge.",
        "Under it, the water that nobody\nhas ever crossed runs very deep,",
        "and the night is long.",
    ]


def test_punctuation_stays_with_its_word_and_marks_are_not_seen() -> None:
    text = "He said: “It’s (almost) *new*” — [rate:2]for[/rate] $5.20!"
    words = [WordTime(w, i, i + 0.9, (text.index(w), text.index(w) + len(w))) for i, w in
             enumerate(["He", "said", "It’s", "almost", "new", "for", "$5.20"])]  # fmt: skip
    assert (
        " ".join(cue.text.replace("\n", " ") for cue in cues(text, words))
        == "He said: “It’s (almost) new” — for $5.20!"
    )


def test_a_word_over_two_breaths_is_seen_once() -> None:
    words = [WordTime("1e99", 0.0, 2.0, (0, 4)), WordTime("1e99", 2.5, 4.0, (0, 4))]
    (cue,) = cues("1e99", words)
    assert (cue.text, cue.start_s, cue.end_s) == ("1e99", 0.0, 4.0)


def test_files_are_as_players_want_them() -> None:
    text = "Salt & <pepper>, please."
    words = [WordTime("Salt", 3661.25, 3661.5, (0, 4)), WordTime("&", 3661.5, 3662, (5, 6))]
    words += [WordTime("pepper", 3662, 3662.5, (8, 14)), WordTime("please", 3662.6, 3663.0, (17, 23))]
    made = cues(text, words)
    assert written(made, "srt") == "1\n01:01:01,250 --> 01:01:03,000\nSalt & pepper, please.\n"
    assert written(made, "vtt") == "WEBVTT\n\n01:01:01.250 --> 01:01:03.000\nSalt &amp; pepper, please.\n"
    assert "Salt <01:01:01.500>&amp; <01:01:02.000>pepper," in written(made, "vtt", by_word=True)
    (cue,) = json.loads(written(made, "json"))["cues"]
    assert (cue["start"], cue["end"], [word["word"] for word in cue["words"]]) == (
        *(3661.25, 3663.0),
        ["Salt", "&", "pepper", "please"],
    )
    assert written([], "srt") == ""


def test_the_suffix_chooses_the_kind() -> None:
    assert kind_of_file("a.b.VTT") == "vtt"
    with pytest.raises(InvalidInput, match=r"\.srt, \.vtt or \.json"):
        kind_of_file("captions.txt")


def hz(samples: np.ndarray) -> float:
    return float(np.count_nonzero(np.diff(np.signbit(samples)))) * SAMPLE_RATE / 2 / len(samples)


def test_half_an_hour_drifts_by_no_sample(tmp_path: Path) -> None:
    """After the onset that a cue grants to a word, the tone of its first letter begins in the samples themselves."""
    text = "The old bridge stands under deep water tonight. [pause:333ms] Nobody knows it, or says so. " * 440
    words: list[WordTime] = []
    n_samples, chunk_starts = 0, []
    with running(tone_engine(silent_voices(tmp_path))) as engine:
        for speech in engine.stream(text, delivery="whole"):
            words += speech.words
            chunk_starts.append(n_samples)
            n_samples += len(speech.samples)
            last = speech.samples
    assert n_samples > 1800 * SAMPLE_RATE
    made = cues(text, words)
    assert len(made) > 800
    for cue in made:
        start = round(cue.start_s * SAMPLE_RATE)
        assert abs(cue.start_s * SAMPLE_RATE - start) < 1e-4
        at = chunk_starts[bisect(chunk_starts, start) - 1]
        assert (start - at) % SAMPLES_PER_FRAME == 0  # a word begins with a frame of its chunk
    note = pitch_hz(SYMBOLS[made[-1].text[0].lower()])
    onset, letter = (last[start - at + frames * SAMPLES_PER_FRAME :][:SAMPLES_PER_FRAME] for frames in (0, 3))
    assert hz(letter) == pytest.approx(note, abs=25)
    assert hz(onset) != pytest.approx(note, abs=25)
