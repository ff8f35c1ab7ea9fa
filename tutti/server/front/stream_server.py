"""The streams of one HTTP process, in the server's process: they run in its engine."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from tutti.errors import TuttiError
from tutti.server.encoding import has_letters
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.errors import internal_error
from tutti.server.front.messages import LeaveStream, NextSpeech, SpeechReady, StartStream, StreamEnded
from tutti.speech import Speech
from tutti.trace import NO_TRACE, Trace, current_trace

log = logging.getLogger("tutti.server")

StreamMessage = StartStream | NextSpeech | LeaveStream


@dataclass(slots=True)
class RunningStream:
    """A stream's task, and whether its next speech is wanted."""

    task: asyncio.Task[None]
    wanted: asyncio.Event = field(default_factory=asyncio.Event)


class StreamServer:
    """Runs streams and sends their speech, each when the one before was taken."""

    def __init__(self, engine: EngineProtocol, send: Callable[[object], None]) -> None:
        self._engine = engine
        self._send = send
        self._streams: dict[int, RunningStream] = {}

    def receive(self, message: StreamMessage) -> None:
        if isinstance(message, StartStream):
            stream = self._streams[message.number] = RunningStream(asyncio.create_task(self._speak(message)))
            stream.task.add_done_callback(lambda _: self._streams.pop(message.number))
        elif (known := self._streams.get(message.number)) is None:
            pass  # it ended meanwhile
        elif isinstance(message, NextSpeech):
            known.wanted.set()
        else:
            known.task.cancel()

    def close(self) -> None:
        """Cancel all streams."""
        for stream in self._streams.values():
            stream.task.cancel()

    async def _speak(self, start: StartStream) -> None:
        number, text, error = start.number, start.request.text, None
        assert isinstance(text, str)
        current_trace.set(Trace(start.trace_id) if start.trace_id else NO_TRACE)
        speeches = self._engine.stream(start.request)
        try:
            async with aclosing(speeches), aclosing(_with_last(speeches, text)) as pairs:
                async for speech, is_last in pairs:
                    self._send(SpeechReady(number, speech, is_last))
                    if is_last:
                        return
                    del speech  # not held until the next one is there
                    wanted = self._streams[number].wanted
                    await wanted.wait()
                    wanted.clear()
        except TuttiError as exc:
            error = exc.with_traceback(None)  # its frames lead back to it: many refusals would be much garbage
        except Exception:  # a bug: the caller of this stream is told, and all others go on
            log.exception("failed id=%s", start.request.ticket.id)
            error = internal_error()
        self._send(StreamEnded(number, error))


async def _with_last(speeches: AsyncGenerator[Speech], text: str) -> AsyncGenerator[tuple[Speech, bool]]:
    """Each speech, and whether it is the last: found out before, if no letters follow it, to save a message."""
    async for speech in speeches:
        while not has_letters(text, speech.span[1]):
            try:
                following = await anext(speeches, None)
            except Exception:
                yield speech, False
                raise
            yield speech, following is None
            if following is None:
                return
            speech = following
        yield speech, False
        del speech
