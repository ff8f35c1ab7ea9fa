"""WS /v1/realtime: the part of OpenAI's Realtime API that speaks given texts (docs/live.md)."""

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, ClassVar, Literal
from uuid import uuid4

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from tutti.admission.ticket import Ticket
from tutti.audio import find_format
from tutti.errors import InvalidInput, QueueFull, TuttiError
from tutti.server.aliases import Aliases, find_checkpoint, resolve_voice
from tutti.server.notices import notice_fields
from tutti.server.request import SpeechRequest
from tutti.server.responses import EVENT_BYTES, base64_text, split_bytes, time_lists
from tutti.server.schemas import MAX_NAME, Name, VoiceChoice, voice_expression
from tutti.server.service import Service
from tutti.server.websocket import Message, MessageSocket, encoded_speech, error_fields
from tutti.speech import SAMPLES_PER_FRAME, Speech, SpeechParams
from tutti.tasks import cancel_all

FORMATS = {"audio/pcm": "pcm", "audio/pcmu": "mulaw", "audio/pcma": "alaw"}
MAX_RESPONSES = 16  # that are spoken at once on one socket
MAX_ITEMS = 256  # texts that wait for response.create


class _Tolerant(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class AudioFormat(_Tolerant):
    type: Name = "audio/pcm"
    rate: int | None = None


class OutputOptions(_Tolerant):
    voice: VoiceChoice | None = None
    format: AudioFormat | None = None
    speed: float | None = Field(None, ge=0.25, le=4)
    timestamps: list[Literal["word", "phoneme", "viseme"]] | None = None  # not in OpenAI's API


class AudioOptions(_Tolerant):
    output: OutputOptions | None = None


class RealtimeOptions(_Tolerant):
    """The options of a session or a response that concern speech; others are for language models, and ignored."""

    audio: AudioOptions | None = None


class ActiveResponse(InvalidInput):
    code = "conversation_already_has_active_response"


class NoActiveResponse(InvalidInput):
    code = "response_cancel_not_active"


class RealtimeSession:
    """One socket: its options, the texts that wait, and the responses that are being spoken."""

    def __init__(self, service: Service, socket: MessageSocket, model: str) -> None:
        self.service = service
        self.socket = socket
        self.caller: str = socket.state.caller
        self._id = _id("sess")
        self._model = model
        aliases = self._aliases
        checkpoint = _checkpoint(model, service)
        params = SpeechParams(aliases.default_voice, voice_names=aliases.voices, model=checkpoint)
        self._request = SpeechRequest("", params, find_format("pcm"))
        self._items: list[str] = []
        self._responses: dict[str, asyncio.Task[None]] = {}
        self._main: str | None = None  # the response of the conversation; others are out of band

    @property
    def _aliases(self) -> Aliases:
        return self.service.aliases_of_caller(self.caller)

    async def run(self) -> None:
        await self.send("session.created", session=self._session())
        try:
            await self.socket.receive_all(self._handle, self._refuse)
        finally:
            await cancel_all(self._responses.values())

    # -- messages of the client ----------------------------------------------------------------------------------

    async def _handle(self, message: Message) -> None:
        handler = self._HANDLERS.get(str(message.get("type")))
        if handler is None:
            raise InvalidInput(
                f"unknown type {str(message.get('type'))[:60]!r}; send {', '.join(self._HANDLERS)}", param="type"
            )
        await handler(self, message)

    async def _update(self, message: Message) -> None:
        self._request = self._updated_request(message.get("session"), "session")
        await self.send("session.updated", session=self._session())

    async def _item(self, message: Message) -> None:
        item = message.get("item")
        text = _texts([item], "item")
        if len(self._items) >= MAX_ITEMS:
            raise QueueFull(f"{MAX_ITEMS} items wait already; send response.create to speak them", retry_after_s=1)
        if sum(map(len, self._items)) + len(text) > self.service.settings.max_text:
            self.service.check_text(sum(map(len, self._items)) + len(text), self.caller, "item")
        assert isinstance(item, dict)
        known = _known_fields(item)
        self._items.append(text)
        await self.send("conversation.item.added", previous_item_id=None, item=known)
        await self.send("conversation.item.done", previous_item_id=None, item=known)

    async def _create(self, message: Message) -> None:
        options = message.get("response") or {}
        if not isinstance(options, dict):
            raise InvalidInput("response must be an object", param="response")
        request = self._updated_request(options, "response")
        items = options.get("input")
        text = "\n\n".join(self._items) if items is None else _texts(items, "response.input")
        out_of_band = options.get("conversation") == "none"
        if not out_of_band and self._main is not None:
            raise ActiveResponse("a response is being spoken; wait for its end, cancel it, or send conversation: none")
        if len(self._responses) >= MAX_RESPONSES:
            raise QueueFull(f"{MAX_RESPONSES} responses are being spoken already", retry_after_s=1)
        self.service.lifecycle.check()
        self.service.limits.requests.take(self.caller)
        self.service.check_text(len(text), self.caller, "response.input")
        if items is None:
            self._items.clear()
        id = _id("resp")
        if not out_of_band:
            self._main = id
        response = RealtimeResponse(self, id, replace(request, text=text), options.get("metadata"))
        task = asyncio.create_task(response.run())
        self._responses[id] = task
        task.add_done_callback(lambda _: self.forget(id))

    async def _cancel(self, message: Message) -> None:
        """Stop a response; response.done confirms it."""
        id = message.get("response_id") or self._main
        task = self._responses.get(str(id))
        if task is None:
            raise NoActiveResponse("there is no such response to cancel", param="response_id")
        task.cancel()

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "session.update": _update,
        "conversation.item.create": _item,
        "response.create": _create,
        "response.cancel": _cancel,
    }

    def forget(self, id: str) -> None:
        """Remove a response that has ended."""
        self._responses.pop(id, None)
        if self._main == id:
            self._main = None

    def _updated_request(self, options: object, where: str) -> SpeechRequest:
        """Return the session's request with these options applied."""
        try:
            audio = RealtimeOptions.model_validate(options or {}).audio
        except ValidationError as exc:
            first = exc.errors()[0]
            raise InvalidInput(f"{where}: {first['msg']}", param=".".join([where, *map(str, first["loc"])])) from None
        request, output = self._request, audio.output if audio else None
        if output is None:
            return request
        params = request.params
        if output.voice is not None:
            aliases = self._aliases
            voice, notices = resolve_voice(voice_expression(output.voice) or aliases.default_voice, aliases)
            aliases.known.parse(voice)
            params, request = replace(params, voice=voice), replace(request, notices=notices)
        if output.format is not None:
            if output.format.type not in FORMATS:
                raise InvalidInput(f"the format is one of {', '.join(FORMATS)}", param=f"{where}.audio.output.format")
            format = find_format(FORMATS[output.format.type])
            format.rate(output.format.rate)
            request = replace(request, format=format, sample_rate=output.format.rate)
        if output.speed is not None:
            params = replace(params, speed=output.speed)
        if output.timestamps is not None:
            request = replace(request, times=frozenset(output.timestamps))
        return replace(request, params=params)

    def _session(self) -> Message:
        return {
            "id": self._id,
            "object": "realtime.session",
            "type": "realtime",
            "model": self._model,
            "output_modalities": ["audio"],
            "audio": {"output": output_fields(self._request) | {"speed": self._request.params.speed}},
        }

    async def _refuse(self, message: Message, error: TuttiError) -> None:
        fields = error_fields(error, self.socket.state.request_id)
        await self.send("error", error={**fields, "event_id": message.get("event_id")})

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send({"type": kind, "event_id": _id("event"), **fields})


class RealtimeResponse:
    """One text that is being spoken, with the events of OpenAI's API."""

    def __init__(self, session: RealtimeSession, id: str, request: SpeechRequest, metadata: object) -> None:
        self._session = session
        self._request = request
        self._metadata = metadata
        self._response: Message = {"response_id": id}
        self._part: Message = {**self._response, "item_id": _id("item"), "output_index": 0, "content_index": 0}
        self._transcript: list[str] = []
        self._n_samples = 0

    async def run(self) -> None:
        lifecycle = self._session.service.lifecycle
        lifecycle.enter()
        status = "completed"
        details: Message | None = None
        try:
            await self._speak()
        except asyncio.CancelledError:
            status, details = "cancelled", {"type": "cancelled", "reason": "client_cancelled"}
        except WebSocketDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - sent to the client, and logged if it is a bug
            status, details = "failed", {"type": "failed", "error": self._session.socket.failed(error)}
        finally:
            lifecycle.leave()
        self._session.forget(self._response["response_id"])  # before response.done: the client may create the next
        with suppress(WebSocketDisconnect):
            if details and "error" in details:
                await self._session.send("error", error={**details["error"], "event_id": None})
            await self._session.send("response.done", response=self._resource(status, details))

    async def _speak(self) -> None:
        session, part = self._session, self._part
        item = {key: part[key] for key in ("response_id", "output_index")}
        await session.send("response.created", response=self._resource("in_progress"))
        await session.send("response.output_item.added", **item, item=self._item("in_progress"))
        await session.send("response.content_part.added", **part, part={"type": "audio", "transcript": ""})
        speeches = session.service.speak(self._request, Ticket(session.caller, arrived_s=time.monotonic()))
        last: Speech | None = None
        timeout_s = session.service.settings.timeout_s
        async with aclosing(encoded_speech(session.service, self._request, speeches, timeout_s)) as pieces:
            async for speech, piece in pieces:
                if speech is not last:
                    last = speech
                    self._n_samples += len(speech.samples)
                    if words := self._request.text[slice(*speech.span)]:
                        self._transcript.append(words)
                        await session.send("response.output_audio_transcript.delta", **part, delta=words + " ")
                    await self._send_facts(speech)
                for data in split_bytes(piece, EVENT_BYTES):
                    await session.send("response.output_audio.delta", **part, delta=base64_text(data))
        await session.send("response.output_audio.done", **part)
        await session.send("response.output_audio_transcript.done", **part, transcript=" ".join(self._transcript))
        content = {"type": "audio", "transcript": " ".join(self._transcript)}
        await session.send("response.content_part.done", **part, part=content)
        await session.send("response.output_item.done", **item, item=self._item("completed"))

    async def _send_facts(self, speech: Speech) -> None:
        """Send the times that are asked for, and what was not spoken as written."""
        for name, rows in time_lists(speech.words, self._request.times).items():
            await self._session.send(f"response.output_audio.{name}", **self._part, **{name: rows})
        if notices := notice_fields([speech]):
            await self._session.send("response.output_audio.notice", **self._part, **notices)

    def _item(self, status: str) -> Message:
        content = [{"type": "output_audio", "transcript": " ".join(self._transcript)}] if self._transcript else []
        fields = {"id": self._part["item_id"], "object": "realtime.item", "type": "message", "role": "assistant"}
        return {**fields, "status": status, "content": content}

    def _resource(self, status: str, details: Message | None = None) -> Message:
        in_progress = status == "in_progress"
        n_in, n_out = len(self._request.text), self._n_samples // SAMPLES_PER_FRAME
        usage = {"input_tokens": n_in, "output_tokens": n_out, "total_tokens": n_in + n_out}
        return {
            "id": self._response["response_id"],
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [] if in_progress else [self._item("completed" if status == "completed" else "incomplete")],
            "output_modalities": ["audio"],
            "audio": {"output": output_fields(self._request)},
            "metadata": self._metadata,
            "usage": None if in_progress else usage,
        }


def output_fields(request: SpeechRequest) -> Message:
    kind = next(name for name, format in FORMATS.items() if format == request.format.name)
    rate = {"rate": request.format.rate(request.sample_rate)} if kind == "audio/pcm" else {}
    return {"voice": request.params.voice, "format": {"type": kind, **rate}}


def _texts(items: object, where: str) -> str:
    """Return the texts of messages, joined as paragraphs."""
    texts: list[str] = []
    for item in items if isinstance(items, list) else [items]:
        content = item.get("content") if isinstance(item, dict) else None
        for part in content if isinstance(content, list) else [None]:
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str):
                raise InvalidInput(
                    f'{where}: only text can be spoken: {{"type": "message", "role": "user", '
                    '"content": [{"type": "input_text", "text": "Hello."}]}',
                    param=where,
                )
            texts.append(text)
    return "\n\n".join(texts)


def _known_fields(item: Message) -> Message:
    """An item as its client hears it confirmed: not the rest of what was sent, which may be megabytes."""
    id = item.get("id") or _id("item")
    if not isinstance(id, str) or len(id) > MAX_NAME:
        raise InvalidInput(f"item.id must be a text of at most {MAX_NAME} characters", param="item")
    known: Message = {"id": id, "object": "realtime.item", "status": "completed"}
    known |= {name: str(item[name])[:MAX_NAME] for name in ("type", "role") if name in item}
    kinds = [str(part.get("type", "input_text"))[:MAX_NAME] for part in item["content"]]
    texts = [part["text"] for part in item["content"]]
    return known | {"content": [{"type": kind, "text": text} for kind, text in zip(kinds, texts, strict=True)]}


def _checkpoint(name: str, service: Service) -> str | None:
    """Return the checkpoint; OpenAI's names of realtime models stand for the default."""
    return None if "realtime" in name.lower() else find_checkpoint(name, service.aliases)


def _id(kind: str) -> str:
    return f"{kind}_{uuid4().hex[:24]}"


def realtime_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["live"])

    @routes.websocket("/v1/realtime")
    async def realtime(websocket: WebSocket, model: str = "kokoro") -> None:
        socket = MessageSocket(websocket, service.settings.socket_idle_s)
        await socket.accept()
        with suppress(WebSocketDisconnect):
            try:
                session = RealtimeSession(service, socket, model)
            except TuttiError as error:
                fields = {**error_fields(error, socket.state.request_id), "event_id": None}
                await socket.send({"type": "error", "event_id": _id("event"), "error": fields})
                await websocket.close(1008, "model_not_found")
                return
            await session.run()

    return routes
