"""A text in rows for the model that nobody has queued: its caller runs them, in batches of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tutti.engine.row import Row, RowAudio
from tutti.engine.stream import PendingChunk, Stream
from tutti.engine.word_times import join, shift_time, silence
from tutti.errors import NothingToSpeak
from tutti.speech import SAMPLE_RATE, Speech

NO_SPEECH = Speech(silence(0.0), (), (0, 0))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedText:
    """The rows of one text, and how their audio becomes its speech."""

    stream: Stream
    chunks: tuple[tuple[PendingChunk, Row | None], ...]  # without a row: a bare pause
    rows: tuple[Row, ...]

    @property
    def checkpoint(self) -> str:
        return self.stream.checked.checkpoint

    def speech(self, audio: Sequence[RowAudio]) -> Speech:
        """The speech of the whole text, from the audio of its rows in order; raise NothingToSpeak if it has none."""
        of_rows, speeches, n_samples = iter(audio), [], 0
        for pending, row in self.chunks:
            speech = self.stream.chunk_speech(pending, None if row is None else next(of_rows))
            speeches.append(shift_time(speech, n_samples / SAMPLE_RATE))
            n_samples += len(speech.samples)
        if not n_samples:
            raise nothing_to_speak(join([NO_SPEECH, *speeches]))
        return join(speeches)


async def prepare(stream: Stream) -> PreparedText:
    """Read the whole text of a stream."""
    chunks = tuple([pair async for pair in stream.rows()])
    return PreparedText(stream, chunks, tuple(row for _, row in chunks if row is not None))


def carrying(silent: Sequence[Speech], speech: Speech) -> Speech:
    """The speech, with what those before it name that have no audio."""
    if not silent and not speech.notices:
        return speech
    every = [*silent, speech]
    return replace(
        speech,
        dropped=tuple(symbol for each in every for symbol in each.dropped),
        notices=tuple(dict.fromkeys(notice for each in every for notice in each.notices)),
    )


def nothing_to_speak(unspoken: Speech) -> NothingToSpeak:
    """The error for a text without any sound: it names what the text has instead."""
    symbols = " ".join(dict.fromkeys(unspoken.dropped[:20]))
    hint = unspoken.notices[0] if unspoken.notices else "give some words"
    message = f"the text has nothing that can be said, only: {symbols}; {hint}"
    if not unspoken.dropped:
        message = "the text is empty; give some words to say"
    return NothingToSpeak(message, param="input", dropped=unspoken.dropped, notices=unspoken.notices)
