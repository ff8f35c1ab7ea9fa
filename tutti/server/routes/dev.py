"""Side routes that users' configurations name: captions, phonemes, blends."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response

from tutti.audio import find_format
from tutti.errors import InvalidInput
from tutti.server.aliases import voice_expression
from tutti.server.disconnect import while_here
from tutti.server.encoding import whole
from tutti.server.errors import TooLarge, fields
from tutti.server.openapi import AUDIO, CAPTIONS, errors
from tutti.server.request import SpeechRequest
from tutti.server.responses import caption, captions, headers, line, told
from tutti.server.routes.openai import begun, cached, chunked, opened
from tutti.server.schemas import CaptionBody, PhonemesBody, PhonemizeBody, VoiceId
from tutti.server.service import Service
from tutti.speech import SpeechParams
from tutti.text import vocab
from tutti.text.chunk import Chunk
from tutti.text.language import language
from tutti.text.marks import bare
from tutti.voices import parse

_SAID = re.compile(r"[^\s" + re.escape("".join(vocab.PUNCTUATION)) + "]+")
LONGEST_WORD = 200  # symbols; more cannot be one word
MAX_PHONEMIZED = 100_000  # characters: the answer, many times as long, is held in memory


def side_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["side routes"])

    @routes.post("/dev/captioned_speech", response_class=JSONResponse, responses={**CAPTIONS, **errors(404)})
    async def captioned_speech(request: Request, body: CaptionBody) -> Response:
        """Audio and the times of its words: lines of JSON, or one object when `stream` is false."""
        ask = body.ask(service.cast)
        with_words = body.return_timestamps is not False
        stream = await opened(service, request, ask)
        if body.stream is False:
            sound = await while_here(request.receive, whole(stream, service.encoder_threads, service.room()))
            kind = ask.format.content_type(ask.format.rate(ask.sample_rate))
            about = headers(service, ask, sound.first, sound.encode_s)
            return JSONResponse(caption(kind, sound.data, sound.words if with_words else None), headers=about)
        encoding = await begun(service, stream)
        pieces = told(captions(stream, encoding, with_words=with_words), line)
        return chunked(service, request, stream, encoding, pieces, "application/x-ndjson")

    @routes.post("/dev/phonemize", responses=errors())
    async def phonemize(request: Request, body: PhonemizeBody) -> JSONResponse:
        """How a text will be said: Kokoro's symbols and their numbers, and the place of each word in the text."""
        with fields(input="text"):
            if len(body.text) > MAX_PHONEMIZED:
                raise TooLarge(f"phonemes are shown for up to {MAX_PHONEMIZED:,} characters at a time", param="input")
            service.check_text(len(body.text), request.state.caller)
            code = language(body.language or "a").code
            chunks = await while_here(request.receive, read(service, body.text, code, body.lexicon))
        return await asyncio.to_thread(shown, body.text, chunks)  # thousands of words: not on the event loop

    @routes.post("/dev/generate_from_phonemes", response_class=Response, responses={**AUDIO, **errors()})
    async def generate_from_phonemes(request: Request, body: PhonemesBody) -> Response:
        """Says phonemes as they are written; WAV."""
        asked = body.voice.id if isinstance(body.voice, VoiceId) else body.voice
        voice = voice_expression(asked or service.cast.voice, service.cast.names)
        speed = 1.0 if body.speed is None else body.speed
        with fields(input="phonemes"):
            ask = SpeechRequest(spelled(body.phonemes), SpeechParams(voice, speed=speed), find_format("wav"))
            return await cached(service, request, ask)

    @routes.post("/v1/audio/voices/combine", responses=errors())
    async def combine(voices: Annotated[str | list[str], Body(examples=["af_bella(2)+af_sky(1)"])]) -> dict[str, Any]:
        """A blend by its parts. Its name is all there is to keep: use it as `voice` wherever one is asked for."""
        asked = voices if isinstance(voices, str) else "+".join(voices)
        blend = voice_expression(asked, service.cast.names)
        parts = [{"name": name, "weight": weight} for name, weight in parse(blend)]
        return {"voice": blend, "parts": parts}

    return routes


async def read(service: Service, text: str, code: str, lexicon: Mapping[str, str] | None) -> list[Chunk]:
    return [chunk async for chunk in service.engine.phonemize(text, code, lexicon)]


def shown(text: str, chunks: list[Chunk]) -> JSONResponse:
    phonemes = " ".join(chunk.phonemes for chunk in chunks if chunk.words)
    tokens = vocab.encode(phonemes).tolist()
    dropped = [symbol for chunk in chunks for symbol in chunk.dropped]
    return JSONResponse({"phonemes": phonemes, "tokens": tokens, "words": placed(text, chunks), "dropped": dropped})


def placed(text: str, chunks: Iterable[Chunk]) -> list[dict[str, Any]]:
    """Each word with its place in the text and its tokens' places among all tokens, which begin with a pad."""
    words: list[dict[str, Any]] = []
    at = 1
    for chunk in chunks:
        first = at
        for word in chunk.words:
            first += len(word.before)
            last = first + len(word.phonemes)
            start, end = word.span
            words.append({"word": bare(text[start:end]), "phonemes": word.phonemes, "start": start, "end": end,
                          "tokens": [first, last]})  # fmt: skip
            first = last + len(word.after)
        at += len(chunk.phonemes) + 1 if chunk.words else 0
    return words


def spelled(phonemes: str) -> str:
    """Phonemes as a text that says just them: each word a mark, `[x](/x/)`, the punctuation around them as it is."""
    _, unknown = vocab.known(phonemes)
    if unknown:
        shown = " ".join(dict.fromkeys(unknown))[:80]
        raise InvalidInput(f"Kokoro has no symbol for {shown}", param="input")
    if any(len(word) > LONGEST_WORD for word in _SAID.findall(phonemes)):
        raise InvalidInput(f"a word has more than {LONGEST_WORD} symbols; put spaces between words", param="input")
    return _SAID.sub(lambda word: f"[{word[0]}](/{word[0]}/)", phonemes)
