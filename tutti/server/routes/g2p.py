"""The G2P service: POST /g2p, for machines that keep the language packages away from the GPU."""

import logging
from collections.abc import Callable, Mapping

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tutti.errors import TuttiError
from tutti.server.errors import TooLarge, answer, install
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.g2p.schema import MAX_CHARACTERS, G2PRequest, G2PResponse, G2PWord
from tutti.text.language import language
from tutti.text.normalize import normalize

Pronounce = Callable[[AlignedText, str, Mapping[int, str]], Pronunciation]

MAX_BODY = 16 * MAX_CHARACTERS  # bytes; every character may come as \uXXXX\uXXXX, and marks beside it
log = logging.getLogger("tutti.g2p")


def g2p_app(pronounce: Pronounce) -> FastAPI:
    """The service around one `pronounce`, which must be callable from any thread."""
    app = FastAPI(title="tutti G2P", openapi_url="/openapi.json", docs_url=None, redoc_url=None)
    app.add_middleware(_SmallBody)
    install(app)
    app.add_exception_handler(Exception, _unexpected)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/g2p", response_model=G2PResponse)
    def g2p(ask: G2PRequest) -> G2PResponse:
        """How a text sounds, in Kokoro's symbols, every word with its place in the text."""
        code = language(ask.language).code
        # Plain words pass through unchanged, so a sentence that was normalised before is not harmed.
        reading = pronounce(normalize(AlignedText.of(ask.text), code), code, ask.given)
        return G2PResponse(
            words=[
                G2PWord(
                    phonemes=word.phonemes, start=word.span[0], end=word.span[1], before=word.before, after=word.after
                )
                for word in reading.words
            ],
            dropped=list(reading.dropped),
            phonemes="".join(word.symbols for word in reading.words).rstrip(),
        )

    return app


async def _unexpected(_: Request, error: Exception) -> Response:
    log.error("g2p failed: %s", type(error).__name__)
    return answer(TuttiError("the G2P service failed on this text"))


class _SmallBody:
    """Refuses a body that no allowed text can need, before it is read into memory."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the caller hung up
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MAX_BODY:
                error = TooLarge(f"the body is over {MAX_BODY:,} bytes", param="text")
                await answer(error, {"connection": "close"})(scope, receive, send)
                return
        pending: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self.app(scope, replay, send)
