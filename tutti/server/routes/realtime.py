"""WS /v1/realtime: the part of OpenAI's Realtime API that says given texts (docs/live.md)."""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from tutti.audio import find_format
from tutti.errors import InvalidInput, QueueFull, TuttiError
from tutti.server.aliases import checkpoint, voice_expression
from tutti.server.request import SpeechRequest
from tutti.server.responses import EVENT_BYTES, b64, cut
from tutti.server.schemas import VoiceId
from tutti.server.service import Service
from tutti.server.websocket import Message, Talk, fault, sound
from tutti.speech import SAMPLES_PER_FRAME, Speech, SpeechParams
from tutti.voices import parse

FORMATS = {"audio/pcm": "pcm", "audio/pcmu": "mulaw", "audio/pcma": "alaw"}
MAX_RESPONSES = 16  # that sound at once on one socket
MAX_ITEMS = 256  # texts that wait to be said


class _Tolerant(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class AudioFormat(_Tolerant):
    type: str = "audio/pcm"
    rate: int | None = None


class Output(_Tolerant):
    voice: str | VoiceId | None = None
    format: AudioFormat | None = None
    speed: float | None = Field(None, ge=0.25, le=4)


class Audio(_Tolerant):
    output: Output | None = None


class Wish(_Tolerant):
    """What a session or a response says about the sound; the rest of it concerns models that think."""

    audio: Audio | None = None


class ActiveResponse(InvalidInput):
    code = "conversation_already_has_active_response"


class NoActiveResponse(InvalidInput):
    code = "response_cancel_not_active"


class Realtime:
    """One socket: its sound, the texts given to it, and the responses that are being said."""

    def __init__(self, service: Service, talk: Talk, model: str) -> None:
        self.service = service
        self.talk = talk
        self.caller: str = talk.state.caller
        self._id = _id("sess")
        self._model = model
        cast = service.cast
        params = SpeechParams(cast.voice, voice_names=cast.names, model=_checkpoint(model, service))
        self._ask = SpeechRequest("", params, find_format("pcm"))
        self._items: list[str] = []
        self._responses: dict[str, asyncio.Task[None]] = {}
        self._main: str | None = None  # the response of the conversation; others stand beside it

    async def run(self) -> None:
        await self.tell("session.created", session=self._session())
        try:
            await self.talk.hear(self._take, self._refuse)
        finally:
            tasks = list(self._responses.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- what the client says ------------------------------------------------------------------------------------

    async def _take(self, message: Message) -> None:
        take = self._KNOWN.get(str(message.get("type")))
        if take is None:
            raise InvalidInput(
                f"{str(message.get('type'))[:60]!r} is not understood here; send {', '.join(self._KNOWN)}", param="type"
            )
        await take(self, message)

    async def _update(self, message: Message) -> None:
        self._ask = self._wished(message.get("session"), "session")
        await self.tell("session.updated", session=self._session())

    async def _item(self, message: Message) -> None:
        item = message.get("item")
        text = _texts([item], "item")
        if len(self._items) >= MAX_ITEMS:
            raise QueueFull(f"{MAX_ITEMS} items wait already; say them with response.create", retry_after_s=1)
        if sum(map(len, self._items)) + len(text) > self.service.settings.max_text:
            self.service.check_text(sum(map(len, self._items)) + len(text), self.caller, "item")
        self._items.append(text)
        assert isinstance(item, dict)
        made = {"id": item.get("id") or _id("item"), "object": "realtime.item", "status": "completed", **item}
        await self.tell("conversation.item.added", previous_item_id=None, item=made)
        await self.tell("conversation.item.done", previous_item_id=None, item=made)

    async def _create(self, message: Message) -> None:
        wished = message.get("response") or {}
        if not isinstance(wished, dict):
            raise InvalidInput("response is an object", param="response")
        ask = self._wished(wished, "response")
        given = wished.get("input")
        text = "\n\n".join(self._items) if given is None else _texts(given, "response.input")
        beside = wished.get("conversation") == "none"
        if not beside and self._main is not None:
            raise ActiveResponse(
                "a response is being said; wait for its end, cancel it, or ask with conversation: none"
            )
        if len(self._responses) >= MAX_RESPONSES:
            raise QueueFull(f"{MAX_RESPONSES} responses are being said already", retry_after_s=1)
        self.service.lifecycle.check()
        self.service.limits.requests.take(self.caller)
        self.service.check_text(len(text), self.caller, "response.input")
        if given is None:
            self._items.clear()
        response = _id("resp")
        if not beside:
            self._main = response
        said = Response(self, response, replace(ask, text=text), wished.get("metadata"))
        task = asyncio.create_task(said.run())
        self._responses[response] = task
        task.add_done_callback(lambda _: self.ended(response))

    async def _cancel(self, message: Message) -> None:
        """What is not yet said is dropped now; response.done tells when that is so."""
        name = message.get("response_id") or self._main
        task = self._responses.get(str(name))
        if task is None:
            raise NoActiveResponse("there is no such response to cancel", param="response_id")
        task.cancel()

    _KNOWN: ClassVar[dict[str, Any]] = {
        "session.update": _update,
        "conversation.item.create": _item,
        "response.create": _create,
        "response.cancel": _cancel,
    }

    def ended(self, response: str) -> None:
        self._responses.pop(response, None)
        if self._main == response:
            self._main = None

    def _wished(self, wished: object, where: str) -> SpeechRequest:
        """The sound that this session has, with what is wished otherwise."""
        try:
            audio = Wish.model_validate(wished or {}).audio
        except ValidationError as exc:
            wrong = exc.errors()[0]
            raise InvalidInput(f"{where}: {wrong['msg']}", param=".".join([where, *map(str, wrong["loc"])])) from None
        ask, output = self._ask, audio.output if audio else None
        if output is None:
            return ask
        params = ask.params
        if output.voice is not None:
            named = output.voice.id if isinstance(output.voice, VoiceId) else output.voice
            params = replace(params, voice=voice_expression(named, self.service.cast.names))
            parse(params.voice)
        if output.format is not None:
            if output.format.type not in FORMATS:
                raise InvalidInput(f"the format is one of {', '.join(FORMATS)}", param=f"{where}.audio.output.format")
            ask = replace(ask, format=find_format(FORMATS[output.format.type]))
            ask.format.rate(output.format.rate)
            ask = replace(ask, sample_rate=output.format.rate)
        if output.speed is not None:
            params = replace(params, speed=output.speed)
        return replace(ask, params=params)

    def _session(self) -> Message:
        return {
            "id": self._id,
            "object": "realtime.session",
            "type": "realtime",
            "model": self._model,
            "output_modalities": ["audio"],
            "audio": {"output": sounding(self._ask) | {"speed": self._ask.params.speed}},
        }

    async def _refuse(self, message: Message, error: TuttiError) -> None:
        told = fault(error, self.talk.state.request_id)
        await self.tell("error", error={**told, "event_id": message.get("event_id")})

    async def tell(self, kind: str, **fields: Any) -> None:
        await self.talk.tell({"type": kind, "event_id": _id("event"), **fields})


class Response:
    """One text on its way to being heard, told as OpenAI tells it."""

    def __init__(self, session: Realtime, name: str, ask: SpeechRequest, metadata: object) -> None:
        self._session = session
        self._ask = ask
        self._metadata = metadata
        self._response: Message = {"response_id": name}
        self._part: Message = {**self._response, "item_id": _id("item"), "output_index": 0, "content_index": 0}
        self._said: list[str] = []
        self._n_samples = 0

    async def run(self) -> None:
        lifecycle = self._session.service.lifecycle
        lifecycle.enter()
        status = "completed"
        details: Message | None = None
        try:
            await self._say()
        except asyncio.CancelledError:
            status, details = "cancelled", {"type": "cancelled", "reason": "client_cancelled"}
        except WebSocketDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - told to the client, and logged where it is a bug
            told = fault(error, self._session.talk.state.request_id)
            status, details = "failed", {"type": "failed", "error": told}
        finally:
            lifecycle.leave()
        self._session.ended(self._response["response_id"])  # who hears that it ended may ask for the next
        with suppress(WebSocketDisconnect):
            if details and "error" in details:
                await self._session.tell("error", error={**details["error"], "event_id": None})
            await self._session.tell("response.done", response=self._resource(status, details))

    async def _say(self) -> None:
        session, part = self._session, self._part
        item = {key: part[key] for key in ("response_id", "output_index")}
        await session.tell("response.created", response=self._resource("in_progress"))
        await session.tell("response.output_item.added", **item, item=self._item("in_progress"))
        await session.tell("response.content_part.added", **part, part={"type": "audio", "transcript": ""})
        speeches = self._ask.spoken(session.service.engine, caller=session.caller)
        last: Speech | None = None
        timeout_s = session.service.settings.timeout_s
        async with aclosing(sound(session.service, self._ask, speeches, timeout_s)) as pieces:
            async for speech, piece in pieces:
                if speech is not last:
                    last = speech
                    self._n_samples += len(speech.samples)
                    if words := self._ask.text[slice(*speech.span)]:
                        self._said.append(words)
                        await session.tell("response.output_audio_transcript.delta", **part, delta=words + " ")
                for data in cut(piece, EVENT_BYTES):
                    await session.tell("response.output_audio.delta", **part, delta=b64(data))
        await session.tell("response.output_audio.done", **part)
        await session.tell("response.output_audio_transcript.done", **part, transcript=" ".join(self._said))
        done = {"type": "audio", "transcript": " ".join(self._said)}
        await session.tell("response.content_part.done", **part, part=done)
        await session.tell("response.output_item.done", **item, item=self._item("completed"))

    def _item(self, status: str) -> Message:
        content = [{"type": "output_audio", "transcript": " ".join(self._said)}] if self._said else []
        about = {"id": self._part["item_id"], "object": "realtime.item", "type": "message", "role": "assistant"}
        return {**about, "status": status, "content": content}

    def _resource(self, status: str, details: Message | None = None) -> Message:
        begun = status == "in_progress"
        n_in, n_out = len(self._ask.text), self._n_samples // SAMPLES_PER_FRAME
        usage = {"input_tokens": n_in, "output_tokens": n_out, "total_tokens": n_in + n_out}
        return {
            "id": self._response["response_id"],
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [] if begun else [self._item("completed" if status == "completed" else "incomplete")],
            "output_modalities": ["audio"],
            "audio": {"output": sounding(self._ask)},
            "metadata": self._metadata,
            "usage": None if begun else usage,
        }


def sounding(ask: SpeechRequest) -> Message:
    kind = next(name for name, format in FORMATS.items() if format == ask.format.name)
    rate = {"rate": ask.format.rate(ask.sample_rate)} if kind == "audio/pcm" else {}
    return {"voice": ask.params.voice, "format": {"type": kind, **rate}}


def _texts(items: object, where: str) -> str:
    """The texts of messages, one after the other."""
    texts: list[str] = []
    for item in items if isinstance(items, list) else [items]:
        content = item.get("content") if isinstance(item, dict) else None
        for part in content if isinstance(content, list) else [None]:
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str):
                raise InvalidInput(
                    f'{where}: only text can be said: {{"type": "message", "role": "user", '
                    '"content": [{"type": "input_text", "text": "Hello."}]}',
                    param=where,
                )
            texts.append(text)
    return "\n\n".join(texts)


def _checkpoint(name: str, service: Service) -> str | None:
    """OpenAI's names for models that hold a conversation stand for the one that speaks here."""
    return None if "realtime" in name.lower() else checkpoint(name, service.cast.checkpoints)


def _id(kind: str) -> str:
    return f"{kind}_{uuid4().hex[:24]}"


def realtime_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["live"])

    @routes.websocket("/v1/realtime")
    async def realtime(websocket: WebSocket, model: str = "kokoro") -> None:
        talk = Talk(websocket)
        await talk.begin()
        with suppress(WebSocketDisconnect):
            try:
                session = Realtime(service, talk, model)
            except TuttiError as error:
                told = fault(error, talk.state.request_id)
                await talk.tell({"type": "error", "event_id": _id("event"), "error": {**told, "event_id": None}})
                await websocket.close(1008, "model_not_found")
                return
            await session.run()

    return routes
