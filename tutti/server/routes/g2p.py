"""The G2P service: POST /g2p, for setups that run the language packages on another machine than the GPU."""

import logging
from collections.abc import Callable, Mapping

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tutti.errors import TuttiError
from tutti.server.body_limit import limit_body, read_body, replay_body
from tutti.server.errors import TooLarge, error_response, install_error_handlers
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.g2p.schema import MAX_CHARACTERS, G2PRequest, G2PResponse, G2PWord
from tutti.text.language import find_language
from tutti.text.normalize import normalize

Pronounce = Callable[[AlignedText, str, Mapping[int, str]], Pronunciation]

MAX_BODY = 16 * MAX_CHARACTERS  # bytes: a character may be written as \uXXXX\uXXXX, and there are other fields
log = logging.getLogger("tutti.g2p")


def g2p_app(pronounce: Pronounce) -> FastAPI:
    """Build the application around `pronounce`, which must be callable from any thread."""
    app = FastAPI(title="tutti G2P", openapi_url="/openapi.json", docs_url=None, redoc_url=None)
    app.add_middleware(_BodyLimit)
    install_error_handlers(app)
    app.add_exception_handler(Exception, _unexpected)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/g2p", response_model=G2PResponse)
    def g2p(request: G2PRequest) -> G2PResponse:
        """The pronunciation of a text in Kokoro's symbols; each word has its place in the text."""
        code = find_language(request.language).code
        # Normalising twice is harmless: plain words stay as they are.
        pronunciation = pronounce(normalize(AlignedText.of(request.text), code), code, request.given)
        return G2PResponse(
            words=[
                G2PWord(
                    phonemes=word.phonemes,
                    start=word.source[0],
                    end=word.source[1],
                    before=word.before,
                    after=word.after,
                )
                for word in pronunciation.words
            ],
            dropped=list(pronunciation.dropped),
            phonemes="".join(word.symbols for word in pronunciation.words).rstrip(),
        )

    return app


async def _unexpected(_: Request, error: Exception) -> Response:
    log.error("g2p failed: %s", type(error).__name__)
    return error_response(TuttiError("the G2P service failed on this text"))


class _BodyLimit:
    """Middleware that refuses a body larger than any allowed text needs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        too_large = TooLarge(f"the body is over {MAX_BODY:,} bytes", param="text")
        try:
            body = await read_body(limit_body(receive, MAX_BODY, too_large))
        except TooLarge as error:
            await error_response(error, {"connection": "close"})(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, replay_body(body, receive), send)
