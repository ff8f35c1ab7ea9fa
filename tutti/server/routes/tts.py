"""The routes of the first requirements: /tts, its batch and its stream, and how the batching does."""

import asyncio
import io
import json
import logging
import re
import time
import zipfile
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tutti.audio import find_format
from tutti.errors import InvalidInput, TuttiError
from tutti.server.disconnect import while_here
from tutti.server.encoding import Sound
from tutti.server.errors import RateLimited, error_body, fields, internal
from tutti.server.openapi import AUDIO, ZIP, errors
from tutti.server.request import SpeechRequest
from tutti.server.routes.openai import cached, made, streamed
from tutti.server.schemas import BatchBody, TtsBody
from tutti.server.service import Service
from tutti.speech import SpeechParams

TRIAL = ("The first of four.", "The second of four.", "The third of four.", "The last of four.")
log = logging.getLogger("tutti.server")


def legacy_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["first routes"])
    trying = asyncio.Lock()

    @routes.post("/tts", response_class=Response, responses={**AUDIO, **errors()})
    async def tts(request: Request, body: TtsBody) -> Response:
        """One text, one whole answer."""
        with fields(input="text"):
            return await cached(service, request, body.ask(service.cast))

    @routes.post("/tts/stream", response_class=Response, responses={**AUDIO, **errors()})
    async def tts_stream(request: Request, body: TtsBody) -> Response:
        """One text, sent as it is made."""
        with fields(input="text"):
            return await streamed(service, request, body.ask(service.cast))

    @routes.post("/tts/batch", response_class=Response, responses={**ZIP, **errors()})
    async def tts_batch(request: Request, body: BatchBody) -> Response:
        """Many texts at once, one ZIP: a file or an error for each, and a manifest."""
        n_most = service.settings.max_request_items
        if not 1 <= len(body.requests) <= n_most:
            raise InvalidInput(f"requests: give 1 to {n_most} items, got {len(body.requests)}", param="requests")
        caller = request.state.caller
        service.check_text(sum(len(item.text) for item in body.requests), caller, "requests")
        heard = await while_here(request.receive, all_of(service, body.requests, caller))
        voices = [item.named(service.cast.voice) for item in body.requests]
        packed = await asyncio.to_thread(pack, body.requests, voices, heard)
        told = {"x-total-requests": str(len(heard)), "cache-control": "no-store"}
        told["content-disposition"] = 'attachment; filename="tts_batch.zip"'
        return Response(packed, headers=told, media_type="application/zip")

    @routes.get("/health/batching")
    async def batching() -> dict[str, Any]:
        stats, workers = service.engine.stats(), service.engine.workers()
        return {"batching_enabled": workers["batchingEnabled"], "status": service.lifecycle.state, **stats}

    @routes.get("/health/streaming")
    async def streaming() -> dict[str, Any]:
        mode, n_chunks = service.streaming_mode()
        return {
            "status": service.lifecycle.state,
            "streaming_mode": mode,
            "bypass_chunks": n_chunks,
            "batching_enabled": service.engine.workers()["batchingEnabled"],
            "queue_status": service.engine.stats().get("queue_status", {}),
        }

    @routes.get("/health/workers")
    async def workers() -> dict[str, Any]:
        return service.engine.workers()

    @routes.post("/test/batching", responses=errors())
    async def test_batching(request: Request) -> dict[str, Any]:
        """Four texts one after the other, then the same four at once. One trial at a time."""
        if trying.locked():
            raise RateLimited("a trial is under way; one at a time", retry_after_s=5)
        async with trying:
            return await while_here(request.receive, trial(service, request.state.caller))

    return routes


async def all_of(service: Service, items: list[TtsBody], caller: str) -> list[Sound | BaseException]:
    """Every item spoken at once, each with its sound or with what went wrong."""
    room = service.room()

    async def one(item: TtsBody) -> Sound:
        with fields(input="text"):
            return await made(service, item.ask(service.cast), caller=caller, room=room)

    heard = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    with fields(stream="requests"):
        room.check()
    return heard


def pack(items: list[TtsBody], voices: list[str], heard: list[Sound | BaseException]) -> bytes:
    """The ZIP. Sounds are stored as they are: they hardly shrink."""
    manifest = []
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, (item, voice, sound) in enumerate(zip(items, voices, heard, strict=True), start=1):
            row = entry(number, item, voice, sound)
            manifest.append(row)
            archive.writestr(row["file"], sound.data if isinstance(sound, Sound) else row["error"]["message"])
        archive.writestr("manifest.json", json.dumps(manifest, indent=1))
    return buffer.getvalue()


def entry(number: int, item: TtsBody, voice: str, sound: Sound | BaseException) -> dict[str, Any]:
    if isinstance(sound, Sound):
        name = re.sub(r"[^A-Za-z0-9_+-]", "_", voice)[:60]
        suffix = find_format(item.format or "wav").name
        file = f"tts_{number:03}_{name}.{suffix}"
        return {"index": number, "file": file, "ok": True, "voice": voice, "duration_s": round(sound.duration_s, 3)}
    known = sound if isinstance(sound, TuttiError) else internal()
    if known is not sound:
        log.error("item failed", exc_info=sound)
    return {"index": number, "file": f"error_{number:03}.txt", "ok": False, "error": error_body(known)["error"]}


async def trial(service: Service, caller: str) -> dict[str, Any]:
    asks = [SpeechRequest(text, SpeechParams(service.cast.voice), find_format("pcm")) for text in TRIAL]
    started = time.monotonic()
    for ask in asks:
        await made(service, ask, caller=caller)
    alone_s = time.monotonic() - started
    await asyncio.gather(*(made(service, ask, caller=caller) for ask in asks))
    together_s = time.monotonic() - started - alone_s
    return {
        "requests": len(asks),
        "sequential_s": round(alone_s, 4),
        "concurrent_s": round(together_s, 4),
        "speedup": round(alone_s / max(together_s, 1e-9), 2),
        "batching_enabled": service.engine.workers()["batchingEnabled"],
    }
