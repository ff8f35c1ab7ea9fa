"""Captions: every word in its place and at its time, readable lines, and no drift in long texts."""

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
from tutti.captions import MAX_CUE_S, MAX_LINE, MIN_CUE_S, Cue, caption_format, cues, render
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
    shown = "".join(piece.text for cue in cues(text, words) for line in cue.lines for piece in line)
    letters = re.compile(r"[^\w$]")
    assert letters.sub("", shown) == letters.sub("", "".join(word.word for word in words))


@given(spoken_texts())
def test_cues_keep_the_limits_of_length_and_duration(spoken: tuple[str, list[WordTime]]) -> None:
    result = cues(*spoken)
    for cue in result:
        lines = cue.text.split("\n")
        assert 1 <= len(lines) <= 2
        assert all(0 < len(line) <= MAX_LINE and line == line.strip() for line in lines)
        n_pieces = sum(map(len, cue.lines))
        assert cue.end_s - cue.start_s <= MAX_CUE_S + 1e-9 or n_pieces == 1
    for cue, after in pairwise(result):
        assert cue.end_s <= after.start_s
        assert cue.end_s - cue.start_s >= MIN_CUE_S - 1e-9 or cue.end_s == after.start_s or leaves_no_room(cue, after)
    if result:
        assert result[-1].end_s - result[-1].start_s >= MIN_CUE_S - 1e-9


def leaves_no_room(cue: Cue, after: Cue) -> bool:
    """Tell whether the next cue starts too early to show this one for MIN_CUE_S."""
    return after.start_s - cue.start_s < MIN_CUE_S


@given(spoken_texts())
def test_a_cue_starts_with_its_first_word(spoken: tuple[str, list[WordTime]]) -> None:
    text, words = spoken
    starts = {word.start_s for word in words if len(word.word) <= MAX_LINE}
    long = any(len(word.word) > MAX_LINE for word in words)
    assert long or all(cue.start_s in starts for cue in cues(text, words))


def word_times(text: str, each_s: float = 0.3, apart_s: float = 0.1) -> list[WordTime]:
    found = enumerate(re.finditer(r"[\w'$-]+(?:\.\w+)?", text))
    return [WordTime(m[0], i * (each_s + apart_s), i * (each_s + apart_s) + each_s, m.span()) for i, m in found]


def test_cues_end_at_sentences_and_clauses() -> None:
    text = "Here is a bridge. Under it, the water that nobody has ever crossed runs very deep, and the night is long."
    assert [cue.text for cue in cues(text, word_times(text, 0.2, 0.08))] == [
        "Here is a bridge.",
        "Under it, the water that nobody\nhas ever crossed runs very deep,",
        "and the night is long.",
    ]


def test_punctuation_stays_with_its_word_and_marks_are_removed() -> None:
    text = "He said: “It’s (almost) *new*” — [rate:2]for[/rate] $5.20![^1]"
    words = [WordTime(w, i, i + 0.9, (text.index(w), text.index(w) + len(w))) for i, w in
             enumerate(["He", "said", "It’s", "almost", "new", "for", "$5.20"])]  # fmt: skip
    assert (
        " ".join(cue.text.replace("\n", " ") for cue in cues(text, words))
        == "He said: “It’s (almost) new” — for $5.20!"
    )


def test_a_word_split_over_two_chunks_is_shown_once() -> None:
    words = [WordTime("1e99", 0.0, 2.0, (0, 4)), WordTime("1e99", 2.5, 4.0, (0, 4))]
    (cue,) = cues("1e99", words)
    assert (cue.text, cue.start_s, cue.end_s) == ("1e99", 0.0, 4.0)


def test_srt_vtt_and_json_files() -> None:
    text = "Salt & <pepper>, please."
    words = [WordTime("Salt", 3661.25, 3661.5, (0, 4)), WordTime("&", 3661.5, 3662, (5, 6))]
    words += [WordTime("pepper", 3662, 3662.5, (8, 14)), WordTime("please", 3662.6, 3663.0, (17, 23))]
    result = cues(text, words)
    assert render(result, "srt") == "1\n01:01:01,250 --> 01:01:03,000\nSalt & pepper, please.\n"
    assert render(result, "vtt") == "WEBVTT\n\n01:01:01.250 --> 01:01:03.000\nSalt &amp; pepper, please.\n"
    assert "Salt <01:01:01.500>&amp; <01:01:02.000>pepper," in render(result, "vtt", by_word=True)
    (cue,) = json.loads(render(result, "json"))["cues"]
    assert (cue["start"], cue["end"], [word["word"] for word in cue["words"]]) == (
        *(3661.25, 3663.0),
        ["Salt", "&", "pepper", "please"],
    )
    assert render([], "srt") == ""


def test_the_suffix_selects_the_format() -> None:
    assert caption_format("a.b.VTT") == "vtt"
    with pytest.raises(InvalidInput, match=r"\.srt, \.vtt or \.json"):
        caption_format("captions.txt")


def hz(samples: np.ndarray) -> float:
    return float(np.count_nonzero(np.diff(np.signbit(samples)))) * SAMPLE_RATE / 2 / len(samples)


@pytest.mark.slow
def test_half_an_hour_has_no_drift(tmp_path: Path) -> None:
    """Behind the onset of a word, the samples hold the tone of its first letter."""
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
    result = cues(text, words)
    assert len(result) > 800
    for cue in result:
        start = round(cue.start_s * SAMPLE_RATE)
        assert abs(cue.start_s * SAMPLE_RATE - start) < 1e-4
        at = chunk_starts[bisect(chunk_starts, start) - 1]
        assert (start - at) % SAMPLES_PER_FRAME == 0  # a word begins with a frame of its chunk
    note = pitch_hz(SYMBOLS[result[-1].text[0].lower()])
    onset, letter = (last[start - at + frames * SAMPLES_PER_FRAME :][:SAMPLES_PER_FRAME] for frames in (0, 3))
    assert hz(letter) == pytest.approx(note, abs=25)
    assert hz(onset) != pytest.approx(note, abs=25)


def spoken(text: str, word_s: float) -> list[WordTime]:
    """Every word of a text as long as the others, with a short silence behind it."""
    step_s = word_s + 0.05
    return [
        WordTime(match[0], n * step_s, n * step_s + word_s, match.span())
        for n, match in enumerate(re.finditer(r"[\w$%]+", text))
    ]


@pytest.mark.parametrize("word_s", [0.2, 0.6])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# The Sea\n\nIt was cold.", ["The Sea", "It was cold."]),
        ("## Costs\n\n| Item | Price |\n|---|---|\n| Tea | $3 |", ["Costs", "Item, Price", "Tea, $3"]),
        ("1. Fly to Rome\n2. Take the train\n3. Walk", ["1. Fly to Rome", "2. Take the train", "3. Walk"]),
        ("Pros:\n- Fast\n- Small", ["Pros:", "Fast", "Small"]),
        ("a) Check the oil\nb) Go", ["a) Check the oil", "b) Go"]),
    ],
)
def test_headings_rows_and_items_are_lines_of_their_own(text: str, lines: list[str], word_s: float) -> None:
    assert [line for cue in cues(text, spoken(text, word_s)) for line in cue.text.split("\n")] == lines


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8), st.sampled_from([0.1, 0.4, 0.9]))
def test_a_list_number_is_never_cut_from_its_item(lengths: list[int], word_s: float) -> None:
    text = "\n".join(f"{n}. " + " ".join(["house"] * length) for n, length in enumerate(lengths, 1))
    for cue in cues(text, spoken(text, word_s)):
        assert not re.search(r"\d\.$", cue.text)
