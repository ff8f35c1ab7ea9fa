"""From rows to one stream of speech: word times in seconds, pauses, joins."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Samples, Speech, WordTime
from tutti.text.chunk import Chunk
from tutti.text.marks import bare


def word_times(text: str, chunk: Chunk, durations: np.ndarray) -> tuple[WordTime, ...]:
    """When each word of the original is heard: the frames of its symbols, added up.

    Words that read the same stretch of the original ("five dollars" for "$5") are one word to the listener.
    """
    ends = np.cumsum(durations) * (SAMPLES_PER_FRAME / SAMPLE_RATE)  # ends[0]: the pad before the first symbol
    times: list[WordTime] = []
    at = 0
    for word in chunk.words:
        first = at + len(word.before)
        last = first + len(word.phonemes)
        at += len(word.symbols)
        if not word.phonemes:
            continue
        start_s, end_s = float(ends[first]), float(ends[last])
        if times and times[-1].span == word.span:
            times[-1] = replace(times[-1], end_s=end_s)
        else:
            times.append(WordTime(bare(text[slice(*word.span)]), start_s, end_s, word.span))
    return tuple(times)


def later(speech: Speech, by_s: float) -> Speech:
    """The same speech, its words timed from the start of the whole audio."""
    words = (replace(word, start_s=word.start_s + by_s, end_s=word.end_s + by_s) for word in speech.words)
    return replace(speech, words=tuple(words))


def placed(speech: Speech, shift: int) -> Speech:
    """The same speech, its places counted from where the whole text begins."""
    words = (replace(word, span=(word.span[0] + shift, word.span[1] + shift)) for word in speech.words)
    start, end = speech.span
    return replace(speech, words=tuple(words), span=(start + shift, end + shift) if end else speech.span)


def silence(length_s: float) -> Samples:
    return np.zeros(round(length_s * SAMPLE_RATE), np.float32)


def join(speeches: Sequence[Speech]) -> Speech:
    """Consecutive speeches as one."""
    samples: Samples = np.concatenate([speech.samples for speech in speeches])
    spans = [speech.span for speech in speeches if speech.words]
    return Speech(
        samples,
        tuple(word for speech in speeches for word in speech.words),
        (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, 0),
        tuple(symbol for speech in speeches for symbol in speech.dropped),
    )
