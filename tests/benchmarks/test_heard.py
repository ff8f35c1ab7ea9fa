"""By ear: cuts do not matter; a lost, doubled or exchanged part, and another voice, do."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.heard import BORDER_HZ, Heard, clips_of, fault, listen, missed_words, parts_between, pitch_hz
from benchmarks.soak import Answer, Case, Tally, explain, header, hear, mulaw_values
from tutti.audio.pcm import mulaw_table
from tutti.speech import SAMPLE_RATE, Samples

TEXT = "Yes, I can do that for you."
ALONE = Heard("yes i can do that for you", 1.6, 3.2, (221.0, 226.0))


def tone(hz: float, seconds: float, sample_rate: int = SAMPLE_RATE) -> Samples:
    """A sound with overtones, as a voice has."""
    at_s = np.arange(int(seconds * sample_rate)) / sample_rate
    return sum(np.sin(2 * np.pi * n * hz * at_s) / n for n in (1, 2, 3)).astype(np.float32) / 4  # type: ignore[union-attr]


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * SAMPLE_RATE), np.float32)


class Parrot:
    """Hears one word for each tone: its pitch, rounded, as a word."""

    def transcribe(self, samples: Samples) -> str:
        parts = parts_between(samples, 16_000)
        hz = (pitch_hz(samples[int(a * 16_000) : int(b * 16_000)], 16_000) for a, b in parts)
        return " ".join("abcdefgh"[min(7, round(each / 40))] * 3 for each in hz)


def test_other_cuts_are_right() -> None:
    assert fault(TEXT, ALONE, replace(ALONE, length_s=2.2, spoken_s=1.5, pitches_hz=(205.0,))) == ""


def test_what_the_recogniser_always_mishears_is_right() -> None:
    alone = replace(ALONE, words="yes i can do that for ewe and me")
    assert fault(TEXT, alone, alone) == ""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("i can do that for you", "missing"),
        ("yes i can do that", "missing"),
        ("yes yes i can do that for you", "too many"),
        ("yes i can do that for you yes i can do that for you", "too many"),
        ("the train leaves in four minutes now", "other words"),
        ("", "missing"),
    ],
)
def test_lost_doubled_and_other_words_are_wrong(words: str, found: str) -> None:
    assert found in fault(TEXT, ALONE, replace(ALONE, words=words))


def test_speech_without_words_is_wrong() -> None:
    assert "speech" in fault(TEXT, ALONE, replace(ALONE, spoken_s=2.4))


def test_one_part_by_the_other_voice_is_wrong() -> None:
    assert "voice" in fault(TEXT, ALONE, replace(ALONE, pitches_hz=(221.0, 112.0)))


def test_a_whole_answer_has_the_length_of_one_alone() -> None:
    other = replace(ALONE, length_s=3.4)
    assert "length" in fault(TEXT, ALONE, other, is_whole=True)
    assert fault(TEXT, ALONE, other) == ""


@pytest.mark.parametrize(
    ("heard", "n"), [("a b c d", 0), ("a c d", 1), ("a d", 2), ("a b x y c d", 2), ("a x c d", 0), ("ab c d", 0)]
)
def test_words_in_a_row_are_counted(heard: str, n: int) -> None:
    assert missed_words(["a", "b", "c", "d"], heard.split()) == n


@pytest.mark.parametrize("hz", [105.0, 140.0, 190.0, 240.0])
@pytest.mark.parametrize("sample_rate", [8_000, SAMPLE_RATE])
def test_the_pitch_is_that_of_the_voice(hz: float, sample_rate: int) -> None:
    assert pitch_hz(tone(hz, 0.5, sample_rate), sample_rate) == pytest.approx(hz, rel=0.04)


def test_noise_has_no_pitch() -> None:
    assert pitch_hz(np.random.default_rng(1).normal(size=12_000).astype(np.float32), SAMPLE_RATE) == 0


def test_parts_lie_between_the_pauses() -> None:
    samples = np.concatenate([silence(0.2), tone(200, 0.5), silence(0.3), tone(200, 1.0), silence(0.1)])
    assert np.allclose(parts_between(samples), [(0.2, 0.7), (1.0, 2.0)], atol=0.011)
    assert parts_between(silence(1.0)) == []
    assert parts_between(silence(0.0)) == []


def test_clips_hold_all_parts_once() -> None:
    parts = [(0.1, 4.0), (4.5, 9.0), (9.5, 13.0), (13.2, 40.0), (41.0, 42.0)]
    clips = list(clips_of(parts, 12.0))
    assert clips == [(0.1, 9.0), (9.5, 13.0), (13.2, 40.0), (41.0, 42.0)]


def test_the_bytes_of_mulaw_are_decoded() -> None:
    steps = np.arange(-32_000, 32_001, 100, dtype=np.int16)
    decoded = mulaw_values()[mulaw_table()[steps.view(np.uint16)]] * 32768
    assert np.all(np.abs(decoded - steps) <= np.maximum(8, np.abs(steps) / 16))


def answer(case: Case, parts: Sequence[Samples]) -> Answer:
    samples = np.concatenate([np.concatenate([part, silence(0.3)]) for part in parts])
    pcm = (samples * 32767).astype("<i2").tobytes()
    return Answer(case, "7f", pcm, ((0.1, len(pcm)),))


def test_wrong_answers_are_counted_and_kept(tmp_path: Path) -> None:
    case = Case("fff ggg fff hhh", "pcm", stream=True)
    parts = [tone(200, 0.5), tone(240, 0.5), tone(200, 0.5), tone(280, 0.5)]
    right, lost, doubled = answer(case, parts), answer(case, parts[:3]), answer(case, [*parts[:2], *parts[1:]])
    crossed = answer(case, [tone(110, 0.5), *parts[1:]])
    tally = Tally(sent=4, answers=[right, lost, doubled, crossed])
    tally.ended["held"] = 4
    for _ in hear({case: right}, {"faults": tally}, cast(Any, Parrot()), tmp_path / "wrong"):
        pass
    row = tally.row()
    assert (row["held"], row["wrong"], row["not_heard"]) == (1, 3, 0)
    assert sorted(path.name for path in (tmp_path / "wrong").iterdir()) == [
        f"faults-{n}.{suffix}" for n in (2, 3, 4) for suffix in ("json", "wav")
    ]
    about = json.loads((tmp_path / "wrong" / "faults-2.json").read_text())
    assert about["text"] == case.text
    assert about["fault"]
    assert about["parts"] == [[0.1, len(lost.audio)]]
    assert listen(right.samples, cast(Any, Parrot())).words == case.text
    assert min(listen(crossed.samples, cast(Any, Parrot())).pitches_hz) < BORDER_HZ


def test_only_what_broke_off_because_its_process_was_killed_is_explained() -> None:
    tally = Tally(sent=3, broken=["a1", "b2"])
    tally.ended["lost"] = 3
    explain({"faults": tally}, "tutti.server cut id=a1 code=worker_lost\ntutti.server cut id=b2 code=timeout\n")
    assert (tally.row()["lost"], tally.row()["explained"]) == (2, 1)


def test_a_header_is_found_whatever_its_case() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nX-Request-Id: 7f\r\n\r\n"
    assert header(head, b"x-request-id") == b"7f"
    assert header(head, b"content-length") == b""
