"""Further routes that existing clients call: captions, phonemes, blends of voices."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response

from tutti.audio import find_format
from tutti.errors import InvalidInput
from tutti.server.aliases import resolve_name, resolve_voice
from tutti.server.disconnect import cancel_on_disconnect
from tutti.server.downloads import MAX_STEM, UNSAFE, Downloads
from tutti.server.encoding import OpenStream, PieceEncoder, WholeAudio
from tutti.server.errors import TooLarge, rename_param
from tutti.server.notices import MAX_NOTICES, ignored_headers, notice_fields
from tutti.server.openapi import AUDIO, CAPTIONS, VOICE_FILE, error_responses
from tutti.server.request import SpeechRequest
from tutti.server.responses import (
    Pieces,
    Tee,
    WholeResponse,
    audio_headers,
    base64_text,
    cached_response,
    finish_stream,
    json_line,
    start_encoder,
    start_stream,
    streaming_response,
    time_lists,
    word_times,
)
from tutti.server.schemas import (
    DOWNLOAD_OPTIONS,
    CaptionBody,
    PhonemesBody,
    PhonemizeBody,
    ReadingsBody,
    SsmlBody,
    VoiceChoice,
    all_entries,
    name_unused,
    voice_expression,
)
from tutti.server.service import Service
from tutti.speech import SpeechParams, WordTime
from tutti.text import vocab
from tutti.text.chunk import Chunk
from tutti.text.g2p import G2P
from tutti.text.g2p.readings import readings
from tutti.text.language import AUTO, request_language
from tutti.text.marks import BREAKS_S, MAX_RATE, MIN_RATE, shown_word
from tutti.text.ssml import SPOKEN, UNSPOKEN
from tutti.text.ssml_marks import ELEMENTS, ssml_as_marks
from tutti.text.ssml_values import RATES
from tutti.torch_file import torch_file
from tutti.voices import Voice

_WORD = re.compile(r"[^\s" + re.escape("".join(vocab.PUNCTUATION)) + "]+")
LONGEST_WORD = 200  # symbols; more cannot be one word
MAX_SYMBOLS = 100_000  # phonemes of one request, two hours of speech; as marks they are up to five times as long
MAX_PHONEMIZED = 100_000  # characters: the answer is many times as long, and is held in memory


def dev_routes(service: Service, downloads: Downloads) -> APIRouter:
    routes = APIRouter(tags=["captions and phonemes"])
    g2p = G2P(service.settings.home)

    @routes.post("/dev/captioned_speech", response_class=JSONResponse, responses={**CAPTIONS, **error_responses(404)})
    async def captioned_speech(request: Request, body: CaptionBody) -> Response:
        """Audio and the times of its words: lines of JSON, or one object if `stream` is false."""
        unused = () if body.return_download_link else DOWNLOAD_OPTIONS
        speech_request = name_unused(body.speech_request(service.aliases_of(request)), body, *unused, "stream_format")
        if not body.return_download_link:
            return await captions(request, body, speech_request)
        with downloads.storing(speech_request, body) as download:
            tee = download.tee(service, speech_request, audio=True)
            response = await captions(request, body, speech_request, tee)
        download.announce(response)
        return response

    async def captions(
        request: Request, body: CaptionBody, speech_request: SpeechRequest, tee: Tee = lambda speeches: speeches
    ) -> Response:
        times = body.times | {"word"} if body.return_timestamps is not False else body.times - {"word"}
        times |= {"voice"} if body.allow_voice_tags else set()
        stream = await start_stream(service, request, speech_request, tee)
        if body.stream is False:
            whole = await finish_stream(service, request, stream)
            headers = audio_headers(service, speech_request, whole.first, whole.encode_s, whole.unspoken)
            # In a thread: there may be megabytes of audio and thousands of words.
            with whole.held.released_on_error():
                data = await asyncio.to_thread(whole_caption_line, speech_request, whole, times)
                whole.held.grow(len(data))
            return WholeResponse(service, data, whole.held, headers=headers, media_type="application/json")
        encoder = await start_encoder(service, stream)
        pieces = caption_lines(stream, encoder, times)
        return streaming_response(service, request, stream, encoder, pieces, "application/x-ndjson", json_line)

    @routes.post("/dev/phonemize", responses=error_responses(404))
    async def phonemize(request: Request, body: PhonemizeBody) -> JSONResponse:
        """The pronunciation of a text: Kokoro's symbols and their numbers, and the place of each word in the text."""
        with rename_param(input="text"):
            if len(body.text) > MAX_PHONEMIZED:
                raise TooLarge(f"one request may phonemize {MAX_PHONEMIZED:,} characters", param="input")
            service.check_text(len(body.text), request.state.caller)
            code, detected = request_language(body.language, "a")
            lexicon = all_entries(body.lexicon_id, body.lexicon, service.aliases_of(request))
            phonemizing = phonemize_all(service, body.text, AUTO if detected else code, lexicon)
            chunks = await cancel_on_disconnect(request.receive, phonemizing)
        # In a thread: there may be thousands of words.
        response = await asyncio.to_thread(phonemize_response, body.text, chunks)
        response.headers.update(ignored_headers(body.ignored_options()))
        return response

    @routes.post("/dev/readings", responses=error_responses())
    async def list_readings(body: ReadingsBody) -> JSONResponse:
        """How a word may be said: as now, as another part of speech, by its letters, in another accent."""
        if not body.word.strip():
            raise InvalidInput("there is no word", param="word")
        code, _ = request_language(body.language, "a")
        found = await asyncio.to_thread(readings, g2p, body.word.strip(), code)
        rows = [{"phonemes": reading.phonemes, "source": reading.source} for reading in found]
        headers = ignored_headers(body.ignored_options())
        return JSONResponse({"word": body.word.strip(), "readings": rows}, headers=headers)

    @routes.post("/dev/generate_from_phonemes", response_class=Response, responses={**AUDIO, **error_responses()})
    async def generate_from_phonemes(request: Request, body: PhonemesBody) -> Response:
        """Speak phonemes as they are written; WAV."""
        name = voice_expression(body.voice) or service.aliases.default_voice
        voice, notices = resolve_voice(name, service.aliases_of(request))
        params = SpeechParams(voice, speed=1.0 if body.speed is None else body.speed)
        with rename_param(input="phonemes"):
            if len(body.phonemes) > MAX_SYMBOLS:
                raise TooLarge(f"there are more than {MAX_SYMBOLS:,} symbols; send them in parts", param="input")
            # In a thread: so many take some milliseconds.
            text = await asyncio.to_thread(phonemes_as_text, body.phonemes)
            ignored = body.ignored_options()
            speech_request = SpeechRequest(text, params, find_format("wav"), notices=notices, ignored=ignored)
            return await cached_response(service, request, speech_request)

    @routes.post("/dev/unload", responses=error_responses(409))
    async def unload(request: Request) -> dict[str, Any]:
        """Give the memory of the model back; the next request loads it again."""
        return {"status": "unloaded", "workers": await service.engine.unload(request.state.caller)}

    @routes.get("/dev/ssml")
    async def ssml_elements() -> dict[str, Any]:
        """The elements of SSML, and what becomes of them."""
        return {
            "elements": ELEMENTS,
            "ignored": sorted(SPOKEN | UNSPOKEN),
            "break_strengths": BREAKS_S,
            "prosody_rates": RATES,
            "rate_range": [MIN_RATE, MAX_RATE],
        }

    @routes.post("/dev/ssml", responses=error_responses())
    async def ssml(request: Request, body: SsmlBody) -> JSONResponse:
        """SSML as text with marks, for a later request; a text that is not SSML stays as it is."""
        aliases = service.aliases_of(request)
        voice = resolve_name(body.voice or "", aliases)
        if voice:
            aliases.known.parse(voice)
        with rename_param(input="text"):
            service.check_text(len(body.text), request.state.caller)
            marked = await asyncio.to_thread(ssml_as_marks, body.text, voice)  # a document may have thousands of tags
        headers = ignored_headers(body.ignored_options())
        return JSONResponse({"text": marked.text, "notices": marked.notices[:MAX_NOTICES]}, headers=headers)

    @routes.post("/v1/audio/voices/combine", response_class=Response, responses={**VOICE_FILE, **error_responses()})
    async def combine(
        request: Request, voices: Annotated[VoiceChoice, Body(examples=["af_bella(2)+af_sky(1)"])]
    ) -> Response:
        """A blend as a file for PyTorch, or with `Accept: application/json` its name and parts. Nothing is stored.

        To speak with it, use its name as `voice`.
        """
        aliases = service.aliases_of(request)
        blend = resolve_name(voice_expression(voices) or "", aliases)
        parts = [{"name": name, "weight": weight} for name, weight in aliases.known.parse(blend)]
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"voice": blend, "parts": parts})
        content = await asyncio.to_thread(voice_file, aliases.known.get(blend))
        disposition = f'attachment; filename="{UNSAFE.sub("_", blend)[:MAX_STEM]}.pt"'
        headers = {"content-disposition": disposition, "x-voice-used": blend}
        return Response(content, headers=headers, media_type="application/octet-stream")

    return routes


def voice_file(voice: Voice) -> bytes:
    """Return a voice as Kokoro's own are published: a tensor with a row for each number of phonemes."""
    return torch_file(voice.table[:, np.newaxis])


async def caption_lines(stream: OpenStream, encoder: PieceEncoder, times: Set[str]) -> Pieces:
    """Yield lines of JSON, each with some audio and its times."""
    async for speech in stream.speeches():
        data = b"".join([piece async for piece in encoder.pieces(speech)])
        content = caption_object(stream.request, data, speech.words, times)
        yield json_line(content | notice_fields([speech]))
        await asyncio.sleep(0)  # as above
        del speech, data, content
    yield json_line(caption_object(stream.request, await encoder.flush(), (), times))


def caption_object(request: SpeechRequest, data: bytes, words: Sequence[WordTime], times: Set[str]) -> dict[str, Any]:
    """Return some audio with its times; `times` may have "voice", too: that of each word."""
    timestamps = word_times(words, "start_time", "end_time") if "word" in times else None
    for row, word in zip(timestamps or (), words if "voice" in times else (), strict=False):
        row["voice"] = request.voice_of(word)
    sounds = time_lists(words, times - {"word"})
    return {"audio": base64_text(data), "audio_format": request.content_type, "timestamps": timestamps, **sounds}


def whole_caption_line(request: SpeechRequest, whole: WholeAudio, times: Set[str]) -> bytes:
    content = caption_object(request, whole.data, whole.words, times)
    return json_line(content | notice_fields(whole.unspoken))


async def phonemize_all(service: Service, text: str, language: str, lexicon: Mapping[str, str] | None) -> list[Chunk]:
    return [chunk async for chunk in service.engine.phonemize(text, language, lexicon)]


def phonemize_response(text: str, chunks: list[Chunk]) -> JSONResponse:
    phonemes = " ".join(chunk.phonemes for chunk in chunks if chunk.words)
    tokens = vocab.encode(phonemes).tolist()
    dropped = [symbol for chunk in chunks for symbol in chunk.dropped]
    notices = list(dict.fromkeys(notice for chunk in chunks for notice in chunk.notices))
    words = word_positions(text, chunks)
    return JSONResponse(
        {"phonemes": phonemes, "tokens": tokens, "words": words, "dropped": dropped, "notices": notices}
    )


def word_positions(text: str, chunks: Iterable[Chunk]) -> list[dict[str, Any]]:
    """Return each word with its place in the text and the range of its tokens. Token 0 is a pad."""
    words: list[dict[str, Any]] = []
    at = 1
    for chunk in chunks:
        first = at
        for word in chunk.words:
            first += len(word.before)
            last = first + len(word.phonemes)
            start, end = word.source
            words.append({"word": shown_word(text[start:end]), "phonemes": word.phonemes, "start": start, "end": end,
                          "tokens": [first, last]})  # fmt: skip
            first = last + len(word.after)
        at += len(chunk.phonemes) + 1 if chunk.words else 0
    return words


def phonemes_as_text(phonemes: str) -> str:
    """Return a text that is spoken as these phonemes: each word as a mark `[x](/x/)`, punctuation unchanged."""
    _, unknown = vocab.split_known(phonemes)
    if unknown:
        symbols = " ".join(dict.fromkeys(unknown))[:80]
        raise InvalidInput(f"Kokoro has no symbol for {symbols}", param="input")
    if any(len(word) > LONGEST_WORD for word in _WORD.findall(phonemes)):
        raise InvalidInput(f"a word has more than {LONGEST_WORD} symbols; put spaces between words", param="input")
    return _WORD.sub(lambda word: f"[{word[0]}](/{word[0]}/)", phonemes)
