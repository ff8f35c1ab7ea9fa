"""One request being spoken: its chunks are made ahead of the caller and handed over in order."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field, replace
from math import ceil, inf

import numpy as np

from tutti.admission.start_delay import Start
from tutti.admission.ticket import Ticket
from tutti.audio.tempo import Tempo
from tutti.batching.job import Priority
from tutti.engine.batcher import Batcher
from tutti.engine.inflection import token_inflection
from tutti.engine.playback import FRAME_S, FRAMES_PER_TOKEN, Pacing, Playback
from tutti.engine.request import MAX_TEXT, CheckedRequest
from tutti.engine.row import Row, RowAudio
from tutti.engine.stats import BatchStats
from tutti.engine.word_times import (
    NO_SPEECH,
    covered_source,
    join,
    nothing_to_speak,
    scale_time,
    shift_source,
    shift_time,
    silence,
    word_times,
    words_starting_within,
)
from tutti.model.prosody import clamp_speed, combine, find_emotion, model_speed
from tutti.speech import MAX_PHONEMES, SAMPLE_RATE, Prosody, Samples, Speech, Utterance, is_pcm
from tutti.tasks import cancel_all
from tutti.text import vocab
from tutti.text.chunk import Chunk
from tutti.text.frontend import TextFrontend
from tutti.text.g2p_messages import OpenText
from tutti.text.incremental import Segment, Text, segments
from tutti.text.user_lexicon import UserLexicon
from tutti.trace import Trace, current_trace
from tutti.voices import Voice, Voices, resolve_aliases

log = logging.getLogger(__name__)

SILENCE_S = 5.0  # of a pause that are handed over at once; longer takes more memory in every stream
SAFETY_S = 0.1  # a chunk is due this long before it is played; larger: fewer gaps, tighter deadlines


@dataclass(frozen=True, slots=True, eq=False)
class PendingChunk:
    """A chunk in progress: its text, and the row that will carry its audio."""

    segment: Segment
    chunk: Chunk
    g2p_s: float
    estimated_s: float  # of audio, the pause included
    audio: asyncio.Future[RowAudio] | None = None  # of its first span; none for a bare pause
    tempo: float = 1.0  # by which its audio is made shorter

    def opened_tempo(self) -> Tempo | None:
        """What makes its audio shorter, span after span."""
        return None if self.tempo == 1 else Tempo(self.tempo)


@dataclass(slots=True, eq=False)
class Stream:
    """One request being spoken: its text, how it is spoken, and the clock of its listener."""

    number: int
    checked: CheckedRequest
    voice: Voice
    language: str
    lexicon: UserLexicon | None
    pacing: Pacing
    voices: Voices
    frontend: TextFrontend
    batcher: Batcher
    stats: BatchStats
    missing_symbols: frozenset[str] = frozenset()  # that its checkpoint does not have
    stand_ins: Mapping[str, str] = field(default_factory=lambda: vocab.STAND_INS)  # for those beyond Kokoro's
    ticket: Ticket = field(init=False)
    playback: Playback = field(init=False)
    trace: Trace = field(init=False, default_factory=current_trace.get)
    _pending: asyncio.Queue[PendingChunk | None] = field(init=False, default_factory=asyncio.Queue)
    _room: asyncio.Semaphore = field(init=False)  # chunks that may still be submitted
    _has_sent_audio: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.ticket = self.checked.request.ticket
        target_s = self.pacing.target(self.ticket.delivery)
        self.playback = Playback(self.ticket.clock_start_s(target_s, time.monotonic()), target_s, SAFETY_S)
        ahead = self.pacing.ahead if self.ticket.delivery == "live" else self.pacing.whole_ahead
        self._room = asyncio.Semaphore(1 + ahead)
        if self.ticket.max_start_s is None and self.ticket.delivery == "whole":
            self.ticket = self.ticket._replace(max_start_s=self.pacing.whole_max_start_s)

    @property
    def text(self) -> Text:
        return self.checked.request.text

    async def speeches(self, start: Start) -> AsyncGenerator[Speech]:
        """Yield the speech of each chunk, or of each span of a long one; closing cancels what was not yet spoken.

        `start` ends when its first chunk is queued: from then on the backlog of its worker counts it.
        """
        submitting = asyncio.create_task(self._submit(start))
        n_samples = 0
        try:
            with self.batcher.open_stream(self.number, self.ticket.caller):
                while (pending := await self._pending.get()) is not None:
                    chunk_starts_s = n_samples / SAMPLE_RATE
                    async with aclosing(self._chunk_speeches(pending)) as spans:
                        async for speech in spans:
                            n_samples += len(speech.samples)
                            yield shift_time(speech, chunk_starts_s)
                            del speech
                    self._room.release()
                    del pending
                await submitting  # raises what stopped it
        finally:
            start.end()
            await cancel_all([submitting])
            # An error in it refers to this frame: else the audio, which lies in files, would wait for the garbage
            # collector.
            del submitting

    async def _submit(self, start: Start) -> None:
        """Queue the chunks of the text as they arrive, as long as there is room."""
        n_rows = 0
        try:
            async with aclosing(self._chunks(start)) as chunks:
                async for segment, chunk, g2p_s in chunks:
                    await self._room.acquire()
                    if not chunk.words:
                        self.playback.reserve(chunk.pause_s)
                        self._pending.put_nowait(PendingChunk(segment, chunk, g2p_s, chunk.pause_s))
                        continue
                    row = self._row(chunk, n_rows)
                    estimated_s = row.estimated_frames * row.heard_frame_s + chunk.pause_s
                    row.position_s = self.playback.reserve(estimated_s)
                    row.n_remaining = self._n_remaining(segment, chunk)
                    start.end()
                    audio = self.batcher.speak(row)
                    n_rows += 1
                    self._pending.put_nowait(PendingChunk(segment, chunk, g2p_s, estimated_s, audio, row.tempo))
                    del row, audio  # both lead to the samples, and the next chunk may take seconds
        finally:
            self._pending.put_nowait(None)

    async def prepare(self) -> "PreparedText":
        """Read the whole text and turn it into rows; nothing is queued."""
        pending, rows = list[PendingChunk](), list[Row]()
        async with aclosing(self._chunks()) as chunks:
            async for segment, chunk, g2p_s in chunks:
                row = self._row(chunk, len(rows)) if chunk.words else None
                pending.append(PendingChunk(segment, chunk, g2p_s, 0.0, tempo=row.tempo if row else 1.0))
                rows += [row] if row else []
        return PreparedText(self, tuple(pending), tuple(rows))

    def _n_remaining(self, segment: Segment, chunk: Chunk) -> int:
        """Characters after a chunk, if the text is known to its end."""
        return max(0, len(self.text) - segment.offset - chunk.source[1]) if isinstance(self.text, str) else 0

    async def _chunks(self, start: Start | None = None) -> AsyncGenerator[tuple[Segment, Chunk, float]]:
        """The text in chunks as it arrives, each with its segment and the seconds that its G2P took.

        `start`: of a stream whose rows are queued.
        """
        whole_text, speed = self.ticket.delivery != "live", self.checked.params.speed
        checkpoint, pacing = self.checked.checkpoint, self.pacing
        is_incremental = checkpoint in pacing.span_rules
        n_before = start.n_before if start else 0
        pace = self.batcher.chunk_pace(checkpoint, pacing.target_s, n_before, is_incremental=is_incremental)
        pace = pace._replace(speed=speed, joined_symbols=pacing.joined_symbols)
        symbol_s = FRAMES_PER_TOKEN * FRAME_S / clamp_speed(speed)
        template = OpenText(
            "", self.language, self.lexicon, whole_text, pace, self.checked.options, symbol_s, self.ticket.caller
        )
        async with aclosing(self._segments()) as texts:
            async for segment in texts:
                if not isinstance(self.text, str):
                    self.playback.text_arrived(time.monotonic())
                if segment.pause_s:
                    yield segment, Chunk((), segment.pause_s), 0.0
                text = template._replace(text=segment.marked_text)
                chunks = self.frontend.chunks(text, self._next_due_s)
                async with aclosing(_timed(chunks, self.trace, start)) as timed:
                    async for chunk, g2p_s in timed:
                        yield segment, self._naming_missing(self._in_its_symbols(chunk)), g2p_s

    def _segments(self) -> AsyncGenerator[Segment]:
        checked = self.checked
        return segments(self.text, MAX_TEXT, checked.request.pause_s, checked.options.pauses)

    def _in_its_symbols(self, chunk: Chunk) -> Chunk:
        """The chunk with the nearest symbols that its checkpoint has."""
        if self.stand_ins.keys().isdisjoint(chunk.phonemes):
            return chunk
        table = str.maketrans(dict(self.stand_ins))
        return chunk._replace(
            words=tuple(word._replace(phonemes=word.phonemes.translate(table)) for word in chunk.words)
        )

    def _naming_missing(self, chunk: Chunk) -> Chunk:
        """The chunk with the symbols that its checkpoint cannot speak, and makes a pause of, among those dropped."""
        missing = self.missing_symbols and [symbol for symbol in chunk.phonemes if symbol in self.missing_symbols]
        return chunk._replace(dropped=(*chunk.dropped, *missing)) if missing else chunk

    def _next_due_s(self) -> float:
        """When the audio is needed that follows all that is sent or being made."""
        return self.playback.deadline_s(self.playback.sent_s + self.playback.pending_s)

    def _row(self, chunk: Chunk, index: int) -> Row:
        """The chunk as a row, with the parameters of the request and of the marks in the text."""
        tokens, style, params = vocab.encode(chunk.phonemes), chunk.inline_style, self.checked.params
        voice = self.voice if style.voice is None else self.voices.get(resolve_aliases(style.voice, params.voice_names))
        prosody = Prosody(params.pitch, params.pitch_range, params.energy)
        emotion = find_emotion(style.emotion or "neutral")
        speed = clamp_speed(params.speed * style.rate * emotion.speed)
        slower = model_speed(speed)
        tempo = speed / slower
        utterance = Utterance(
            tokens,
            voice.style(min(len(tokens) - 2, MAX_PHONEMES)),
            slower,
            params.seed,
            combine(combine(prosody, Prosody(pitch=style.pitch)), emotion.prosody),
            None if params.pcm_volume is None else params.pcm_volume * style.volume,
            token_inflection(chunk, speed, round(tempo * self.checked.options.pauses.comma)),
        )
        is_first = index < self.pacing.first_chunks
        checkpoint, delivery = self.checked.checkpoint, self.ticket.delivery
        priority: Priority = "bulk" if delivery == "bulk" else "first" if is_first else "next"
        start, end = chunk.source
        return Row(
            utterance,
            checkpoint,
            self.number,
            priority,
            self.playback,
            caller=self.ticket.caller,
            n_characters=end - start,
            span_rules=self.pacing.span_rules.get(checkpoint) if delivery == "live" else None,
            starts_stream=index == 0,
            request_id=self.ticket.id,
            chunk=index,
            max_start_s=self.ticket.max_start_s,
            tempo=tempo,
            trace=self.trace,
        )

    async def _chunk_speeches(self, pending: PendingChunk) -> AsyncGenerator[Speech]:
        """Yield the speech of one chunk, or of each of its spans; words are timed from the start of the chunk."""
        future, estimated_s, start_s = pending.audio, pending.estimated_s, 0.0
        tempo = pending.opened_tempo()
        pause_s, *more_s = _pieces_of_pause(pending.chunk.pause_s)
        estimated_s -= sum(more_s)
        if future is None:
            yield self._record_sent(self.speech_of(pending, None, 0.0, pause_s), estimated_s)
        while future is not None:
            audio = await future
            if start_s == 0.0:  # now its length is known
                estimated_s = int(audio.durations.sum()) * FRAME_S / pending.tempo + pause_s
            if tempo:  # a filter over seconds of audio takes too long for the event loop
                speech = await asyncio.to_thread(self.speech_of, pending, audio, start_s, pause_s, tempo)
            else:
                speech = self.speech_of(pending, audio, start_s, pause_s)
            start_s += len(audio.samples) / SAMPLE_RATE
            future = audio.next
            yield self._record_sent(speech, speech.duration_s if future else estimated_s)
            estimated_s -= speech.duration_s
            del audio, speech
        for piece_s in more_s:
            yield self._record_sent(Speech(self._silence(piece_s), (), (0, 0)), piece_s)

    def _silence(self, length_s: float) -> Samples:
        return silence(length_s, np.float32 if self.checked.params.pcm_volume is None else np.int16)

    def speech_of(
        self, pending: PendingChunk, audio: RowAudio | None, start_s: float, pause_s: float, tempo: Tempo | None = None
    ) -> Speech:
        """The audio with the words that start in it, timed from the start of the chunk; the pause at its end.

        `start_s`: in the audio as the model makes it; `tempo` makes it shorter.
        """
        chunk, params, is_first = pending.chunk, self.checked.params, start_s == 0.0
        if audio is None:
            return Speech(self._silence(pause_s), (), chunk.source, chunk.dropped, notices=chunk.notices)
        is_last = audio.next is None
        pause = silence(pause_s if is_last else 0.0, audio.samples.dtype)
        samples = tempo.write(audio.samples, last=is_last) if tempo else audio.samples
        samples = np.concatenate([samples, pause]) if len(pause) else samples
        if chunk.inline_style.volume != 1 and not is_pcm(samples):  # the worker applies it to integers
            samples = samples * np.float32(chunk.inline_style.volume)
        words = word_times(pending.segment.marked_text, chunk, audio.durations) if params.with_words else ()
        source = chunk.source
        if not (is_first and is_last):
            end_s = start_s + len(audio.samples) / SAMPLE_RATE
            words = words_starting_within(words, -inf if is_first else start_s, inf if is_last else end_s)
            source = covered_source(words)
        words = scale_time(words, 1 / pending.tempo)
        timing = replace(audio.timing, g2p_s=pending.g2p_s if is_first else 0.0)
        dropped, notices = (chunk.dropped, chunk.notices) if is_first else ((), ())
        return shift_source(Speech(samples, words, source, dropped, timing, notices), pending.segment.offset)

    def _record_sent(self, speech: Speech, estimated_s: float) -> Speech:
        """Record in the playback clock and the statistics that a speech is handed over now; return it."""
        now, playback, ticket, met_target = time.monotonic(), self.playback, self.ticket, True
        in_time = playback.sent(now, speech.duration_s, estimated_s)
        if not self._has_sent_audio and speech.timing.batch_rows:
            self._has_sent_audio = True
            is_written = isinstance(self.text, str)
            requested_s = ticket.arrived_s if is_written and ticket.arrived_s is not None else playback.requested_s
            met_target = now - requested_s <= playback.target_s
            if ticket.arrived_s is None:
                self.stats.first_audio(now - requested_s, in_time=met_target)
            else:
                speech = replace(speech, timing=replace(speech.timing, requested_s=requested_s))
            if ticket.delivery == "live":
                self.batcher.move_deadlines(self.number)
        self.stats.audio_sent(speech.duration_s, in_time=in_time or ticket.delivery == "bulk", met_target=met_target)
        return speech


@dataclass(frozen=True, slots=True, eq=False)
class PreparedText:
    """The rows of one text, and how their audio becomes its speech."""

    stream: Stream
    chunks: tuple[PendingChunk, ...]
    rows: tuple[Row, ...]  # of those with words

    @property
    def checkpoint(self) -> str:
        return self.stream.checked.checkpoint

    def speech(self, audio: Sequence[RowAudio]) -> Speech:
        """The speech of the whole text, from the audio of its rows in order; raise NothingToSpeak if it has none."""
        of_rows, speeches, n_samples = iter(audio), [], 0
        for pending in self.chunks:
            of_row = next(of_rows) if pending.chunk.words else None
            speech = self.stream.speech_of(pending, of_row, 0.0, pending.chunk.pause_s, pending.opened_tempo())
            speeches.append(shift_time(speech, n_samples / SAMPLE_RATE))
            n_samples += len(speech.samples)
        if not n_samples:
            raise nothing_to_speak(join([NO_SPEECH, *speeches]))
        return join(speeches)


def _pieces_of_pause(pause_s: float) -> list[float]:
    """A pause in seconds, cut into pieces: one minute of silence at once would take 6 MB in every stream."""
    n_pieces = max(1, ceil(pause_s / SILENCE_S))
    return [min(SILENCE_S, pause_s - n * SILENCE_S) for n in range(n_pieces)]


async def _timed(
    chunks: AsyncIterator[Chunk], trace: Trace, start: Start | None
) -> AsyncGenerator[tuple[Chunk, float]]:
    """Each chunk with the seconds that it took; while the stream waits for one, `start` counts it as reading."""
    while True:
        started_s = time.monotonic()
        with start.reading() if start else nullcontext():
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        ended_s = time.monotonic()
        trace.record_step("g2p", started_s, ended_s)
        yield chunk, ended_s - started_s
