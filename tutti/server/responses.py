"""Sound on the wire: whole with its length, as raw chunks, as events, as lines of JSON."""

import base64
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from tutti.server.disconnect import ClientGone, while_here
from tutti.server.encoding import Encoding, Opened, Sound
from tutti.server.errors import as_known, error_body
from tutti.server.request import SpeechRequest
from tutti.server.service import Service
from tutti.speech import SAMPLES_PER_FRAME, Speech, WordTime

SEND_BYTES = 1 << 16  # even, so that no sample is cut; the buffer of a slow reader holds two of these
EVENT_BYTES = 24 << 10  # 32 kB as base64: some clients read lines of 64 kB at most
log = logging.getLogger("tutti.server")


def headers(service: Service, ask: SpeechRequest, first: Speech, encode_s: float) -> dict[str, str]:
    """What every answer with sound tells about itself."""
    timing = first.timing
    steps = {"g2p": timing.g2p_s, "queue": timing.queue_s, "acoustic": timing.acoustic_s, "vocoder": timing.vocoder_s}
    made = {
        "cache-control": "no-store",
        "server-timing": ", ".join(f"{step};dur={1000 * s:.1f}" for step, s in {**steps, "encode": encode_s}.items()),
        "x-accel-buffering": "no",
        "x-batch-size": str(timing.batch_rows),
        "x-batching-enabled": str(bool(service.engine.workers()["batchingEnabled"])).lower(),
        "x-voice-used": ask.params.voice,
    }
    if ask.ignored:
        made["x-ignored"] = ", ".join(ask.ignored)
    return made


def stream_headers(service: Service, request_id: str) -> dict[str, str]:
    mode, n_chunks = service.streaming_mode()
    return {"x-stream-id": request_id, "x-streaming-mode": mode, "x-bypass-chunks": str(n_chunks)}


def whole_reply(service: Service, ask: SpeechRequest, sound: Sound, etag: str | None = None) -> Response:
    made = headers(service, ask, sound.first, sound.encode_s)
    made["x-audio-duration"] = f"{sound.duration_s:.3f}"
    if etag:
        made["etag"] = etag
    return Response(sound.data, headers=made, media_type=ask.format.content_type(ask.format.rate(ask.sample_rate)))


class Chunked(Response):
    """An answer that is sent while it is made, and whose making stops when the client leaves."""

    def __init__(self, opened: Opened, pieces: AsyncIterator[bytes], media_type: str, headers: dict[str, str]) -> None:
        super().__init__(headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._opened = opened
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await while_here(receive, self._send(send))
        except ClientGone:
            scope["state"]["outcome"] = "left"
        except Exception as error:
            # Returning now, without the last chunk, makes the server close the connection: the client sees the cut.
            known = as_known(error)
            scope["state"]["outcome"] = f"cut:{known.code}"
            log.error("cut id=%s code=%s", scope["state"]["request_id"], known.code, exc_info=known is not error)
        finally:
            await self._opened.aclose()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self._pieces:
            for part in cut(piece, SEND_BYTES):
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


async def audio(opened: Opened, encoding: Encoding) -> AsyncIterator[bytes]:
    """The bytes of a raw stream."""
    async for speech in opened.speeches():
        async for piece in encoding.pieces(speech):
            yield piece
    yield await encoding.flush()


async def events(opened: Opened, encoding: Encoding, *, with_words: bool) -> AsyncIterator[bytes]:
    """The same as server-sent events, as OpenAI words them."""
    n_samples = 0
    async for speech in opened.speeches():
        n_samples += len(speech.samples)
        async for piece in encoding.pieces(speech):
            for delta in deltas(piece):
                yield delta
        if with_words and speech.words:
            yield event({"type": "speech.audio.words", "words": times(speech.words, "start", "end")})
    for delta in deltas(await encoding.flush()):
        yield delta
    n_in, n_out = len(opened.ask.text), n_samples // SAMPLES_PER_FRAME
    usage = {"input_tokens": n_in, "output_tokens": n_out, "total_tokens": n_in + n_out}
    yield event({"type": "speech.audio.done", "usage": usage})


async def captions(opened: Opened, encoding: Encoding, *, with_words: bool) -> AsyncIterator[bytes]:
    """Lines of JSON, each some audio and the words in it."""
    async for speech in opened.speeches():
        data = b"".join([piece async for piece in encoding.pieces(speech)])
        yield line(caption(encoding.content_type, data, speech.words if with_words else None))
    yield line(caption(encoding.content_type, await encoding.flush(), () if with_words else None))


async def told(pieces: AsyncIterator[bytes], worded: Callable[[dict[str, Any]], bytes]) -> AsyncIterator[bytes]:
    """The pieces; what breaks among them is told as the last piece, in the words of the stream."""
    try:
        async for piece in pieces:
            yield piece
    except Exception as error:
        known = as_known(error)
        log.error("cut code=%s", known.code, exc_info=known is not error)
        yield worded(error_body(known))


def error_event(error: dict[str, Any]) -> bytes:
    return event({"type": "speech.audio.error", **error})


def deltas(data: bytes) -> Iterator[bytes]:
    return (event({"type": "speech.audio.delta", "audio": b64(part)}) for part in cut(data, EVENT_BYTES))


def event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"


def line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def caption(content_type: str, data: bytes, words: Iterable[WordTime] | None) -> dict[str, Any]:
    stamps = None if words is None else times(words, "start_time", "end_time")
    return {"audio": b64(data), "audio_format": content_type, "timestamps": stamps}


def times(words: Iterable[WordTime], start: str, end: str) -> list[dict[str, Any]]:
    return [{"word": word.word, start: round(word.start_s, 3), end: round(word.end_s, 3)} for word in words]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
