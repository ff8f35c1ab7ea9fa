"""Simple routes: /tts, /tts/stream and /tts/batch, and the state of the batching under /health."""

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

from tutti.admission.ticket import Ticket
from tutti.audio import find_format
from tutti.errors import InvalidInput
from tutti.server.client_timeout import requested_timeout_s
from tutti.server.disconnect import cancel_on_disconnect
from tutti.server.encoding import AnswerBudget, WholeAudio
from tutti.server.errors import RateLimited, error_body, public_error, rename_param
from tutti.server.notices import ignored_headers, ignored_names, notice_fields
from tutti.server.openapi import AUDIO, ZIP, error_responses
from tutti.server.request import SpeechRequest
from tutti.server.responses import (
    WholeResponse,
    cached_response,
    complete_within,
    speak_whole,
    streamed_response,
    ticket_of,
)
from tutti.server.routes.body_route import BodyRoute
from tutti.server.schemas import BatchBody, TtsBody
from tutti.server.service import Service
from tutti.speech import SpeechParams

GOOD_S = 0.2  # four texts at once in this time are good, whatever they took one after the other
TEST_TEXTS = ("The first of four.", "The second of four.", "The third of four.", "The last of four.")
log = logging.getLogger("tutti.server")


def tts_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["tts"], route_class=BodyRoute)
    testing = asyncio.Lock()

    @routes.post("/tts", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def tts(request: Request, body: TtsBody) -> Response:
        """Speak a text; one whole answer."""
        with rename_param(input="text"):
            response = await cached_response(service, request, body.speech_request(service.aliases_of(request)))
        return as_attachment(response, f"tts_output.{body.suffix}")

    @routes.post("/tts/stream", response_class=Response, responses={**AUDIO, **error_responses(404)})
    async def tts_stream(request: Request, body: TtsBody) -> Response:
        """Speak a text; the audio is sent as it is made."""
        with rename_param(input="text"):
            response = await streamed_response(service, request, body.speech_request(service.aliases_of(request)))
        return as_attachment(response, f"tts_stream.{body.suffix}")

    @routes.post("/tts/batch", response_class=Response, responses={**ZIP, **error_responses()})
    async def tts_batch(request: Request, body: BatchBody) -> Response:
        """Speak many texts; one ZIP with a file or an error for each, and a manifest."""
        max_items = service.settings.max_request_items
        if not 1 <= len(body.requests) <= max_items:
            raise InvalidInput(f"requests: give 1 to {max_items} items, got {len(body.requests)}", param="requests")
        caller = request.state.caller
        service.check_text(sum(len(item.text) for item in body.requests), caller, "requests")
        budget = service.answer_budget(caller)
        voices = [item.voice_name(service.aliases_of(request)) for item in body.requests]
        with budget.held.released_on_error():
            results = await cancel_on_disconnect(request.receive, speak_all(service, body.requests, request, budget))
            budget.held.grow(budget.held.n_bytes)  # the ZIP is a copy
            data = await asyncio.to_thread(make_zip, body.requests, voices, results)
        headers = {
            "x-total-requests": str(len(results)),
            "x-batching-enabled": str(service.engine.batching_enabled).lower(),
            "cache-control": "no-store",
            **ignored_headers(body.ignored_options()),
        }
        return as_attachment(
            WholeResponse(service, data, budget.held, headers=headers, media_type="application/zip"), "tts_batch.zip"
        )

    @routes.get("/health/batching")
    async def batching() -> dict[str, Any]:
        """Queue, performance and configuration of the batching; unhealthy while no worker can run a batch."""
        enabled = service.engine.batching_enabled
        runs = service.engine.ready and service.engine.workers()["readyWorkers"] > 0
        status = "unhealthy" if not runs else "healthy" if enabled else "disabled"
        state = service.lifecycle.state
        return {"batching_enabled": enabled, "status": status, "state": state, **service.engine.stats()}

    @routes.get("/health/streaming")
    async def streaming() -> dict[str, Any]:
        """How streams are served; the statistics of the queue are null while batching is off."""
        stats, enabled = service.engine.stats(), service.engine.batching_enabled
        queue = stats["queue_status"]
        queue_stats = {
            **stats["performance"],
            "current_queue_size": queue["current_size"],
            "worker_running": queue["worker_running"],
        }
        return {
            "status": service.lifecycle.state,
            "streaming_mode": service.streaming_mode,
            "bypass_chunks": service.n_bypass_chunks,
            "bypass_chunks_config": service.settings.stream_bypass_chunks,
            "chunks": stats["performance"]["chunks_by_mode"],
            "batching_enabled": enabled,
            "queue_status": queue,
            "batch_queue_stats": queue_stats if enabled else None,
        }

    @routes.get("/health/workers")
    async def workers() -> dict[str, Any]:
        """The workers, one for each device."""
        return service.engine.workers()

    @routes.post("/test/batching", responses=error_responses())
    async def test_batching(request: Request) -> dict[str, Any]:
        """Speak four texts one after the other, then the same four at once. One test at a time."""
        if testing.locked():
            raise RateLimited("a batching test is running; wait for its end", retry_after_s=5)
        async with testing:
            return await cancel_on_disconnect(request.receive, run_batching_test(service, request.state.caller))

    return routes


def as_attachment(response: Response, filename: str) -> Response:
    """The response with the name under which a browser stores it."""
    response.headers["content-disposition"] = f"attachment; filename={filename}"
    return response


async def speak_all(
    service: Service, items: list[TtsBody], request: Request, budget: AnswerBudget
) -> list[WholeAudio | BaseException]:
    """Speak all items at once; return the audio or the error of each."""
    ticket, timeout_s = ticket_of(request), requested_timeout_s(request.headers)

    async def speak(item: TtsBody) -> WholeAudio | Exception:
        try:
            with rename_param(input="text"):
                speech_request = item.speech_request(service.aliases_of(request))
                speaking = speak_whole(service, speech_request, ticket, budget=budget)
                return await complete_within(timeout_s, speaking, ticket)
        except Exception as error:  # noqa: BLE001 - it is reported in the manifest
            return error

    async with asyncio.TaskGroup() as group:
        tasks = []
        for item in items:
            tasks.append(group.create_task(speak(item)))
            await asyncio.sleep(0)  # one in each turn of the event loop: many at once would delay all streams
    with rename_param(stream="requests"):
        budget.check()
    return [task.result() for task in tasks]


def make_zip(items: list[TtsBody], voices: list[str], results: list[WholeAudio | BaseException]) -> bytes:
    """Return the ZIP. Audio is stored uncompressed: it would hardly shrink."""
    manifest = []
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, (item, voice, result) in enumerate(zip(items, voices, results, strict=True), start=1):
            entry = manifest_entry(number, item, voice, result)
            manifest.append(entry)
            content = result.data if isinstance(result, WholeAudio) else entry["error"]["message"]
            archive.writestr(_undated(entry["file"]), content)
        archive.writestr(_undated("manifest.json"), json.dumps(manifest, indent=1))
    return buffer.getvalue()


def _undated(name: str) -> zipfile.ZipInfo:
    """A file of an archive, without the time: the same requests have the same bytes."""
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o644 << 16
    return info


def manifest_entry(number: int, item: TtsBody, voice: str, result: WholeAudio | BaseException) -> dict[str, Any]:
    if isinstance(result, WholeAudio):
        name = re.sub(r"[^A-Za-z0-9_+-]", "_", voice)[:60]
        file = f"tts_{number:03}_{name}.{item.suffix}"
        entry = {"index": number, "file": file, "ok": True, "voice": voice, "duration_s": round(result.duration_s, 3)}
        ignored = ignored_names(item.ignored_options())
        return entry | notice_fields(result.unspoken) | ({"ignored": ignored} if ignored else {})
    error = public_error(result)
    if error is not result:
        log.error("item failed", exc_info=result)
    return {"index": number, "file": f"error_{number:03}.txt", "ok": False, "error": error_body(error)["error"]}


async def run_batching_test(service: Service, caller: str) -> dict[str, Any]:
    """Speak four texts in sequence and at once; a text that fails is counted and does not end the test."""
    params = SpeechParams(service.aliases.default_voice)
    requests = [SpeechRequest(text, params, find_format("pcm")) for text in TEST_TEXTS]

    async def error_of(request: SpeechRequest) -> str | None:
        try:
            await speak_whole(service, request, Ticket(caller, arrived_s=time.monotonic()))
        except Exception as error:  # noqa: BLE001 - any error is counted and does not end the test
            return public_error(error).code
        return None

    started = time.monotonic()
    errors = [await error_of(request) for request in requests]
    sequential_s = time.monotonic() - started
    at_once = await asyncio.gather(*(error_of(request) for request in requests))
    concurrent_s = time.monotonic() - started - sequential_s
    is_good = not any((*errors, *at_once)) and concurrent_s < max(sequential_s, GOOD_S)
    return {
        "test_requests": len(requests),
        "successful": at_once.count(None),
        "errors": sorted({error for error in (*errors, *at_once) if error}),
        "total_time_ms": round(1000 * concurrent_s, 3),
        "avg_time_per_request_ms": round(1000 * concurrent_s / len(requests), 3),
        "batching_efficiency": "good" if is_good else "needs_tuning",
        "requests": len(requests),
        "sequential_s": round(sequential_s, 4),
        "concurrent_s": round(concurrent_s, 4),
        "speedup": round(sequential_s / max(concurrent_s, 1e-9), 2),
        "batching_enabled": service.engine.batching_enabled,
    }
