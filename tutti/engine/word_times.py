"""Word times in seconds, pauses, and the joining of speeches."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import median

import numpy as np
from numpy.typing import DTypeLike

from tutti.errors import NothingToSpeak
from tutti.speech import LAG_FRAMES, SAMPLE_RATE, SAMPLES_PER_FRAME, PhonemeTime, Samples, Speech, WordTime
from tutti.text import vocab
from tutti.text.chunk import Chunk
from tutti.text.marks import shown_word

# Corrections of Kokoro's durations, measured against forced alignments (benchmarks/words.py): a phoneme is heard one
# frame early; a word begins in the space before it; the last phoneme before a pause contains the pause.
ONSET_FRAMES = 2  # last frames of a pause or punctuation that belong to the next word; of a space, all
LAST_PHONEME = 2  # median durations for which the last phoneme before a pause is heard; the rest is silence
STRESS_MARKS, MODIFIERS = "ˈˌ", "ːʰʲ\u0303↓→↗↘"
BREATH = 4  # median durations beyond which a phoneme at the end of a word contains a pause, also without punctuation


def word_times(text: str, chunk: Chunk, durations: np.ndarray) -> tuple[WordTime, ...]:
    """Start and end of each word of the original, from the durations of its symbols.

    Words that read the same part of the original ("five dollars" for "$5") are one word.
    """
    lengths: list[int] = durations.tolist()
    ends = list(accumulate(lengths))  # ends[0]: the pad before the first symbol, ends[n]: the n-th symbol
    symbols = chunk.phonemes
    median_length = median(lengths[1:-1])
    times: list[WordTime] = []
    at = 0
    for word in chunk.words:
        first = at + len(word.before)
        last = first + len(word.phonemes)
        at += len(word.symbols)
        if not word.phonemes:
            continue
        start_s = _seconds(ends[first] - _onset(symbols[first - 1] if first else "", lengths[first]))
        end_s = _seconds(ends[last] - _silence_in(symbols[last : last + 1], lengths[last], median_length))
        sounds = _phoneme_times(word.phonemes, [start_s, *map(_seconds, ends[first + 1 : last]), end_s])
        if times and times[-1].span == word.source:
            times[-1] = replace(times[-1], end_s=end_s, phonemes=times[-1].phonemes + sounds)
        else:
            shown, voice = shown_word(text[slice(*word.source)]), chunk.inline_style.voice
            times.append(WordTime(shown, start_s, end_s, word.source, sounds, voice))
    return tuple(times)


def _phoneme_times(phonemes: str, edges_s: Sequence[float]) -> tuple[PhonemeTime, ...]:
    """The sounds between these edges: a stress mark belongs to the next one, a mark of length to the one before."""
    times: list[PhonemeTime] = []
    start_s = edges_s[0]
    for symbol, end_s in zip(phonemes, edges_s[1:], strict=True):
        if symbol in STRESS_MARKS:
            continue
        if symbol in MODIFIERS and times:
            times[-1] = PhonemeTime(times[-1].phoneme + symbol, times[-1].start_s, end_s)
        else:
            times.append(PhonemeTime(symbol, start_s, end_s))
        start_s = end_s
    if times and start_s < edges_s[-1]:  # a stress mark at the end
        times[-1] = PhonemeTime(times[-1].phoneme, times[-1].start_s, edges_s[-1])
    return tuple(times)


def _onset(before: str, n_frames: int) -> int:
    """Frames of the symbol before a word in which the word is heard already."""
    if before == " ":
        return n_frames
    return min(n_frames, ONSET_FRAMES) if before == "" or before in vocab.PUNCTUATION else 0


def _silence_in(after: str, n_frames: int, median_length: float) -> int:
    """Frames of a word's last symbol in which nothing is heard, by the symbol after it."""
    if after == "" or after in vocab.PUNCTUATION or (after == " " and n_frames > BREATH * median_length):
        return max(0, n_frames - round(LAST_PHONEME * median_length))
    return 0


def _seconds(frame: int) -> float:
    return max(0, frame - LAG_FRAMES) * SAMPLES_PER_FRAME / SAMPLE_RATE


def words_starting_within(words: Sequence[WordTime], from_s: float, to_s: float) -> tuple[WordTime, ...]:
    """The words that start in this time; a word belongs to the span where it starts."""
    return tuple(word for word in words if from_s <= word.start_s < to_s)


def covered_source(words: Sequence[WordTime]) -> tuple[int, int]:
    """The part of the original text that these words cover."""
    return min((word.span[0] for word in words), default=0), max((word.span[1] for word in words), default=0)


def shift_time(speech: Speech, by_s: float) -> Speech:
    """The same speech, its words timed from the start of the whole audio."""
    if not by_s:
        return speech
    return replace(speech, words=tuple(_shift_word(word, by_s) for word in speech.words))


def scale_time(words: tuple[WordTime, ...], factor: float) -> tuple[WordTime, ...]:
    """The words of audio that is so many times as long."""
    return words if factor == 1 else tuple(_scale_word(word, factor) for word in words)


def _scale_word(word: WordTime, factor: float) -> WordTime:
    sounds = (PhonemeTime(sound.phoneme, factor * sound.start_s, factor * sound.end_s) for sound in word.phonemes)
    return WordTime(word.word, factor * word.start_s, factor * word.end_s, word.span, tuple(sounds), word.voice)


def _shift_word(word: WordTime, by_s: float) -> WordTime:
    sounds = (PhonemeTime(sound.phoneme, sound.start_s + by_s, sound.end_s + by_s) for sound in word.phonemes)
    return WordTime(word.word, word.start_s + by_s, word.end_s + by_s, word.span, tuple(sounds), word.voice)


def shift_source(speech: Speech, by: int) -> Speech:
    """The same speech, its offsets counted from the start of the whole text."""
    if not by:
        return speech
    words = (replace(word, span=(word.span[0] + by, word.span[1] + by)) for word in speech.words)
    start, end = speech.span
    return replace(speech, words=tuple(words), span=(start + by, end + by) if end else speech.span)


def silence(length_s: float, dtype: DTypeLike = np.float32) -> Samples:
    return np.zeros(round(length_s * SAMPLE_RATE), dtype)


def join(speeches: Sequence[Speech]) -> Speech:
    """Consecutive speeches as one."""
    samples: Samples = np.concatenate([speech.samples for speech in speeches])
    spans = [speech.span for speech in speeches if speech.words]
    return Speech(
        samples,
        tuple(word for speech in speeches for word in speech.words),
        (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, 0),
        tuple(symbol for speech in speeches for symbol in speech.dropped),
        notices=tuple(dict.fromkeys(notice for speech in speeches for notice in speech.notices)),
    )


NO_SPEECH = Speech(silence(0.0), (), (0, 0))


def carrying(unspoken: Speech, speech: Speech) -> Speech:
    """The speech, with what the one before it names that has no audio."""
    if unspoken is NO_SPEECH and not speech.notices:
        return speech
    notices = dict.fromkeys((*unspoken.notices, *speech.notices))
    return replace(speech, dropped=(*unspoken.dropped, *speech.dropped), notices=tuple(notices))


def nothing_to_speak(unspoken: Speech) -> NothingToSpeak:
    """The error for a text without any sound: it names what the text has instead."""
    symbols = " ".join(dict.fromkeys(unspoken.dropped[:20]))
    hint = unspoken.notices[0] if unspoken.notices else "give some words"
    message = f"the text has nothing that can be said, only: {symbols}; {hint}"
    if not unspoken.dropped:
        message = "the text is empty; give some words to say"
    return NothingToSpeak(message, param="input", dropped=unspoken.dropped, notices=unspoken.notices)
